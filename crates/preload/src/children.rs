//! Forked children: they inherit this library but not its sampler, and start their own if children are profiled.
//!
//! Only children of the C library's `fork` call the hook below. Children of a raw `clone`, `vfork` or `posix_spawn` run
//! unsampled until they exec: the wiped fork guard disables handler and hooks in them.

use crate::allocations;
use crate::own_session::{self, Begin};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, Ordering::*};
use stackglass_host::stream_memory::{Refused, StreamMemory};
use stackglass_host::{UNWINDER, confined, peek};
use stackglass_wire::{ImageFlags, SessionState};

static WATCHING: AtomicBool = AtomicBool::new(false);

type ForkHook = unsafe extern "C" fn();
/// glibc's form of `pthread_atfork`: hooks before, in the parent and in the child, and the library they belong to.
type RegisterAtFork =
    unsafe extern "C" fn(Option<ForkHook>, Option<ForkHook>, Option<ForkHook>, *const c_void) -> c_int;

/// Registers a hook that the C library calls in every forked child.
pub fn watch() {
    if WATCHING.swap(true, AcqRel) {
        return;
    }
    // Looked up, not linked: the loader of another C library would refuse this library for it, and then the program.
    // SAFETY: the name ends with a zero byte; the result is null, which is `None`, or glibc's function of that name. The
    // hook is in this library, which is never unloaded.
    unsafe {
        let found = libc::dlsym(libc::RTLD_DEFAULT, c"__register_atfork".as_ptr());
        if let Some(register) = core::mem::transmute::<*mut c_void, Option<RegisterAtFork>>(found) {
            register(None, None, Some(after_fork), core::ptr::null());
        }
    }
}

/// Starts a sampler in a forked child.
unsafe extern "C" fn after_fork() {
    let Some(session) = own_session::get() else { return };
    let stopped = SessionState::from_number(session.page.state.load(Acquire)) == SessionState::Stopped;
    UNWINDER.after_fork();
    let follows = session.page.follow_children.load(Relaxed) != 0;
    allocations::after_fork(follows);
    let is_sampled = session.page.sampled_from_outside.load(Relaxed) == 0
        && SessionState::from_number(session.page.state.load(Acquire)) != SessionState::Ready;
    if !follows || stopped || !is_sampled || confined::is_confined() {
        return;
    }
    peek::after_fork();
    // Most children exec at once. The thread waits for one tick before it creates the child's file.
    let patience = session.page.delay_ns.load(Relaxed).clamp(100_000, 10_000_000);
    // A child that cannot be sampled runs on without a message, since it may have no stderr.
    let _ = own_session::launch(Begin::now(), None, make_stream, patience);
}

/// Creates the stream of a forked child, on its sampler's thread.
pub fn make_stream(start: u64) -> Result<StreamMemory, Refused> {
    let stream = own_session::make_stream(start)?;
    stream.control.image.fetch_or(ImageFlags::FORKED, AcqRel);
    Ok(stream)
}
