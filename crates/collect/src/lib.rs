//! From the events of profiled programs to a recording.
//!
//! - [`recording`]: events become interned samples, and a file that grows. Every kind of recording uses it.
//! - [`launch`]: starts a program and records it. `perf_sampler` samples it with perf events; [`launch::drain`] reads the
//!   streams of the preload library.
//! - [`allocations`]: from the tables in which a program counts its allocations to groups.
//! - [`walltime`]: profiles by wall time, by snapshots of the tasks of a process.
//! - [`attached`]: records a process that is already running, which the crate `attach` samples.
//! - [`in_process`]: the collector of the crate `stackglass`, inside the profiled program.
//! - [`session`]: how a launcher and other commands find each other. [`peeks`]: requests for a report of a running process.
//!
//! Input from a program is hostile. Every length is checked before memory is allocated, everything that is stored
//! counts towards one bound (`n` words), and malformed input leads to a remark, never to a panic. A program that
//! truncates its stream does no harm ([`session::bus_guard`]).
//!
//! What a process holds while it stands still is read by `inspect`. Names and files are the business of `symbols` and `files`, text
//! that of `report` and `cli`.
#![allow(unsafe_code, reason = "system calls and shared memory")]

#[cfg(feature = "launch")]
pub mod allocations;
#[cfg(feature = "launch")]
pub mod attached;
mod cut_reasons;
pub mod in_process;
#[cfg(feature = "launch")]
pub mod launch;
#[cfg(feature = "launch")]
mod memory_file;
pub mod peeks;
#[cfg(feature = "launch")]
mod perf_sampler;
mod private_folder;
pub mod recording;
#[cfg(feature = "launch")]
pub mod session;
#[cfg(feature = "launch")]
pub mod walltime;

pub use recording::EventTranslator;

/// Returns freed memory to the system, if the allocator is that of glibc. Called after debug information was read
/// inside a program. Other allocators keep the memory.
pub fn give_back_memory() {
    // SAFETY: the call takes its own locks and touches no memory in use.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}
