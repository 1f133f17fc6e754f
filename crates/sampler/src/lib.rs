//! Samples all threads of this process from a dedicated thread.
//!
//! The thread, named `stackglass`, wakes at every tick and reads the CPU clocks of the other threads. A thread that
//! runs gets a signal and walks its own stack. A timer sends the signal while the thread runs its own code, where that is allowed. The stack of a sleeping thread is read from outside once, and reused
//! for as long as its CPU clock does not advance. A sleeping thread is signalled only where its stack cannot be read
//! from outside, once per location, and only in calls that the kernel resumes by itself. The results go as events
//! into the stream of `stackglass-wire`.
//!
//! - [`start`] samples into private memory; the crate `stackglass` uses it.
//! - [`launch`] is the general form; the preload library uses it for a launcher's session.
//!
//! Symbols, profiles and reports are made elsewhere; the signal handler is in `stackglass-host`.
#![allow(unsafe_code, reason = "system calls, and memory made with mmap")]

mod event_writer;
mod in_process;
mod lifecycle;
mod memory;
mod module_events;
mod off_cpu;
mod orders;
mod parts;
mod periodic_checks;
mod poll;
mod privilege;
mod run_state;
mod sampler;
mod schedule;
mod signals;
mod sleep;
mod tasks;
mod threads;

pub use in_process::{Config, Handle, is_delegated, start};
pub use lifecycle::{CreateThread, NotStarted, Plan, end, end_before_own_rights, is_sampler, launch, stop};
pub use orders::Orders;
pub use run_state::{is_running, wait_until_begun};
pub use signals::open_timers::{Forbidden, forbid_timers};
pub use stackglass_host::set_empty_handler;
pub use stackglass_host::system::now;
pub use stackglass_host::{peek, task};
pub use stackglass_unwind::mapping::force_text as force_text_maps;
pub use tasks::waits;
pub use threads::own::{
    count_this_thread_again, expect_helper, expect_no_helper, expects_helper, is_ours, leave_out_this_thread,
};
