//! What the functions of known allocators do, by their names.

use stackglass_symbols::LinkedAllocator;
use stackglass_wire::takeover::Action;

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
pub(crate) const MALLOC: &[(&str, Action)] = &[
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

/// What a function of an allocator does, by its name.
pub(crate) fn action(name: &str, allocator: &LinkedAllocator) -> Option<Action> {
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
