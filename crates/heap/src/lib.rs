//! Counts allocations inside a program: by stack, thread, async task and size class.
//!
//! Duty: [`allocated`], [`freed`] and [`before_reallocation`] are called by the hooks of the preload library, and by the
//! allocator of the crate, for each allocation while a recording is on. They walk the stack, count, and remember the live
//! block. The counts lie in [tables](stackglass_wire::heap) that the launcher, or another part of the program, reads.
//!
//! [`Alloc`] is that allocator, [`own_recording`] the recording that a process makes of itself, [`ThreadScope`] and
//! [`ProcessScope`] count without stacks.
//!
//! Not its duty: to interpose functions, names, types, files.
//!
//! # Rules
//! - Nothing here allocates or waits. A thread that finds no memory counts that and goes on.
//! - The only state of a thread is a pointer in static thread-local storage, without constructor or destructor.
//! - Single allocations are not stored, unless a reader in the same process asks for [records](read_records). Memory grows with
//!   the number of distinct stacks, and with the live blocks.
//! - A signal handler that allocates meanwhile is counted as lost; nothing is inconsistent.
//! - A forked child finds the wiped page of `host::fork_guard` and records nothing.
#![allow(unsafe_code, reason = "hooks of an allocator, shared memory, thread-local storage")]

mod barrier;
mod blocks;
mod clear;
mod commit;
mod counters;
#[path = "cycles_x86_64.rs"]
mod cycles;
mod draw;
mod global_alloc;
mod modules;
mod nodes;
pub mod own_recording;
mod peak;
mod recorder;
mod records;
#[path = "registers_x86_64.rs"]
mod registers;
mod slots;
mod stats;
mod switch;
#[path = "thread_pointer_x86_64.rs"]
mod thread_pointer;

pub use blocks::{Granule, may_have};
pub use clear::{RecordSums, read_records};
pub use commit::{InFolder, TablesError, tell_refusal};
pub use draw::Sampling;
pub use global_alloc::{Alloc, LeftOut, probe};
pub use recorder::{
    Ended, Kind, Memory, after_fork, allocated, before_reallocation, confine, end, freed, is_prepared,
    leaves_out, modules_changed, prepare, reallocation_failed, session, start, stop, tables,
};
pub use records::Record;
pub use registers::here;
pub use stackglass_unwind::stack_cache::Start;
pub use stats::{MOST_SCOPES, ProcessScope, StatsCounts, ThreadScope};
