//! From the streams of profiled programs to a recording.
//!
//! Two users, one way in: the command starts a program with the preload library and drains one
//! shared file per process image ([`launch`]); the crate drains a stream in its own memory
//! ([`in_process`]). Both turn events into interned samples with the same code ([`image`],
//! [`recorder`]).
//!
//! What arrives from a program is hostile input: every length is bounded before memory is asked
//! for, everything that is kept counts against one bound (`n` words), and nonsense ends in a
//! remark, never in a panic. A program that truncates its stream under our feet does not take
//! us with it ([`launch::bus_guard`]).
//!
//! Not done here: names and files (`symbols`, `files`), the look of anything (`profile`, `cli`).
#![allow(unsafe_code, reason = "system calls, shared memory and ptrace")]

pub mod activity;
mod address_space;
#[cfg(feature = "launch")]
pub mod attached;
pub mod image;
pub mod in_process;
#[cfg(feature = "launch")]
pub mod launch;
#[cfg(feature = "launch")]
mod outside;
pub mod peek_answer;
pub mod peek_question;
pub mod recorder;
#[path = "system_calls_x86_64.rs"]
mod system_calls;

pub use image::Image;
pub use recorder::Recorder;

/// Gives memory that was freed back to the system, where glibc's allocator has it: after debug information was read
/// inside a program that has better use for it. Programs with another allocator keep it for themselves.
pub fn give_back_memory() {
    // SAFETY: the call takes its own locks and touches no memory in use.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}
