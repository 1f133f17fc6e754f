//! See where your program spends its time.
//!
//! ```
//! # fn work() -> u64 { (0..200_000u64).fold(1, |a, b| a.wrapping_mul(31) ^ b) }
//! let answer = stackglass::profile!(work()); // gives back what work() gives back
//! stackglass::print(); // a tree of where the time went, all threads
//! # assert_eq!(answer, work());
//! ```
//!
//! While [`profile!`] runs, a thread of this process looks at every thread of it 1 000 times a second:
//! running ones are interrupted by a signal (SIGURG) for about a microsecond and leave their stack;
//! sleeping ones are not touched, their stack is read from outside. Samples add up over all profiled
//! regions until [`clear`]. Julia's `Profile` is the model: the names and their meaning are its.
//!
//! Everything else there is to say about the samples is a [`Report`] or an answer of [`Callers`]:
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
//! for caller in Callers::of_suffix("Parser::next").count(&recording)? {
//!     println!("{} times from {}", caller.count, caller.frame.func);
//! }
//! # std::fs::remove_file(&path)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **What you should do.** Build with line tables, or reports name functions only:
//!
//! ```toml
//! [profile.release]
//! debug = "line-tables-only"
//! ```
//!
//! **What it promises.** No root, no perf events, no frame pointers needed. Nothing on the profiled
//! threads allocates, takes a lock or can crash on a bad stack; a full buffer stops the sampling, never the
//! program. Memory is bounded by `n` ([`init`]).
//!
//! **What it does not do.** Other platforms than Linux on x86-64; programs that take SIGURG for themselves after the
//! first start (their threads are then seen asleep only, and the report says so); the time of
//! threads that block all signals (the report names them), and of threads that have forbidden themselves system calls.
//! Fibres need stacks with room for a signal: the kernel puts up to 3.5 KiB on the stack of whoever it interrupts, before any
//! code of ours runs, and 2 KiB are ours. A running thread that begins a wait while the signal is on its way may see `EINTR` from
//! it (`poll`, `epoll_wait`, a socket with a time-out; signal(7) names them all). To profile a program without changing it,
//! use the command: `stackglass record -- ./program`. Under that command this crate leaves the sampling to it.

mod error;
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

pub use error::{InitError, ProfileKind, StartError};
pub use init::init;
pub use profiler::Profiler;
pub use region::profile;
pub use running::{clear, is_buffer_full, is_running};
pub use samples::{fetch, print, recording, report, retrieve};
pub use settings::{DEFAULT_DELAY, DEFAULT_N, SHORTEST_DELAY, Settings};

pub use stackglass_profile::{
    Data, DataError, Dictionary, Frame, NoAddressLeft, Recording, ShortPath, flatten,
};
pub use stackglass_report::callers::{Answer, Called};
pub use stackglass_report::{
    Caller, Callers, CallersError, FILE_COLUMNS, FilePattern, Format, GroupBy, Links, NO_SAMPLES,
    NO_SAMPLES_IN_GROUP, Pick, Recur, Report, ReportError, SortedBy, Source, Style, UnknownValue, Written,
};

/// What a [`Recording`] is made of, and the blocks of [`Data`].
pub mod model {
    pub use stackglass_profile::symbols::{Missing, ModuleNote};
    pub use stackglass_profile::word_buffer::{Block, Blocks};
    pub use stackglass_profile::{
        About, Address, Cut, End, Location, LocationId, Module, ModuleIndex, Nanos, Process, ProcessIndex,
        Sample, StackId, Stacks, State, Symbols, Task, TaskId, Thread, ThreadNumber,
    };
}

/// Profiles an expression and gives back its value.
///
/// Regions may nest and run on several threads at once: they share one buffer, and sampling stops when the
/// last one ends, also when it ends by a panic, `return` or `?`. If sampling cannot start, the expression
/// runs all the same and one line on standard error says why; use [`Profiler::start`] to handle that yourself.
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

/// Profiles an expression by wall time and gives back its value: each tick looks at one live [task](mod@crate::task) chosen at
/// random, running or waiting.
///
/// Every task gets the same share of looks, so the report tells how tasks spend their time, not how processors do. A
/// task that waits shows as `[waiting]` under its name and the place where it was made; [`Recording::tasks`] has its
/// longest wait. In a program without tasks threads are looked at in their place. Not together with [`profile!`].
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
    pub use crate::region::Region;
}
