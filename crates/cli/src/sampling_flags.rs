//! The flags that `record` and `cargo stackglass` share: how and how long a program is sampled.

use crate::track_allocation::TrackFlags;
use crate::values::{allocation_sampling, delay, duration, heap_at, positive_duration, words};
use clap::{ArgGroup, Args, ValueEnum};
use stackglass_collect::allocations::AllocationSettings;
use stackglass_collect::launch::{HeapAt, Sampler};
use stackglass_profile::AllocationSampling;
use std::path::PathBuf;
use std::time::Duration;

/// How a program is sampled.
#[derive(Args, Clone, Debug)]
#[command(group = ArgGroup::new("allocating").multiple(true))]
pub(crate) struct SamplingFlags {
    /// Time between two samples of each thread (100us to 1h)
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = delay)]
    pub(crate) delay: Duration,

    /// Memory for samples, in words; sampling stops when it is full (0: no limit)
    #[arg(long = "n", value_name = "WORDS", default_value = "10000000", value_parser = words)]
    pub(crate) words: u64,

    /// Sample for this long, then report; the program runs on
    #[arg(long, value_name = "TIME", value_parser = positive_duration)]
    pub(crate) duration: Option<Duration>,

    /// Start sampling after this time
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) delay_start: Option<Duration>,

    /// Sample only the program itself, or the processes given, not those they start
    #[arg(long)]
    pub(crate) no_children: bool,

    /// Wall-time profile: where async tasks spend their time, running or waiting. Each live task counts alike (threads, if there are no tasks). Programs with tokio and `debug = 2` show the line of each `.await`
    #[arg(long)]
    pub(crate) walltime: bool,

    /// Length of the profile that follows SIGUSR1 (a peek); only with the sampler `preload`
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = positive_duration)]
    pub(crate) peek_duration: Duration,

    /// How stacks are taken [default: perf; preload for programs that contain the crate]
    #[arg(long, alias = "driver", value_name = "SAMPLER")]
    pub(crate) sampler: Option<SamplerName>,

    /// Record allocations: all, each with a probability (0.1), or one sample in a number of bytes (512KiB)
    #[arg(long, group = "allocating", value_name = "RATE", num_args = 0..=1, require_equals = true, default_missing_value = "1", value_parser = allocation_sampling)]
    pub(crate) allocs: Option<AllocationSampling>,

    /// Keep a heap snapshot in the recording: `exit` when the program ends, `peak` when live bytes are highest, or a signal (`USR1`, `HUP`, `QUIT`) to stackglass
    #[arg(long, requires = "allocs", value_name = "WHEN", value_parser = heap_at)]
    pub(crate) heap_at: Option<HeapAt>,

    /// Save the heap snapshot as a .heapsnapshot file, not in the recording
    #[arg(long, requires = "heap_at", value_name = "FILE")]
    pub(crate) heap_file: Option<PathBuf>,

    /// Take no samples of time (with --allocs or --track-allocation)
    #[arg(long, requires = "allocating")]
    pub(crate) no_time: bool,

    #[command(flatten)]
    pub(crate) track: TrackFlags,

    /// Show the recording as a page in the browser while it grows, as `stackglass view` does
    #[arg(long)]
    pub(crate) view: bool,

    /// Print neither the status line nor the report
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

impl SamplingFlags {
    /// What is recorded of allocations.
    pub(crate) fn allocations(&self) -> Option<AllocationSettings> {
        let every = self.track.track_allocation.as_ref().map(|_| AllocationSampling::Every);
        self.allocs.or(every).map(|sampling| AllocationSettings { sampling })
    }
}

/// The sampler, as `--sampler` names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum SamplerName {
    /// The kernel copies them (perf events); nothing is added to the program
    Perf,
    /// Where perf is refused: each running thread is stopped. This interrupts system calls: reads and writes may come back short
    Ptrace,
    /// A library inside the program, with one more thread. Its signals interrupt system calls under a seccomp filter, before Linux 5.9
    /// and with --walltime. Delays below 1 ms cost much
    Preload,
}

impl From<SamplerName> for Sampler {
    fn from(name: SamplerName) -> Sampler {
        match name {
            SamplerName::Perf => Sampler::Perf,
            SamplerName::Ptrace => Sampler::Ptrace,
            SamplerName::Preload => Sampler::Preload,
        }
    }
}
