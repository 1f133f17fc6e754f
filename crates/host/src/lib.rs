//! Being a guest in somebody's process.
//!
//! Duty: everything the sampler needs to live inside a program that knows nothing of it: memory that a
//! forked child does not inherit ([`guest`]), the numbered threads ([`slot`]), the mailboxes a signal
//! handler fills ([`mailbox`]), the handler itself ([`signal`]), the request to be looked at ([`peek`]), the
//! session folder and this process's file in it ([`session`], [`image`]).
//!
//! Not its duty: when to look at which thread (that is the sampler's), names, files for people.
//!
//! # Rules kept here
//! - No `malloc`: memory comes from `mmap`, lazily touched.
//! - The handler takes no lock, makes no lazily made thread-local, keeps `errno`, and uses at most 2 KiB of
//!   stack below the kernel's frame; all its scratch lies in the mailbox.
//! - A forked child finds a wiped [`marker`] and thereby knows that it is not the profiled process.
#![allow(unsafe_code, reason = "signal handlers, shared memory and system calls")]

pub mod alternate;
pub mod arrivals;
pub mod events;
pub mod file_limit;
pub mod guest;
pub mod image;
pub mod mailbox;
pub mod marker;
pub mod peek;
pub mod restart;
pub mod session;
pub mod signal;
pub mod slot;
pub mod system;
pub mod task;

pub use guest::Guest;
pub use mailbox::{Mailbox, Ticket};
pub use slot::{Slot, SlotIndex};

use stackglass_unwind::Unwinder;

/// Modules and unwind rules of this process. Inherited by a forked child, where they stay true.
pub static UNWINDER: Unwinder = Unwinder::new();
