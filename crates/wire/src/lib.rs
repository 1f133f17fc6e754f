//! The contract between a profiled program and the collector of its samples.
//!
//! A *session* is a folder (mode 0700) that the environment variable [`SESSION_ENV`] names. The launcher creates one
//! [`SessionPage`] in it. A session that only waits for peeks has [`Requests`] there; all others have streams.
//!
//! Samples go through a [`ControlPage`] and a [`stream`], a ring of 64-bit words with one writer and one reader. Both
//! are in one of three places:
//!
//! | sampler | place | writer | reader |
//! | --- | --- | --- | --- |
//! | preload library | a file in the session, one per process image | a thread in the program | the launcher |
//! | the crate | private memory of the program | a thread in the program | another thread of the program |
//! | attached from outside | private memory of the `stackglass` command | its sampling thread | its recording thread |
//!
//! Nothing here allocates, makes a system call or trusts its input: the reader copies the words of an event out of
//! the shared memory before it checks them. `host` and `collect` create, map and unlink the files.
#![allow(unsafe_code, reason = "pages and rings are views of shared memory")]
#![no_std]

mod control;
mod counters;
pub mod cut;
mod event;
pub mod heap;
mod ready;
mod requests;
mod session;
pub mod stream;
pub mod takeover;
pub mod task;

pub use control::{ControlPage, ImageFlags, ProcessState, TEXT_BYTES};
pub use counters::{Counter, Counters};
pub use event::{
    Event, MODULE_TEXT_WORDS, Malformed, ModuleId, State, ThreadId, ThreadName, module_text, text_byte,
};
pub use requests::{REQUESTS_FILE, Requests};
pub use session::{
    HEAP_BEING_READ, HEAP_NOT_READ, HEAP_TO_BE_READ, SESSION_FILE, SessionPage, SessionState, confinement,
};

/// Version of all layouts in this crate. Both sides refuse other versions.
pub const VERSION: u32 = 3;

/// Environment variable that names the session folder.
pub const SESSION_ENV: &str = "STACKGLASS_SESSION";

/// Name of a file in the session folder by which a program requests that its launcher forgets all allocations so far. The launcher
/// removes it when that is done.
pub const CLEAR_ALLOCATIONS_FILE: &str = "clear-allocations";

/// Prefix of the files of profiled processes in the session folder: `p-PID-START`, with START the image's start in
/// CLOCK_MONOTONIC nanoseconds.
pub const PROCESS_FILE_PREFIX: &str = "p-";

/// Symbol that the preload library exports (an `extern "C" fn() -> u32` that returns [`VERSION`]). A program that links the
/// crate finds by it that it is being sampled already.
pub const AGENT_SYMBOL: &core::ffi::CStr = c"stackglass_agent_v1";

/// Symbol that the preload library exports (an `extern "C" fn() -> u32` that returns [`VERSION`] if it records allocations, or is
/// ready to). A program that links the crate then leaves that to the library.
pub const ALLOCATIONS_SYMBOL: &core::ffi::CStr = c"stackglass_allocations_v1";

/// Symbol that the preload library exports (an `extern "C" fn() -> *mut TaskPool`, null without memory). The crate writes
/// the tasks that threads poll to the pool of the preload library.
pub const TASKS_SYMBOL: &core::ffi::CStr = c"stackglass_tasks_v2";

/// Symbol that the preload library exports (an `extern "C" fn() -> usize`): the address of the handler that counts peeks
/// for a launcher that samples from outside, or 0. A program that links the crate replaces that handler by its own.
pub const PEEK_SYMBOL: &core::ffi::CStr = c"stackglass_peek_v1";

/// Name of a mapping that marks a process in which SIGUSR1 requests a peek.
pub const PEEK_MARK: &core::ffi::CStr = c"stackglass-peek";

/// Bytes reserved for the control page, before the stream.
pub const CONTROL_BYTES: usize = 8192;

/// Default size of a stream in bytes: 128 ms of the deepest stacks at 1 kHz on one thread.
pub const STREAM_BYTES: usize = 4 << 20;

/// Deepest stack in frames; deeper stacks are cut and counted.
pub const MAX_FRAMES: usize = 4096;
