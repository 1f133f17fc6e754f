//! Time: when to look at which thread of the own process, and how to get its stack.
//!
//! One thread named `stackglass` wakes at every tick, reads the CPU clocks of the other threads, and decides:
//! who has run is signalled and takes its own stack ([`look`](self)); who sleeps is left alone, its stack read
//! from outside once and counted again for as long as its clock stands still. Everything that is found goes as
//! events into the stream of `stackglass-wire`.
//!
//! - [`start`] samples the own process into private memory (the crate's way).
//! - [`launch`] is the general form, used by the preload library for a launcher's session.
//!
//! Not its duty: symbols, profiles, files for people; how the signal handler works (that is `stackglass-host`).
#![allow(unsafe_code, reason = "system calls, and memory made with mmap")]

mod attendance;
mod calls;
mod departed;
mod events;
mod in_process;
mod kept;
mod look;
mod memory;
mod modules;
mod outlet;
mod polled;
mod privilege;
mod roster;
mod run;
mod sampler;
mod tasks;
mod walltime;

pub use in_process::{Config, Handle, is_delegated, start};
pub use run::{
    CreateThread, NotStarted, Plan, control, count_this_thread_again, expect_helper, expect_no_helper,
    expects_helper, is_ours, is_running, is_sampler, launch, leave_out_this_thread, stop,
};
pub use sampler::Orders;
pub use stackglass_host::set_empty_handler;
pub use stackglass_host::{peek, task};
pub use stackglass_unwind::mapping::force_text as force_text_maps;
