//! Which live blocks statics keep, as far as the stacks of their allocations tell: blocks from code that initialises a static
//! once, from constructors of modules, and from the C library's own set-up. They are alive at the end of a program on purpose,
//! and are no leaks.

use stackglass_profile::{Frame, LocationId, Recording};

/// Functions that run code to initialise a static or thread-local, by the begin of their path.
const INITIALISERS: &[&str] = &[
    "std::sync::once::Once::call_",
    "std::sync::poison::once::Once::call_",
    "std::sys::sync::once::",
    "std::sync::once_lock::OnceLock::",
    "std::sync::lazy_lock::LazyLock::",
    "std::sys::thread_local::",
    "std::thread::local::LocalKey::",
    "once_cell::",
    "lazy_static::",
    "std::rt::init",
    "std::io::stdio::",
    "__static_initialization_and_destruction_0",
    "_GLOBAL__sub_I_",
    "call_init",
    "_dl_init",
    "_dl_start",
    "__libc_early_init",
];

/// Functions of the C library that allocate what it keeps until the end: buffers of streams, handlers, the locale.
const OWNERS: &[&str] = &[
    "_IO_file_doallocate",
    "__new_exitfn",
    "__cxa_thread_atexit_impl",
    "setlocale",
    "_nl_",
    "tzset_internal",
    "__tzfile_read",
    "__cxa_get_globals",
];

/// The dynamic linker.
const LOADERS: &[&str] = &["ld-linux", "ld-musl"];

/// Sets what is kept of each group that has live blocks and no such figure yet.
pub(crate) fn set(recording: &mut Recording) {
    let mut known: Vec<Option<bool>> = vec![None; recording.stacks.locations().len()];
    let (stacks, symbols) = (&recording.stacks, &recording.symbols);
    for group in &mut recording.allocations.groups {
        let counts = &mut group.counts;
        if counts.live_count() == 0 || counts.kept_count != 0 {
            continue;
        }
        let is_kept = stacks.walk(group.stack).any(|location: LocationId| {
            *known[location.0 as usize].get_or_insert_with(|| symbols.frames_of(location).any(keeps))
        });
        if is_kept {
            (counts.kept_count, counts.kept_bytes) = (counts.live_count(), counts.live_bytes());
        }
    }
}

fn keeps(frame: &Frame) -> bool {
    let begins = |list: &[&str], name: &str| list.iter().any(|begin| name.starts_with(begin));
    begins(INITIALISERS, &frame.func)
        || frame.foreign && (begins(OWNERS, &frame.func) || begins(LOADERS, &frame.module))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackglass_profile::{
        AllocationCounts, AllocationGroup, AllocationKind, Location, ProcessIndex, SizeClass, ThreadNumber,
    };

    #[test]
    fn blocks_of_a_once_cell_are_no_leaks() {
        let mut recording = Recording::default();
        let names = ["app::main", "std::sync::once_lock::OnceLock::initialize", "app::config", "app::leak"];
        let ids: Vec<LocationId> = (0..names.len())
            .map(|offset| recording.stacks.intern_location(Location { module: None, offset: offset as u64 }))
            .collect();
        for (id, name) in ids.iter().zip(names) {
            let frame = Frame { func: (*name).into(), foreign: false, ..Frame::unknown(0) };
            recording.symbols.set(*id, [frame]);
        }
        for leaf_first in [[ids[2], ids[1], ids[0]].as_slice(), &[ids[3], ids[0]]] {
            let stack = recording.stacks.intern(leaf_first);
            recording.allocations.groups.push(AllocationGroup {
                stack,
                thread: ThreadNumber(1),
                process: ProcessIndex(0),
                task: 0,
                kind: AllocationKind::Block,
                size_class: SizeClass::of(32),
                counts: AllocationCounts {
                    count: 3,
                    bytes: 96,
                    freed_count: 1,
                    freed_bytes: 32,
                    ..Default::default()
                },
            });
        }
        set(&mut recording);
        let leaked: Vec<u64> = recording.allocations.groups.iter().map(|g| g.counts.leaked_bytes()).collect();
        assert_eq!(leaked, [0, 64]);
        let call = |func: &str, module: &str| Frame {
            func: func.into(),
            module: module.into(),
            ..Frame::unknown(0)
        };
        assert!(
            keeps(&call("_IO_file_doallocate", "libc.so.6"))
                && keeps(&call("malloc", "ld-linux-x86-64.so.2"))
        );
        assert!(!keeps(&call("strdup", "libc.so.6")));
    }
}
