//! A peek and the program's profile share one run, because a process has one sampler.
//!
//! A peek without a profile has a separate run, whose samples belong to it alone. If a profile begins, ends or is cleared
//! meanwhile, the peek copies its samples so far, so that neither affects the other.

use super::{Running, state};
use crate::{ProfileKind, StartError};
use stackglass_profile::{Nanos, ProcessIndex, Recording};
use std::time::Duration;

/// A peek in progress.
#[derive(Default)]
pub(super) struct ActivePeek {
    /// Samples of runs that ended or were cleared meanwhile.
    saved: Recording,
    /// The first sample of the run that belongs to the peek.
    from: usize,
}

/// Begins a peek, and returns its delay: the requested one, unless a profile is running with another. `None` if
/// `stackglass record` answers.
pub(crate) fn begin(delay: Option<Duration>) -> Result<Option<Duration>, StartError> {
    let mut state = state();
    if state.run.is_none() {
        let settings = state.settings();
        state.start_run(settings.n, delay.unwrap_or(settings.delay), ProfileKind::Threads)?;
    }
    let Some(run) = &state.run else { return Ok(None) };
    let delay = run.delay;
    let from = run.collector.with(|recorder| {
        recorder.settle();
        recorder.recording().samples.len()
    });
    // If the peek has just started the run, all its samples belong to the peek.
    let from = if state.guards == 0 { 0 } else { from };
    let mut info = state.info();
    info.delay = Nanos(delay.as_nanos() as u64);
    state.peek = Some(ActivePeek { saved: Recording { info, ..Recording::default() }, from });
    Ok(Some(delay))
}

/// The last stack of each thread, without names.
pub(crate) fn latest() -> Recording {
    let state = state();
    let Some(run) = &state.run else { return Recording::default() };
    run.collector.with(|recorder| {
        let recording = recorder.recording();
        recording.excerpt(recording.latest(ProcessIndex(0)))
    })
}

/// Ends the peek and returns its samples, without names.
pub(crate) fn end() -> Recording {
    let mut state = state();
    if state.guards == 0 {
        // The last stacks are still to come.
        if let Some(run) = &state.run {
            run.sampler.stop();
        }
    }
    state.save_for_peek();
    if state.guards == 0 {
        state.stop_run();
    }
    state.peek.take().unwrap_or_default().saved
}

impl Running {
    /// Copies the samples of the peek so far. To be called before samples are forgotten.
    pub(super) fn save_for_peek(&mut self) {
        let (Some(run), Some(peek)) = (&self.run, &mut self.peek) else { return };
        let from = peek.from;
        let piece = run.collector.with(|recorder| {
            recorder.settle();
            let recording = recorder.recording();
            recording.excerpt(from..recording.samples.len())
        });
        peek.saved.absorb(&piece);
        peek.from = 0;
    }
}
