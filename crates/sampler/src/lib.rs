//! Samples all threads of this process from a dedicated thread.
//!
//! The thread, named `stackglass`, wakes at every tick and reads the CPU clocks of the other threads. A thread that
//! runs gets a signal and walks its own stack. The stack of a sleeping thread is read from outside once, and reused
//! for as long as its CPU clock does not advance. A sleeping thread is signalled only where its stack cannot be read
//! from outside, once per location, and only in calls that the kernel resumes by itself. The results go as events into the stream of `stackglass-wire`.
//!
//! - [`start`] samples into private memory; the crate `stackglass` uses it.
//! - [`launch`] is the general form; the preload library uses it for a launcher's session.
//!
//! Symbols, profiles and reports are made elsewhere; the signal handler is in `stackglass-host`.
#![allow(unsafe_code, reason = "system calls, and memory made with mmap")]

mod call_ends;
mod event_writer;
mod in_process;
mod lifecycle;
mod memory;
mod module_events;
mod open_files;
mod orders;
mod own_threads;
mod parts;
mod pending_signal;
mod periodic_checks;
mod poll;
mod privilege;
mod recently_exited;
mod run_state;
mod sampler;
mod samples;
mod schedule;
mod signals;
mod sleep_reader;
mod sleeping;
mod stack_bounds;
mod task_choice;
mod task_folder;
mod task_names;
mod thread_discovery;
mod thread_files;
mod thread_status;
mod thread_table;
mod walltime;

pub use in_process::{Config, Handle, is_delegated, start};
pub use lifecycle::{CreateThread, NotStarted, Plan, is_sampler, launch, stop};
pub use orders::Orders;
pub use own_threads::{
    count_this_thread_again, expect_helper, expect_no_helper, expects_helper, is_ours, leave_out_this_thread,
};
pub use run_state::is_running;
pub use stackglass_host::set_empty_handler;
pub use stackglass_host::{peek, task};
pub use stackglass_unwind::mapping::force_text as force_text_maps;
