//! The model of a profile.
//!
//! A [`Recording`] is what a profiled program left behind: processes, threads, modules, interned stacks and the
//! samples that point to them. A [`Recorder`] is one that grows. [`Symbols`] add names. [`word_buffer`] shows the same as Julia's `Profile` does.
//!
//! Recorders, files and symbolizers depend on this crate only. Trees, answers and reports are made of it in
//! `stackglass-report`. Nothing here reads files, asks the system or knows how samples are taken.

mod absorb;
mod activity;
pub mod address_space;
pub mod allocations;
mod await_frames;
mod command;
mod cut;
mod excerpt;
pub mod frame;
pub mod heap_graph;
pub mod ids;
mod reached_blocks;
pub mod recorder;
pub mod recording;
pub mod runtimes;
mod sanitize;
mod small_numbers;
pub mod snapshots;
pub mod stacks;
pub mod symbols;
mod task;
pub mod task_dump;
pub mod thread_waits;
mod time_range;
mod waiting_tasks;
pub mod word_buffer;

pub use activity::Activity;
pub use allocations::{
    AllocatingProcess, AllocationCounts, AllocationGroup, AllocationKind, AllocationSampling, Allocations,
    MemoryPoint, SizeClass, UNKNOWN_TEXT, UNKNOWN_TYPE, is_unknown_type, unknown_that,
};
pub use await_frames::{AwaitKind, AwaitLocation, is_await_module};
pub use command::command_text;
pub use cut::Cut;
pub use frame::{Frame, ShortPath};
pub use ids::{Address, LocationId, ModuleIndex, Nanos, ProcessIndex, StackId, TaskId, ThreadNumber};
pub use reached_blocks::{PortableStack, ReachedBlocks};
pub use recorder::Recorder;
pub use recording::{
    End, Module, Process, Recording, RecordingInfo, Sample, SampleKind, State, TASK_SNAPSHOTS, Thread,
};
pub use sanitize::sanitize;
pub use small_numbers::SmallNumbers;
pub use snapshots::{Snapshots, snapshots};
pub use stacks::{Location, Stacks};
pub use symbols::Symbols;
pub use task::{TASKS_MODULE, Task, WAITING};
pub use time_range::TimeRange;
pub use word_buffer::{Data, DataError, Dictionary, NoAddressLeft, flatten};
