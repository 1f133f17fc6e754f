//! The interposed functions, looked up once in the libraries behind this one.

use core::ffi::{CStr, c_int, c_ulong, c_void};
use core::sync::atomic::{AtomicPtr, Ordering::*};

/// A function of a later library.
pub struct Next {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
}

impl Next {
    const fn new(name: &'static CStr) -> Next {
        Next { name, found: AtomicPtr::new(core::ptr::null_mut()) }
    }

    /// Its address; null if no later library has it.
    pub fn address(&self) -> *mut c_void {
        let found = self.found.load(Acquire);
        if !found.is_null() {
            return found;
        }
        // SAFETY: the name ends with a zero byte. RTLD_NEXT is relative to this library.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        self.found.store(found, Release);
        found
    }
}

macro_rules! next {
    ($($(#[$doc:meta])* $static:ident $name:ident: $type:ty;)*) => { $(
        static $static: Next = Next::new(match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
            Ok(name) => name,
            Err(_) => c"",
        });
        $(#[$doc])*
        pub fn $name() -> Option<$type> {
            // SAFETY: null is `None`; otherwise it is the C library's function of this name and therefore type.
            unsafe { core::mem::transmute::<*mut c_void, Option<$type>>($static.address()) }
        }
    )* };
}

/// A signal handler in C: a function, SIG_DFL or SIG_IGN.
pub type Handler = usize;

next! {
    /// pthread_create(3).
    PTHREAD_CREATE pthread_create: stackglass_sampler::CreateThread;
    /// sigaction(2).
    SIGACTION sigaction: unsafe extern "C" fn(c_int, *const libc::sigaction, *mut libc::sigaction) -> c_int;
    /// signal(2).
    SIGNAL signal: unsafe extern "C" fn(c_int, Handler) -> Handler;
    /// sysv_signal(3).
    SYSV_SIGNAL __sysv_signal: unsafe extern "C" fn(c_int, Handler) -> Handler;
    /// sigset(3).
    SIGSET sigset: unsafe extern "C" fn(c_int, Handler) -> Handler;
    /// sigaltstack(2).
    SIGALTSTACK sigaltstack: unsafe extern "C" fn(*const libc::stack_t, *mut libc::stack_t) -> c_int;
    /// sigprocmask(2).
    SIGPROCMASK sigprocmask: unsafe extern "C" fn(c_int, *const libc::sigset_t, *mut libc::sigset_t) -> c_int;
    /// pthread_sigmask(3).
    PTHREAD_SIGMASK pthread_sigmask: unsafe extern "C" fn(c_int, *const libc::sigset_t, *mut libc::sigset_t) -> c_int;
    /// sigwait(3).
    SIGWAIT sigwait: unsafe extern "C" fn(*const libc::sigset_t, *mut c_int) -> c_int;
    /// sigwaitinfo(2).
    SIGWAITINFO sigwaitinfo: unsafe extern "C" fn(*const libc::sigset_t, *mut libc::siginfo_t) -> c_int;
    /// sigtimedwait(2).
    SIGTIMEDWAIT sigtimedwait: unsafe extern "C" fn(*const libc::sigset_t, *mut libc::siginfo_t, *const libc::timespec) -> c_int;
    /// signalfd(2).
    SIGNALFD signalfd: unsafe extern "C" fn(c_int, *const libc::sigset_t, c_int) -> c_int;
    /// prctl(2).
    PRCTL prctl: unsafe extern "C" fn(c_int, c_ulong, c_ulong, c_ulong, c_ulong) -> c_int;
    /// capset(2).
    CAPSET capset: unsafe extern "C" fn(*mut c_void, *const c_void) -> c_int;
    /// dlclose(3).
    DLCLOSE dlclose: unsafe extern "C" fn(*mut c_void) -> c_int;
}
