//! Processes and threads: the lanes of the time axis.

use crate::compared::Before;
use serde::Serialize;
use stackglass_profile::frame::file_name;
use stackglass_profile::{Nanos, Recording, sanitize};

/// A process image.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct ProcessLane {
    pid: u32,
    name: String,
    /// Relative to the start of the recording, ns.
    start: u64,
    end: Option<u64>,
}

/// A thread. Its number is its place in the list, from 1.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct ThreadLane {
    /// Index of its process.
    process: u32,
    tid: u32,
    name: String,
    start: u64,
    end: Option<u64>,
}

/// All process images. Those of an earlier recording have its name.
pub(crate) fn processes(recording: &Recording, before: Option<&Before>) -> Vec<ProcessLane> {
    let relative = relative(recording);
    let name = |index: usize, name: &str| match before.filter(|before| before.has_process(index)) {
        Some(before) => format!("{name} in {}", before.name()),
        None => name.to_owned(),
    };
    let lane = |(index, process): (usize, &stackglass_profile::Process)| ProcessLane {
        pid: process.pid,
        name: name(index, &sanitize(file_name(&process.exe))),
        start: relative(process.start),
        end: process.end.map(&relative),
    };
    recording.processes.iter().enumerate().map(lane).collect()
}

/// All threads.
pub(crate) fn threads(recording: &Recording) -> Vec<ThreadLane> {
    let relative = relative(recording);
    let lane = |thread: &stackglass_profile::Thread| ThreadLane {
        process: thread.process.0,
        tid: thread.tid,
        name: sanitize(&thread.name).into_owned(),
        start: relative(thread.start),
        end: thread.end.map(&relative),
    };
    recording.threads.iter().map(lane).collect()
}

fn relative(recording: &Recording) -> impl Fn(Nanos) -> u64 {
    let start = recording.info.start.0;
    move |clock| clock.0.saturating_sub(start)
}
