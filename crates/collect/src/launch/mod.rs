//! Starts a program and records it to its end.
//!
//! [`record()`] makes a [session](crate::session), [starts](start) the program, samples it with a [backend](Sampler),
//! writes the recording as it grows, passes signals on, and ends with the program's exit status. Whatever can be
//! refused is refused before the program starts; after that, the program always runs.

mod backend;
pub mod drain;
mod environment;
mod error;
mod heap_at;
mod inherited;
pub mod library;
mod options;
mod outside_peeks;
pub(crate) mod own_allocator;
mod peek_counts;
pub mod program;
mod record;
mod run;
mod sampler;
pub mod start;
mod stolen_time;
pub mod stream_file;
mod stream_peeks;
pub(crate) mod takeover;
mod unaccounted_cpu;
mod unsampled;

pub use error::LaunchError;
pub use heap_at::{HeapAt, HeapAtOptions, SaveSnapshot, SnapshotSummary};
pub use inherited::stdout_was_closed;
pub use library::Library;
pub use options::Options;
pub use program::{NotStartable, Obstacle, Program};
pub use record::{pass_on, record};
pub use run::run;
pub use sampler::Sampler;
pub use stackglass_attach::frozen::FrozenProcess;

use stackglass_profile::End;

/// The exit status of a shell for `end`: 128+N for signal N.
pub fn exit_status(end: End) -> i32 {
    match end {
        End::Exit(status) => status,
        End::Signal(number) => 128 + number,
        End::Running => 0,
    }
}
