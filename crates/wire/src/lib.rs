//! The one contract between a profiled program and whoever collects from it.
//!
//! A *session* is a folder (mode 0700, named by the environment variable [`SESSION_ENV`]).
//! The launcher makes one [`SessionPage`] in it; every process image that is profiled makes
//! one file of its own there: a [`ControlPage`] followed by the [`stream`], a ring
//! of 64-bit words with one writer (the sampler thread inside the program) and one reader
//! (the launcher). Inside a program that uses the crate, the same two pieces live in private
//! memory and the reader is a thread of the same process. A session that only waits for peeks has [`Requests`] in place
//! of these files.
//!
//! Nothing here allocates, makes a system call or trusts what it reads: the reader copies the
//! words of an event out of the shared memory first and checks them afterwards.
//!
//! What this crate does not do: create, map or unlink files (that is `host` and `collect`).
#![allow(unsafe_code, reason = "pages and rings are views of shared memory")]
#![no_std]

mod control;
mod counters;
pub mod cut;
mod event;
mod requests;
mod session;
pub mod stream;
pub mod task;

pub use control::{ControlPage, ImageFlags, ProcessState, TEXT_BYTES};
pub use counters::{Counter, Counters};
pub use event::{Event, Malformed, ModuleId, State, ThreadId, ThreadName, text_byte};
pub use requests::{REQUESTS_FILE, Requests};
pub use session::{SESSION_FILE, SessionPage, SessionState};

/// Version of every layout in this crate. Both sides refuse another one.
pub const VERSION: u32 = 1;

/// Environment variable that names the session folder.
pub const SESSION_ENV: &str = "STACKGLASS_SESSION";

/// First bytes of the file names that profiled processes make in the session folder:
/// `p-PID-START`, PID decimal, START the image's start in CLOCK_MONOTONIC nanoseconds.
pub const PROCESS_FILE_PREFIX: &str = "p-";

/// Symbol that the preload library exports (a `extern "C" fn() -> u32` that returns [`VERSION`]),
/// so that a program which links the crate finds out that it is already being sampled.
pub const AGENT_SYMBOL: &str = "stackglass_agent_v1";

/// Symbol that the preload library exports (a `extern "C" fn() -> *mut TaskPool`, null without memory), so that the crate
/// says in the pool of the preload library which task each thread polls.
pub const TASKS_SYMBOL: &str = "stackglass_tasks_v1";

/// Symbol that the preload library exports (a `extern "C" fn() -> usize`): the address of the handler by which it counts
/// peeks for a launcher that looks from outside, or 0. A program that links the crate puts its own in that place.
pub const PEEK_SYMBOL: &core::ffi::CStr = c"stackglass_peek_v1";

/// Name of the mapping by which a process shows that SIGUSR1 is a peek there.
pub const PEEK_MARK: &core::ffi::CStr = c"stackglass-peek";

/// Bytes reserved for the control page; the stream begins here.
pub const CONTROL_BYTES: usize = 8192;

/// Default size of a stream in bytes: 128 ms of the deepest stacks at 1 kHz on one thread.
pub const STREAM_BYTES: usize = 4 << 20;

/// Deepest stack that is taken in place; what lies above is cut and counted.
pub const MAX_FRAMES: usize = 4096;
