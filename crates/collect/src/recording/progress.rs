//! How far a recording has come, for the line that the command shows meanwhile.

use stackglass_profile::recorder::Totals;
use std::time::Duration;

/// Progress of a recording, reported a few times a second.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Time since the start.
    pub elapsed: Duration,
    /// Stacks taken so far.
    pub samples: u64,
    /// Processes that are sampled now.
    pub processes: usize,
    /// Threads that have not ended.
    pub threads: u64,
    /// Number of threads running at a time, on average since the last report.
    pub running: f64,
    /// Share of the stacks that are cut, 0 to 1.
    pub cut: f64,
    /// Sampling has begun (it may begin later than the recording) and has not ended.
    pub sampling: bool,
}

/// Derives [`Progress`] from totals; remembers those of the last report.
#[derive(Default)]
pub(crate) struct ProgressMeter {
    at: Duration,
    awake: u64,
}

impl ProgressMeter {
    /// The progress now, `elapsed` after the start.
    pub(crate) fn measure(
        &mut self,
        elapsed: Duration,
        totals: Totals,
        processes: usize,
        sampling: bool,
    ) -> Progress {
        let passed = (elapsed - self.at).as_nanos().max(1) as f64;
        let running = totals.awake.saturating_sub(self.awake) as f64 / passed;
        *self = ProgressMeter { at: elapsed, awake: totals.awake };
        Progress {
            elapsed,
            samples: totals.hits,
            processes,
            threads: totals.threads,
            running,
            cut: totals.cut as f64 / totals.hits.max(1) as f64,
            sampling,
        }
    }

    /// The samples were forgotten, and with them their totals.
    pub(crate) fn forget(&mut self) {
        self.awake = 0;
    }
}
