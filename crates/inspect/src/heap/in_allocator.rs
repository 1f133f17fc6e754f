//! Whether a thread stood inside the C library's allocator when its process was frozen.
//!
//! There, blocks that are free may belong to no list for a moment: `malloc_consolidate` of glibc takes all small ones out of their lists
//! before it joins them. They look like blocks that nothing holds.

use super::recorded;
use crate::glibc_names::plain;
use crate::{core_image, named_frames};
use stackglass_attach::frozen::FrozenProcess;
use stackglass_process_view::modules::is_glibc;
use stackglass_process_view::{ProcessView, Threads};
use stackglass_symbols::Options;

/// Frames of a thread that are looked at: signal handlers may interrupt the allocator.
const MOST_FRAMES: usize = 32;

/// Functions of the allocator, without `__libc_`, `__GI_` and the like. One of them is on the stack, also if the inner ones have no names.
const FUNCTIONS: [&str; 13] = [
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "free",
    "cfree",
    "memalign",
    "aligned_alloc",
    "posix_memalign",
    "valloc",
    "pvalloc",
    "malloc_trim",
    "malloc_consolidate",
];

/// Whether a thread of a frozen process is inside an allocating function of the C library, whose lists tell which blocks are free. If the
/// program records its allocations, its own table tells that. A thread that sleeps in a system call changes no list.
pub(super) fn is_in_allocator(process: &FrozenProcess, options: &Options) -> bool {
    let mut image = core_image::from_frozen(process);
    image.threads.retain(|thread| thread.registers.is_some_and(|registers| !registers.are_of_sleeper()));
    if image.threads.is_empty() {
        return false;
    }
    let view = ProcessView::open(&image);
    let files = view.files();
    let is_libc = |lookup: &u64| {
        let module = view.modules.iter().find(|module| module.module.range().contains(lookup));
        module.is_some_and(|module| is_glibc(module.name()))
    };
    let Threads { frames, .. } = view.threads();
    let lookups: Vec<Vec<u64>> = frames
        .iter()
        .map(|frames| frames.iter().take(MOST_FRAMES).map(|frame| frame.lookup).filter(is_libc).collect())
        .collect();
    let named = named_frames::of(&lookups, &view.modules, &files, options);
    let is_inside = named.iter().flatten().flatten().any(|frame| allocates(&frame.func));
    is_inside && recorded::read(&image).is_none_or(|recorded| recorded.is_partial || recorded.lost > 0)
}

fn allocates(function: &str) -> bool {
    let name = plain(function);
    let name = name.strip_prefix("libc_").or(name.strip_prefix("int_")).unwrap_or(name);
    FUNCTIONS.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_the_allocator_are_known_by_all_their_names() {
        for name in [
            "malloc",
            "__GI___libc_free",
            "_int_malloc",
            "__libc_realloc",
            "malloc_consolidate",
            "free@@GLIBC_2.2.5",
        ] {
            assert!(allocates(name), "{name}");
        }
        for name in ["mallopt", "free_mem", "__libc_start_main", "getaddrinfo", "malloc_info"] {
            assert!(!allocates(name), "{name}");
        }
    }
}
