//! Forked children: they inherit our code but not our sampler, and begin anew when they are to be followed.
//!
//! Only children of the C library's `fork` come by here. Those of a raw `clone` and of `vfork` or
//! `posix_spawn` run unsampled until they exec: the wiped marker keeps handler and hooks quiet in them.

use crate::begin;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, Ordering::*};
use stackglass_host::image::{ProcessImage, Refused};
use stackglass_host::{UNWINDER, peek, system};
use stackglass_wire::{ImageFlags, SessionState};

static WATCHING: AtomicBool = AtomicBool::new(false);

type ForkHook = unsafe extern "C" fn();
/// glibc's own form of `pthread_atfork`: before, in the parent, in the child, and whose hooks they are.
type RegisterAtFork =
    unsafe extern "C" fn(Option<ForkHook>, Option<ForkHook>, Option<ForkHook>, *const c_void) -> c_int;

/// Asks the C library to call us in every forked child.
pub fn watch() {
    if WATCHING.swap(true, AcqRel) {
        return;
    }
    // Looked up, not linked: a loader of another C library would refuse to load us for it, and the program with us.
    // SAFETY: the name ends with a zero byte; null is `None`, and otherwise it is glibc's function of that name. The
    // hook lies in this library, which is never unloaded.
    unsafe {
        let found = libc::dlsym(libc::RTLD_DEFAULT, c"__register_atfork".as_ptr());
        if let Some(register) = core::mem::transmute::<*mut c_void, Option<RegisterAtFork>>(found) {
            register(None, None, Some(after_fork), core::ptr::null());
        }
    }
}

/// In the child, right after fork.
unsafe extern "C" fn after_fork() {
    let Some(session) = begin::session() else { return };
    let stopped = SessionState::from_number(session.page.state.load(Acquire)) == SessionState::Stopped;
    if session.page.follow_children.load(Relaxed) == 0 || stopped {
        return;
    }
    UNWINDER.after_fork();
    peek::after_fork();
    // Most children exec at once. The thread waits for one tick before it makes the child's file.
    let patience = session.page.delay_ns.load(Relaxed).clamp(100_000, 10_000_000);
    // A child that cannot be sampled runs on, and says nothing: it may have no stderr of its own.
    let _ = begin::launch((system::now(), system::own_cpu()), None, patience);
}

/// The image of a forked child, made on its sampler's thread.
pub fn make_image(start: u64) -> Result<ProcessImage, Refused> {
    let image = begin::make_image(start)?;
    image.control.image.fetch_or(ImageFlags::FORKED, AcqRel);
    Ok(image)
}
