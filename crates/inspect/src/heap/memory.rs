//! Memory of the process that takes a snapshot.
//!
//! Debug information is read into many small allocations, most of which are freed soon. Lists of blocks and edges are few and
//! large. By default, glibc keeps freed memory and places large allocations in the same heap. Other allocators are left as
//! they are.

/// Gives each large allocation a mapping of its own: it grows without a copy, and freeing it returns its memory at once. By
/// default, glibc no longer does so after a larger one was freed.
pub(super) fn map_large_allocations() {
    #[cfg(target_env = "gnu")]
    // SAFETY: any thread may call mallopt(3) at any time. The option only sets a threshold.
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
    // SAFETY: any thread may call malloc_trim(3) at any time. It frees no block.
    unsafe {
        libc::malloc_trim(0);
    }
}
