//! The samples of `top` and the figures made from them: what the screen and `--json` have in common.

use super::model::Model;
use stackglass_attach::Stopped;
use stackglass_collect::attached::Attached;
use stackglass_procfs::process;
use stackglass_profile::{End, Nanos, Recorder, Recording, RecordingInfo};
use std::time::{Duration, Instant, SystemTime};

/// Time between two refreshes.
pub(super) const REFRESH_INTERVAL: Duration = Duration::from_secs(1);
/// Limit of the recording that the key s saves, in words. When it is full, it is cleared.
const CAPACITY_WORDS: u64 = 20_000_000;

/// A process that is being sampled, and its figures.
pub(super) struct Figures {
    /// The figures up to the last refresh.
    pub(super) model: Model,
    attached: Attached,
    recorder: Recorder,
    /// Number of samples that the model already has.
    seen: usize,
    refreshed: Instant,
}

impl Figures {
    /// No samples yet.
    pub(super) fn new(attached: Attached, pid: u32, delay: Duration, model: Model) -> Figures {
        let started = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let info = RecordingInfo {
            command: process::arguments(pid),
            started: started.as_nanos() as u64,
            start: Nanos(Attached::now()),
            delay: Nanos(delay.as_nanos() as u64),
            capacity: CAPACITY_WORDS,
            writer: concat!("stackglass ", env!("CARGO_PKG_VERSION")).into(),
            ..RecordingInfo::default()
        };
        Figures { model, attached, recorder: Recorder::new(info), seen: 0, refreshed: Instant::now() }
    }

    /// Reads the samples since the last call. Call it at least every 50 ms.
    pub(super) fn drain(&mut self) {
        self.attached.drain(&mut self.recorder);
    }

    /// Why the process is not sampled any more; `None` while it is.
    pub(super) fn stopped(&self) -> Option<Stopped> {
        self.attached.stopped()
    }

    /// Time since the last refresh.
    pub(super) fn age(&self) -> Duration {
        self.refreshed.elapsed()
    }

    /// Adds the new samples to the model. Returns the time since the last refresh, in ns.
    pub(super) fn refresh(&mut self) -> u64 {
        let wall = self.age().as_nanos() as u64;
        // Samples must not grow after they are counted.
        self.recorder.settle();
        self.model.add(self.recorder.recording(), self.seen, wall);
        self.discard();
        wall
    }

    /// Begins a new interval; samples that the model does not have are not added to it.
    pub(super) fn discard(&mut self) {
        self.recorder.settle();
        self.refreshed = Instant::now();
        self.seen = self.recorder.recording().samples.len();
        if self.recorder.is_full() {
            let before = self.recorder.clear_samples();
            self.attached.forget_stacks(&before, &mut self.recorder);
            self.recorder.info_mut().start = Nanos(Attached::now());
            self.seen = 0;
        }
    }

    /// Detaches, calls `stand`, and samples again. The time in between is not counted.
    pub(super) fn interrupt_for(&mut self, stand: impl FnOnce()) {
        self.attached.interrupt_for(&mut self.recorder, stand);
        self.seen = self.recorder.recording().samples.len();
        self.refreshed = Instant::now();
    }

    /// All samples so far, with names.
    pub(super) fn recording_so_far(&self) -> Recording {
        let mut recording = self.recorder.recording().clone();
        recording.info.wall = Nanos(Attached::now().saturating_sub(recording.info.start.0));
        recording.info.end = Some(End::Running);
        stackglass_symbols::symbolize(&mut recording, &Default::default(), &mut |_| ());
        recording
    }

    /// Detaches from the process.
    pub(super) fn detach(&mut self) {
        self.attached.stop();
    }
}
