//! See where your program spends its time.
//!
//! ```
//! # fn work() -> u64 { (0..200_000u64).fold(1, |a, b| a.wrapping_mul(31) ^ b) }
//! let answer = stackglass::profile!(work()); // the value of work()
//! stackglass::print(); // a tree of where the time went, all threads
//! # assert_eq!(answer, work());
//! ```
//!
//! While [`profile!`] runs, a thread of this process samples all other threads 1 000 times a second. A running thread is
//! interrupted by a signal (SIGURG) for about 12 µs and records its stack. The stack of a sleeping thread is read from
//! outside; only where that is impossible, the thread is signalled once per location, in a call that the kernel resumes
//! by itself. Samples add up over all profiled regions until [`clear`]. Names and their meaning are those of Julia's
//! `Profile`.
//!
//! [`Report`] and [`Callers`] show the samples in other ways:
//!
//! ```
//! use stackglass::{Callers, Format, GroupBy, Report, SortedBy};
//!
//! # let folder = std::env::temp_dir();
//! # let path = folder.join(format!("stackglass-doc-{}.txt", std::process::id()));
//! stackglass::profile!(std::hint::black_box((0..1000).sum::<u32>()));
//! let recording = stackglass::recording();
//! let table = Report::new().format(Format::Flat).sorted_by(SortedBy::Overhead).group_by(GroupBy::Thread);
//! table.write(&recording, &mut std::io::stdout())?;
//! table.write_to_path(&recording, &path)?; // 1 000 columns wide
//! match Callers::new("Parser::next").count(&recording) {
//!     Ok(callers) => callers.iter().for_each(|caller| println!("{} times from {}", caller.count, caller.frame.func)),
//!     Err(error) => println!("{error}"), // no sample has such a function
//! }
//! # std::fs::remove_file(&path)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The module `allocs` shows in the same way what the program allocates, and counts allocations in tests.
//!
//! **Set-up.** The default feature `cli` is the command (`cargo install stackglass`); a program does without it. Build with
//! line tables; otherwise reports name functions but no lines:
//!
//! ```toml
//! [dependencies]
//! stackglass = { version = "0.1", default-features = false, features = ["allocs"] }
//!
//! [profile.release]
//! debug = "line-tables-only"
//! ```
//!
//! **Guarantees.** It needs no root, no perf events and no frame pointers. On profiled threads it neither allocates nor takes
//! a lock, and it does not crash on a damaged stack. A full buffer stops sampling, never the program. Memory is bounded
//! by `n` ([`init`]).
//!
//! **Limits.** It runs on Linux on x86-64 only. Not sampled are: running threads of a program that installs its own handler for
//! SIGURG after the first start (the report says so), threads that block all signals (the report names them), and
//! threads whose seccomp mode forbids the handler's system calls. A fibre's stack needs room for a signal: the
//! kernel writes up to 3.5 KiB to it, and the handler 2 KiB. A running thread that begins to wait just before its signal arrives
//! may get `EINTR` (from `poll`, `epoll_wait`, a socket with a time-out; signal(7) names them all). To profile a
//! program without changing it, use the command `stackglass record -- ./program`. Under that command this crate does not
//! sample.

#[cfg(feature = "allocs")]
pub mod allocs;
mod error;
#[cfg(feature = "flame")]
mod flame_page;
#[cfg(feature = "heap")]
mod heap_snapshot;
mod init;
pub mod peek;
mod profiler;
mod region;
mod running;
mod samples;
mod settings;
pub mod task;

#[cfg(feature = "macros")]
pub use stackglass_macros::task;

#[cfg(feature = "allocs")]
pub use allocs::clear_malloc_data::clear_malloc_data;
#[cfg(feature = "files")]
pub use stackglass_files::{WriteError, jlprof};
#[cfg(feature = "flame")]
pub use stackglass_flame as flame;
#[cfg(feature = "allocs")]
pub use stackglass_heap::Alloc;

#[cfg(feature = "flame")]
pub use flame_page::flamegraph;
#[cfg(feature = "heap")]
pub use heap_snapshot::{
    HeapSnapshotError, HeapSnapshotOptions, take_heap_snapshot, take_heap_snapshot_to,
    take_heap_snapshot_with, write_heap_snapshot,
};

pub use error::{InitError, ProfileKind, StartError};
pub use init::init;
pub use profiler::Profiler;
pub use region::profile;
pub use running::{clear, is_buffer_full, is_running};
pub use samples::{fetch, print, print_tree, recording, report, retrieve};
pub use settings::{DEFAULT_DELAY, DEFAULT_N, SHORTEST_DELAY, Settings};

pub use stackglass_profile::{
    Data, DataError, Dictionary, Frame, NoAddressLeft, Recording, ShortPath, flatten,
};
pub use stackglass_report::callers::{Answer, Called};
pub use stackglass_report::{
    BUFFER_FULL, Caller, Callers, CallersError, FILE_COLUMNS, FilePattern, Format, GroupBy, Links, Metric,
    NO_SAMPLES, NO_SAMPLES_IN_GROUP, Pick, Recur, Report, ReportError, SortedBy, Source, Style, UnknownValue,
    Written,
};

/// The parts of a [`Recording`], and the blocks of [`Data`].
pub mod model {
    pub use stackglass_profile::symbols::{Language, Missing, ModuleNote};
    pub use stackglass_profile::task_dump;
    pub use stackglass_profile::word_buffer::{Block, Blocks};
    pub use stackglass_profile::{
        Address, AllocatingProcess, AllocationCounts, AllocationGroup, AllocationKind, AllocationSampling,
        Allocations, Cut, End, Location, LocationId, MemoryPoint, Module, ModuleIndex, Nanos, Process,
        ProcessIndex, RecordingInfo, Sample, SizeClass, StackId, Stacks, State, Symbols, Task, TaskId,
        Thread, ThreadNumber,
    };
}

/// Profiles an expression and returns its value.
///
/// Regions may nest and run on several threads at once. They share one buffer, and sampling stops when the last one ends,
/// also by a panic, `return` or `?`. If sampling cannot start, the expression still runs, and one line on standard error
/// says why. [`Profiler::start`] returns that error instead.
///
/// ```
/// fn parse(text: &str) -> Result<u64, std::num::ParseIntError> {
///     let n = stackglass::profile!(text.parse::<u64>()?); // leaves parse() on error
///     Ok(n + 1)
/// }
/// assert_eq!(parse("41"), Ok(42));
/// ```
#[macro_export]
macro_rules! profile {
    ($($body:tt)*) => {{
        let region = $crate::__private::Region::enter();
        let value = { $($body)* };
        drop(region);
        value
    }};
}

/// Profiles an expression by wall time and returns its value. Each tick samples one live [task](mod@crate::task), chosen at
/// random, running or waiting.
///
/// Every task gets the same share of samples, so the report shows how tasks spend their time, not how CPUs do. A waiting task
/// appears with its await stack: the functions and lines in which it is suspended. Its polls and its waits are in one tree, from
/// the task's own function on. [`Recording::tasks`] has its longest wait. In a program without tasks, threads are sampled instead.
/// It cannot run together with [`profile!`].
///
/// Await stacks need the types of async functions: full debug information (`debug = 2`) of the crate that has them. Without, and
/// where a wait is over before it is read, some tens of microseconds after the sample, a waiting task appears as `[waiting]`. A thread
/// of the profiler reads the types when it meets the first waiting task, which takes some tenths of a second and some tens of
/// megabytes. Meanwhile, another thread copies what each sampled task waits for, up to 32 MiB. If the expression ends before, the end
/// waits for the types.
///
/// ```
/// let answer = stackglass::profile_walltime!((1..=10).sum::<u32>());
/// assert_eq!(answer, 55);
/// ```
#[macro_export]
macro_rules! profile_walltime {
    ($($body:tt)*) => {{
        let region = $crate::__private::Region::enter_walltime();
        let value = { $($body)* };
        drop(region);
        value
    }};
}

#[doc(hidden)]
pub mod __private {
    #[cfg(feature = "allocs")]
    pub use crate::allocs::region::Region as AllocsRegion;
    pub use crate::region::Region;
}
