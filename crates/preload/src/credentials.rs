//! A thread that changes its own rights alone ends the sampling of its process before.
//!
//! Rights belong to threads: `capset`, some of prctl(2), and bare calls of `setuid` and the like change one thread. The C library's
//! `setuid` makes each thread call, and ends the program if one of them is refused and another one is not. A thread of this
//! library, which kept what the program has given up, or lacks what it has kept, would be such a one.

use crate::real_functions;
use core::ffi::{c_int, c_long, c_void};
use stackglass_host::fork_guard;

/// Longest wait for the sampler's last tick, ns.
const LONGEST_STOP: u64 = 1_000_000_000;

/// The calling thread is about to change its rights: no thread of this library stays.
pub fn before_change() {
    // A child of `vfork` has its parent's memory, and changes its own rights.
    if fork_guard::is_own_process() && stackglass_sampler::is_running() {
        stackglass_sampler::end_before_own_rights(LONGEST_STOP);
    }
}

/// capset(2).
///
/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn capset(header: *mut c_void, data: *const c_void) -> c_int {
    before_change();
    match real_functions::capset() {
        // SAFETY: passed on unchanged.
        Some(real) => unsafe { real(header, data) },
        None => crate::hooks::fail(libc::ENOSYS),
    }
}

/// The first and the last number of the calls that [`before_call`] looks at.
pub const FIRST: c_long = libc::SYS_setuid;
pub const LAST: c_long = libc::SYS_capset;

/// A call by syscall(2), which changes the calling thread alone.
pub unsafe extern "C" fn before_call(number: c_long) {
    if matches!(
        number,
        libc::SYS_setuid
            | libc::SYS_setgid
            | libc::SYS_setreuid
            | libc::SYS_setregid
            | libc::SYS_setgroups
            | libc::SYS_setresuid
            | libc::SYS_setresgid
            | libc::SYS_capset
    ) {
        before_change();
    }
}
