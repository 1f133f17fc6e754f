//! The library that `stackglass record` puts into programs that know nothing of it.
//!
//! Duty: when the program starts, find the session, make this process's file in it and start the sampler
//! ([`start`](self)); stand between the program and the few functions of the C library that concern us
//! (`hooks`); begin anew in forked children (`children`).
//!
//! Not its duty: anything a program without a session would notice. Without one, every hook passes on.
//!
//! What it may use is checked: `libc` and the INSIDE crates (`wire`, `unwind`, `host`, `sampler`), nothing else.
//! It allocates nothing from the program's allocator.
#![allow(unsafe_code, reason = "functions of the C library are interposed")]

mod alternate_handlers;
mod begin;
mod children;
mod environment;
mod hooks;
mod next;
#[cfg(panic = "abort")]
mod no_unwinder;
mod ready;
mod signal_sets;
mod threads;

/// Tells a program that links the crate `stackglass` that it is being sampled already: the version of the
/// contract, or 0 when this process is not sampled by us. Its name is `stackglass_wire::AGENT_SYMBOL`.
#[unsafe(no_mangle)]
pub extern "C" fn stackglass_agent_v1() -> u32 {
    if stackglass_sampler::is_running() { stackglass_wire::VERSION } else { 0 }
}

/// The pool in which a program that links the crate `stackglass` says which async task each of its threads polls; null
/// without memory. Its name is `stackglass_wire::TASKS_SYMBOL`.
#[unsafe(no_mangle)]
pub extern "C" fn stackglass_tasks_v1() -> *mut core::ffi::c_void {
    let pool = stackglass_sampler::task::own_pool();
    pool.map_or(core::ptr::null_mut(), |pool| core::ptr::from_ref(pool).cast_mut().cast())
}

/// The handler that counts peeks for a launcher, or 0. Its name is `stackglass_wire::PEEK_SYMBOL`.
#[unsafe(no_mangle)]
pub extern "C" fn stackglass_peek_v1() -> usize {
    stackglass_host::peek::handler_for_launcher()
}
