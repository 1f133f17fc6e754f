//! The library that `stackglass record` and `stackglass run` preload into programs.
//!
//! `record` preloads it with `--sampler preload`, and into programs that link the crate `stackglass`. Under `run` the library
//! only counts requests for peeks.
//!
//! Duty: when the program starts, find the session, create this process's file in it and start the sampler (`begin`);
//! interpose the functions of the C library that affect sampling (`hooks`); start samplers in forked children (`children`).
//!
//! Without a session, the program must not notice the library: every hook passes calls on.
//!
//! `cargo xtask test boundary` checks its dependencies: `libc` and the INSIDE crates (`wire`, `unwind`, `host`, `sampling`,
//! `sampler`). It does not use the program's allocator.
#![allow(unsafe_code, reason = "functions of the C library are interposed")]

mod allocations;
mod alternate_handlers;
mod children;
mod constructor;
mod credentials;
mod environment;
#[cfg(panic = "abort")]
#[path = "file_status_x86_64.rs"]
mod file_status;
mod hooks;
mod inherited_filters;
#[cfg(panic = "abort")]
mod no_unwinder;
mod own_session;
mod peek_only;
mod real_functions;
mod signal_sets;
mod sigset;
mod threads;

/// The version of the contract if this process is sampled, else 0. By this, a program that links the crate `stackglass`
/// finds that it is being sampled. Its name is `stackglass_wire::AGENT_SYMBOL`.
#[unsafe(no_mangle)]
pub extern "C" fn stackglass_agent_v1() -> u32 {
    if stackglass_sampler::is_running() { stackglass_wire::VERSION } else { 0 }
}

/// The version of the contract if this library records allocations or is ready to, else 0. Its name is
/// `stackglass_wire::ALLOCATIONS_SYMBOL`.
#[unsafe(no_mangle)]
pub extern "C" fn stackglass_allocations_v1() -> u32 {
    if allocations::are_hooked() { stackglass_wire::VERSION } else { 0 }
}

/// The pool to which a program that links the crate `stackglass` writes the async tasks that its threads poll; null without
/// memory. Its name is `stackglass_wire::TASKS_SYMBOL`.
#[unsafe(no_mangle)]
pub extern "C" fn stackglass_tasks_v2() -> *mut core::ffi::c_void {
    let pool = stackglass_sampler::task::own_pool();
    pool.map_or(core::ptr::null_mut(), |pool| core::ptr::from_ref(pool).cast_mut().cast())
}

/// The handler that counts peeks for a launcher, or 0. Its name is `stackglass_wire::PEEK_SYMBOL`.
#[unsafe(no_mangle)]
pub extern "C" fn stackglass_peek_v1() -> usize {
    stackglass_host::peek::handler_for_launcher()
}
