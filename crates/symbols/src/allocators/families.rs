//! The known allocators, and the symbols by which they are recognised.

/// An allocator by its name.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Family {
    pub name: &'static str,
    /// Functions that allocate. Linkers leave out those that are not used, so any of them shows the allocator.
    allocate: &'static [&'static str],
}

const FAMILIES: &[Family] = &[
    Family {
        name: "mimalloc",
        allocate: &[
            "mi_malloc",
            "mi_malloc_aligned",
            "mi_zalloc",
            "mi_zalloc_aligned",
            "mi_calloc",
            "mi_heap_malloc",
        ],
    },
    Family {
        name: "jemalloc",
        allocate: &["_rjem_malloc", "_rjem_mallocx", "je_malloc", "je_mallocx", "mallocx"],
    },
    Family { name: "snmalloc", allocate: &["sn_rust_alloc", "sn_malloc"] },
    Family { name: "tcmalloc", allocate: &["tc_malloc", "TCMallocInternalMalloc"] },
    Family { name: "rpmalloc", allocate: &["rpmalloc"] },
];

/// The allocator that a symbol belongs to.
pub(super) fn shown_by(symbol: &[u8]) -> Option<&'static Family> {
    FAMILIES.iter().find(|family| family.allocate.iter().any(|name| name.as_bytes() == symbol))
}
