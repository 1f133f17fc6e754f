//! Shared by the tests that walk in signal handlers.
#![allow(unsafe_code, reason = "calls the C library")]

use std::ffi::{c_int, c_void};

/// Installs a handler that gets the context of the interrupted thread.
pub fn on_signal(
    signal: c_int,
    flags: c_int,
    handler: unsafe extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void),
) {
    // SAFETY: a complete sigaction; the handlers of the tests are async-signal-safe.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | flags;
        assert_eq!(libc::sigaction(signal, &action, std::ptr::null_mut()), 0);
    }
}
