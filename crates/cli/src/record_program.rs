//! Recording a program that Stackglass starts: shared by `record`, `cargo stackglass` and `demo`.

use crate::failure::{Failure, Outcome};
use crate::heap;
use crate::library;
use crate::output::Output;
use crate::perf_refused;
use crate::recording_observer::RecordingObserver;
use crate::sampling_flags::SamplingFlags;
use stackglass_attach::perf_refused::Rule;
use stackglass_collect::launch::{self, HeapAtOptions, LaunchError, Options, Program};
use std::ffi::OsString;
use std::path::PathBuf;

/// A way out where nothing from outside is allowed.
const INSIDE: &str = "--sampler preload: threads, and tasks that the program names itself; its signals may interrupt system calls";
/// The same where no filter rules out timers.
const INSIDE_AT_TICKS: &str =
    "--sampler preload: from inside the program, at each tick of the kernel; no system call comes back short";

/// A program to record.
pub(crate) struct Job {
    pub(crate) program: Program,
    pub(crate) arguments: Vec<OsString>,
    /// Working folder; `None`: the current one.
    pub(crate) folder: Option<PathBuf>,
    /// Environment variables to add.
    pub(crate) variables: Vec<(OsString, OsString)>,
    pub(crate) output: Output,
    pub(crate) sampling: SamplingFlags,
}

/// Records the program, prints the report, and returns the program's exit status.
pub(crate) fn record(job: Job) -> Outcome {
    let sampling = job.sampling;
    let heap_at = sampling.heap_at.map(|at| HeapAtOptions {
        at,
        output: sampling.heap_file.clone(),
        save: heap::save_during_recording,
    });
    let options = Options {
        program: job.program,
        arguments: job.arguments,
        folder: job.folder,
        variables: job.variables,
        library: library::unpack,
        sampler: sampling.sampler.map(Into::into),
        output: job.output.path().to_owned(),
        delay: sampling.delay,
        capacity: sampling.words,
        duration: sampling.duration,
        delay_start: sampling.delay_start,
        follow_children: !sampling.no_children,
        peek: sampling.peek_duration,
        walltime: sampling.walltime,
        allocations: sampling.allocations(),
        heap_at,
        time: !sampling.no_time,
        writer: concat!("stackglass ", env!("CARGO_PKG_VERSION")).into(),
    };
    let mut observer = RecordingObserver::new(sampling.quiet)
        .tracking(sampling.track)
        .viewing(&options.output, sampling.view);
    let end = launch::record(&options, &mut observer).map_err(|error| match &error {
        LaunchError::NoPerf(refused) => {
            let other = match options.allocations {
                Some(_) => Some("--no-time: record allocations alone, without time"),
                None if options.walltime => Some(INSIDE),
                // A filter rules out timers as well.
                None if refused.rule != Rule::Seccomp => Some(INSIDE_AT_TICKS),
                None => None,
            };
            perf_refused::failure(&error, refused, other)
        }
        LaunchError::NoStops(refused) => {
            let other = match sampling.walltime {
                true => INSIDE,
                false => "--heap-at exit: the heap at the end",
            };
            perf_refused::of_copies(&error, refused, Some(other))
        }
        _ => Failure::of_launch(&error),
    })?;
    observer.wait_for_page();
    Ok(launch::exit_status(end))
}
