//! What a process holds while it stands still: its tasks, its heap, its tables of allocations.
//!
//! - [`tasks`]: reads the await stacks of async tasks, once or again and again.
//! - [`heap`]: takes heap snapshots: freezes a process, finds its blocks and roots, and writes the graph.
//! - [`thread_waits`]: which threads wait for locks, and which threads hold these.
//! - [`task_sampler`]: the thread that takes snapshots of all tasks of a process, for profiles by wall time.
//! - [`task_stacks`]: from what is seen of a task to stacks.
//! - [`allocation_groups`]: from the tables in which a program counts its allocations to groups.
//! - [`linked_crate`]: which programs link the crate `stackglass`.
//!
//! A process is frozen by the crate `attach`, and becomes a core image ([`core_image`]). A program reads itself by a forked child
//! (`forked_child`), or its own memory by the kernel. Nothing here knows how a recording is made or written.
//!
//! What comes from a process is hostile input: numbers are checked before they are used, and addresses before they are read.
#![deny(missing_docs)]
#![allow(unsafe_code, reason = "system calls, and tables in copied memory")]

pub mod allocation_groups;
mod complete;
pub mod core_image;
mod forked_child;
mod glibc_names;
#[cfg(feature = "heap")]
pub mod heap;
#[cfg(feature = "task-sampler")]
pub mod linked_crate;
mod named_frames;
mod sleepers;
#[cfg(feature = "task-sampler")]
pub mod task_sampler;
pub mod task_stacks;
pub mod tasks;
pub mod thread_waits;
