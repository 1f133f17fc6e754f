//! The plan by which the library takes over an allocator that is part of the executable: which of its functions do what, and which
//! of their instructions move.

use stackglass_symbols::{LinkedAllocator, MovableFunction, linked_allocator, movable_functions};
use stackglass_wire::takeover::{Action, Distance, TAKEOVER_FILE, TakeoverEntry, TakeoverPlan};
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Functions of mimalloc. All others, such as those of single heaps, are not seen.
const MIMALLOC: &[(&str, Action)] = &[
    ("mi_malloc", Action::Allocate),
    ("mi_malloc_small", Action::Allocate),
    ("mi_zalloc", Action::Allocate),
    ("mi_zalloc_small", Action::Allocate),
    ("mi_malloc_aligned", Action::Allocate),
    ("mi_zalloc_aligned", Action::Allocate),
    ("mi_calloc", Action::AllocateArray),
    ("mi_calloc_aligned", Action::AllocateArray),
    ("mi_mallocn", Action::AllocateArray),
    ("mi_realloc", Action::Reallocate),
    ("mi_rezalloc", Action::Reallocate),
    ("mi_realloc_aligned", Action::Reallocate),
    ("mi_rezalloc_aligned", Action::Reallocate),
    ("mi_free", Action::Free),
    ("mi_free_size", Action::Free),
    ("mi_free_aligned", Action::Free),
    ("mi_free_size_aligned", Action::Free),
];

/// Functions of jemalloc, without their prefix.
const JEMALLOC: &[(&str, Action)] = &[
    ("mallocx", Action::Allocate),
    ("rallocx", Action::Reallocate),
    ("sdallocx", Action::FreeSized),
    ("dallocx", Action::Free),
];

/// Functions of the C library.
const MALLOC: &[(&str, Action)] = &[
    ("malloc", Action::Allocate),
    ("valloc", Action::Allocate),
    ("pvalloc", Action::Allocate),
    ("calloc", Action::AllocateArray),
    ("memalign", Action::AllocateAligned),
    ("aligned_alloc", Action::AllocateAligned),
    ("posix_memalign", Action::AllocateAt),
    ("realloc", Action::Reallocate),
    ("free", Action::Free),
    ("cfree", Action::Free),
];

/// Prefixes of jemalloc's functions that do not replace malloc.
const JEMALLOC_PREFIXES: [&str; 2] = ["_rjem_", "je_"];

fn action(name: &str, allocator: &LinkedAllocator) -> Option<Action> {
    let of = |table: &[(&str, Action)], name: &str| Some(table.iter().find(|(known, _)| *known == name)?.1);
    let own = match allocator.name {
        Some("mimalloc") => of(MIMALLOC, name),
        Some("jemalloc") => {
            let plain = JEMALLOC_PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix));
            plain.and_then(|plain| of(JEMALLOC, plain).or_else(|| of(MALLOC, plain)))
        }
        _ => None,
    };
    own.or_else(|| {
        let jemalloc = || (allocator.name == Some("jemalloc")).then(|| of(JEMALLOC, name)).flatten();
        let replaced = || of(MALLOC, name).or_else(jemalloc);
        allocator.replaces_malloc.then(replaced).flatten()
    })
}

/// Functions of C++ that an allocator may define as well. They throw, which must not pass through the library.
const NEW: [&str; 2] = ["_Znwm", "_Znam"];

/// The plan for an executable; the error says why there is none.
fn plan(executable: &Path, allocator: &LinkedAllocator) -> Result<TakeoverPlan, String> {
    let Ok(meta) = std::fs::metadata(executable) else { return Err("its file cannot be read".into()) };
    let wanted =
        |name: &str| action(name, allocator).is_some() || (allocator.replaces_malloc && NEW.contains(&name));
    let functions = movable_functions(executable, &wanted)
        .map_err(|name| format!("the code of {name} cannot be redirected"))?;
    if functions.iter().any(|function| NEW.contains(&&*function.name)) {
        return Err("it defines operator new as well".into());
    }
    let actions: Vec<Action> =
        functions.iter().filter_map(|function| action(&function.name, allocator)).collect();
    let ends = |action: &Action| matches!(action, Action::Free | Action::FreeSized);
    let begins = |action: &Action| matches!(action, Action::Allocate | Action::AllocateAligned);
    if !actions.iter().any(begins) || !actions.iter().any(ends) {
        return Err("its functions are not known here".into());
    }
    let mut plan = TakeoverPlan::new(meta.dev(), meta.ino(), meta.len());
    for (function, action) in functions.iter().zip(actions) {
        let is_added = entry(function, action).is_some_and(|entry| plan.push(entry));
        if !is_added {
            return Err(format!("the code of {} cannot be redirected", function.name));
        }
    }
    Ok(plan)
}

fn entry(function: &MovableFunction, action: Action) -> Option<TakeoverEntry> {
    let start = &function.start;
    let mut entry = TakeoverEntry { address: start.address, action: action as u32, ..TakeoverEntry::EMPTY };
    entry.original.get_mut(..start.original.len())?.copy_from_slice(&start.original);
    entry.moved.get_mut(..start.moved.len())?.copy_from_slice(&start.moved);
    entry.original_len = start.original.len() as u32;
    entry.moved_len = start.moved.len() as u32;
    entry.distance_count = start.distances.len() as u32;
    for (index, distance) in start.distances.iter().enumerate() {
        *entry.distances.get_mut(index)? =
            Distance { at: distance.at, end: distance.end, target: distance.target };
    }
    Some(entry)
}

/// What the launcher does about an allocator that is part of the executable.
pub struct Takeover {
    /// The allocator.
    pub allocator: LinkedAllocator,
    /// The file with the plan, or why there is none.
    planned: Result<PathBuf, String>,
}

impl Takeover {
    /// Makes the plan for a program that is about to start, if it has such an allocator.
    pub fn prepare(executable: &Path, folder: &Path) -> Option<Takeover> {
        let allocator = linked_allocator(executable)?;
        let planned = plan(executable, &allocator).and_then(|plan| {
            let path = folder.join(TAKEOVER_FILE);
            store(&plan, &path).map(|()| path).map_err(|error| format!("no plan can be written: {error}"))
        });
        Some(Takeover { allocator, planned })
    }

    /// Why it was not taken over, known before the program starts.
    pub fn obstacle(&self) -> Option<&str> {
        self.planned.as_ref().err().map(|why| &**why)
    }

    /// Whether a process has taken it over. The session's folder must still exist.
    pub fn is_done(&self) -> bool {
        self.planned.as_ref().is_ok_and(|path| done_plan(path).is_some())
    }
}

/// Whether processes of a session have taken over the allocator of an executable.
pub fn is_taken(folder: &Path, executable: &Metadata) -> bool {
    let plan = done_plan(&folder.join(TAKEOVER_FILE));
    plan.is_some_and(|plan| (plan.device, plan.inode) == (executable.dev(), executable.ino()))
}

/// The plan in a file, if it was carried out.
fn done_plan(path: &Path) -> Option<TakeoverPlan> {
    let mut plan = TakeoverPlan::new(0, 0, 0);
    File::open(path).ok()?.read_exact_at(plan.as_bytes_mut(), 0).ok()?;
    (plan.taken != 0).then_some(plan)
}

fn store(plan: &TakeoverPlan, path: &Path) -> io::Result<()> {
    let file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all_at(plan.as_bytes(), 0)
}
