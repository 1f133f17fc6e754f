//! Maps and unmaps own pages: tables and lists that signal handlers read, without the program's allocator.
//!
//! [`own_memory`] lists them, since they hold copies of stacks and are no memory of the program.

use crate::own_memory;

/// mmap(2) by the system call itself: the function of the C library may be interposed, and its calls recorded.
///
/// # Safety
/// As for mmap(2).
pub unsafe fn mmap(
    at: *mut core::ffi::c_void,
    bytes: usize,
    protection: i32,
    flags: i32,
    file: i32,
    offset: i64,
) -> *mut core::ffi::c_void {
    let (protection, flags, file) = (i64::from(protection), i64::from(flags), i64::from(file));
    // SAFETY: by the caller.
    unsafe {
        libc::syscall(libc::SYS_mmap, at, bytes, protection, flags, file, offset) as *mut core::ffi::c_void
    }
}

/// munmap(2), see [`mmap`].
///
/// # Safety
/// As for munmap(2).
pub unsafe fn munmap(at: *mut core::ffi::c_void, bytes: usize) -> i32 {
    own_memory::remove(at.cast());
    // SAFETY: by the caller.
    unsafe { libc::syscall(libc::SYS_munmap, at, bytes) as i32 }
}

/// Zeroed private memory. A forked child has a copy. It is not locked, even if the program locks all its memory.
pub(crate) fn map_private(size: usize) -> Option<*mut u8> {
    // SAFETY: a new anonymous mapping touches nothing that exists, and all calls concern it alone. A mapping that cannot
    // be accessed is not filled, so no page is in memory before it is unlocked.
    unsafe {
        let place = mmap(
            std::ptr::null_mut(),
            size,
            libc::PROT_NONE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        );
        if place == libc::MAP_FAILED {
            return None;
        }
        libc::syscall(libc::SYS_munlock, place, size);
        if libc::mprotect(place, size, libc::PROT_READ | libc::PROT_WRITE) != 0 {
            munmap(place, size);
            return None;
        }
        // Filled page by page: a huge page would be zeroed at once, perhaps in a signal handler.
        libc::madvise(place, size, libc::MADV_NOHUGEPAGE);
        own_memory::add(place.cast(), size);
        Some(place.cast())
    }
}

/// Unmaps a whole mapping from [`map_private`].
pub(crate) fn unmap(place: *mut u8, size: usize) {
    // SAFETY: callers pass exactly what `map_private` returned and hold the last reference to it.
    let result = unsafe { munmap(place.cast(), size) };
    debug_assert_eq!(result, 0);
}
