//! Living inside a process that does not know of the profiler.
//!
//! This crate has what the sampler needs inside a program: memory that a forked child does not inherit ([`guest`]), numbered threads
//! ([`slot`]), the mailboxes ([`mailbox`]) that the signal handler fills, the signal itself ([`signal`]), the timers that send it
//! ([`user_timer`], [`call_timer`]), peek requests ([`peek`]), the session folder and this process's file in it ([`session`],
//! [`stream_memory`]).
//!
//! It does not decide when to sample which thread (`stackglass-sampler` does), and knows nothing of names or reports.
//!
//! # Rules
//! - No `malloc`: memory comes from `mmap` and is touched lazily.
//! - The handler takes no lock, uses no lazily initialised thread-local, preserves `errno`, and uses at most 2 KiB of
//!   stack below the kernel's frame. All its working memory lies in the mailbox.
//! - A forked child finds a wiped page ([`fork_guard`]) and so learns that it is not the sampled process.
#![allow(unsafe_code, reason = "signal handlers, shared memory and system calls")]

mod action;
pub mod agent;
pub mod alternate_stack;
pub mod call_timer;
pub mod confined;
pub mod file_limit;
pub mod fork_guard;
pub mod guest;
mod handler;
pub mod mailbox;
pub mod module_event;
pub mod peek;
mod program_actions;
pub mod restart;
pub mod session;
pub mod signal;
pub mod slot;
pub mod stream_memory;
pub mod system;
pub mod task;
pub mod thread_events;
pub mod user_timer;

pub use action::Action;
pub use guest::Guest;
pub use handler::{is_first_stack, set_empty as set_empty_handler};
pub use mailbox::{Mailbox, SignalToken};
pub use program_actions::has_our_handler;
pub use slot::{Slot, SlotIndex};

use stackglass_unwind::Unwinder;

/// Modules and unwind rules of this process. Inherited by a forked child, where they stay true.
pub static UNWINDER: Unwinder = Unwinder::new();
