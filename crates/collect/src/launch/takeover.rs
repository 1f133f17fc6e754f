//! The plan by which the library takes over an allocator that is part of the executable: which of its functions do what, and which
//! of their instructions move.

use crate::allocations::functions::action;
use stackglass_symbols::{LinkedAllocator, MovableFunction, linked_allocator, movable_functions};
use stackglass_wire::takeover::{Action, Distance, TAKEOVER_FILE, TakeoverEntry, TakeoverPlan};
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

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
