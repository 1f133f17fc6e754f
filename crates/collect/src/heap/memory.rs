//! Memory of the process that takes a snapshot.
//!
//! Debug information is read into many small allocations, of which few stay. Lists of blocks and edges are few and large.
//! glibc keeps what the former leave, and by default puts the latter into the same heap. Other allocators decide by
//! themselves.

/// Gives large allocations mappings of their own: they grow without copies, and their end frees memory at once. By default, glibc
/// does so only until larger ones were freed.
pub(super) fn map_large_allocations() {
    #[cfg(target_env = "gnu")]
    // SAFETY: sets a number, at any time.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
    }
}

/// Bytes of a large allocation: glibc's value at start.
#[cfg(target_env = "gnu")]
const LARGE: libc::c_int = 128 << 10;

/// Returns unused pages to the system.
pub(super) fn return_unused() {
    #[cfg(target_env = "gnu")]
    // SAFETY: may be called at any time, by any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}
