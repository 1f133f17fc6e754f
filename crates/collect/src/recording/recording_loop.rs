//! The loop of a recording with a file: it reads samples, writes the file, reports progress and answers requests until the
//! recording ends. A program that we start and a process that is already running are recorded by the same loop.

use super::Observer;
use super::process_titles::ProcessTitles;
use super::progress::ProgressMeter;
use super::recording_file::RecordingFile;
use crate::allocations::AllocationSettings;
use crate::session::Session;
use crate::session::clearing::Request;
use crate::session::signals::{Signal, Signals};
use stackglass_procfs::clock;
use stackglass_profile::{End, Nanos, Recorder, Recording};
use stackglass_wire::SessionState;
use std::os::fd::RawFd;
use std::time::{Duration, Instant};

/// Time between two appends to the file and two progress reports.
const WRITE_EVERY: Duration = Duration::from_millis(250);
/// Time between two checks for a request to forget all samples.
const CHECK_REQUESTS_EVERY: Duration = Duration::from_millis(100);

/// What is recorded.
pub(crate) trait Source {
    /// Descriptors that become readable when samples should be read.
    fn descriptors(&self) -> Vec<RawFd> {
        Vec::new()
    }

    /// Time until samples should be read, unless a descriptor becomes readable earlier.
    fn pause(&mut self) -> Duration;

    /// Reads the samples that were taken since the last call.
    fn read(&mut self, recorder: &mut Recorder, observer: &mut dyn Observer);

    /// Brings the recording up to date before it is appended to the file.
    fn settle(&mut self, recorder: &mut Recorder) {
        let _ = recorder;
    }

    /// Brings all of the recording up to date, for a reader of the whole.
    fn settle_all(&mut self, recorder: &mut Recorder) {
        let _ = recorder;
    }

    /// Starts or stops the sampling.
    fn set_sampling(&mut self, on: bool, recorder: &mut Recorder);

    /// Forgets all samples; processes, threads and modules stay known.
    fn forget_samples(&mut self, recorder: &mut Recorder);

    /// Forgets all allocations that were counted before this moment (CLOCK_MONOTONIC, ns), when the recording
    /// [began anew](AllocationSettings::begin_anew).
    fn forget_allocations(&mut self, before: u64, recorder: &mut Recorder) {
        let _ = (before, recorder);
    }

    /// Number of processes that are sampled now.
    fn processes(&self) -> usize;

    /// CPU time that sampling has used outside of this process, ns.
    fn sampler_cpu(&self) -> u64 {
        0
    }

    /// Whether there is nothing more to record.
    fn has_ended(&mut self, recorder: &mut Recorder, observer: &mut dyn Observer) -> bool;

    /// Stops this process, as Ctrl-Z does, until it is continued.
    fn suspend(&mut self, signals: &Signals, recorder: &mut Recorder);

    /// Handles a signal that is not about saving or suspending. Returns whether the recording ends.
    fn handle(&mut self, signal: Signal) -> bool;
}

/// When a recording samples.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    /// Sampling begins after this time.
    pub delay_start: Duration,
    /// Sampling ends after this time; `None`: with the source.
    pub duration: Option<Duration>,
}

/// A recording that grows.
pub(crate) struct RecordingLoop {
    pub session: Session,
    pub signals: Signals,
    pub recorder: Recorder,
    pub file: RecordingFile,
    limits: Limits,
    began: Instant,
    sampling_since: Option<Instant>,
    /// Sampling was stopped because the recording was full.
    stopped: bool,
    cleared: bool,
    progress: ProgressMeter,
    titles: ProcessTitles,
}

impl RecordingLoop {
    pub(crate) fn new(
        session: Session,
        signals: Signals,
        recorder: Recorder,
        file: RecordingFile,
        limits: Limits,
    ) -> RecordingLoop {
        RecordingLoop {
            session,
            signals,
            recorder,
            file,
            limits,
            began: Instant::now(),
            sampling_since: None,
            stopped: false,
            cleared: false,
            progress: ProgressMeter::default(),
            titles: ProcessTitles::default(),
        }
    }

    /// Whether sampling has begun (see [`Limits::delay_start`]).
    pub(crate) fn has_begun(&self) -> bool {
        self.sampling_since.is_some()
    }

    /// Whether earlier samples were forgotten (`stackglass clear`).
    pub(crate) fn was_cleared(&self) -> bool {
        self.cleared
    }

    /// Records until the source ends, the duration is over, or a signal ends the recording.
    pub(crate) fn run(&mut self, source: &mut dyn Source, observer: &mut dyn Observer) {
        let descriptors = source.descriptors();
        let mut next_write = self.began + WRITE_EVERY;
        let mut next_check = self.began;
        while !self.is_over() && !source.has_ended(&mut self.recorder, observer) {
            self.begin_when_due(source);
            self.session.beat();
            let pause = self.until_next_deadline(source.pause());
            if let Some(signal) = self.signals.next_or(&descriptors, pause)
                && self.handle(signal, source, observer)
            {
                break;
            }
            source.read(&mut self.recorder, observer);
            if Instant::now() >= next_check {
                next_check = Instant::now() + CHECK_REQUESTS_EVERY;
                if Request::Everything.is_asked(self.session.folder()) {
                    self.clear(source, observer);
                }
                if Request::Allocations.is_asked(self.session.folder()) {
                    self.clear_allocations(source);
                    Request::Allocations.answer(self.session.folder());
                }
            }
            if self.recorder.is_full() && !std::mem::replace(&mut self.stopped, true) {
                self.set_sampling(false, source);
            }
            if Instant::now() >= next_write {
                source.settle(&mut self.recorder);
                self.titles.update(false, &mut self.recorder);
                self.file.append(&mut self.recorder, observer);
                self.report_progress(source, observer);
                next_write = Instant::now() + WRITE_EVERY;
            }
        }
        self.titles.update(true, &mut self.recorder);
    }

    fn is_over(&self) -> bool {
        match (self.limits.duration, self.sampling_since) {
            (Some(duration), Some(since)) => since.elapsed() >= duration,
            _ => false,
        }
    }

    fn begin_when_due(&mut self, source: &mut dyn Source) {
        let delay = self.limits.delay_start;
        if self.sampling_since.is_none() && self.began.elapsed() >= delay {
            if !delay.is_zero() {
                self.set_sampling(true, source);
                AllocationSettings::turn(self.session.page(), true);
                self.recorder.info_mut().start = Nanos(clock::monotonic());
                self.recorder.info_mut().started = clock::realtime();
            }
            self.sampling_since = Some(Instant::now());
        }
    }

    fn set_sampling(&mut self, on: bool, source: &mut dyn Source) {
        self.session.set_state(if on { SessionState::Sampling } else { SessionState::Stopped });
        source.set_sampling(on, &mut self.recorder);
    }

    /// Time to wait for a signal: until samples should be read, or the next deadline.
    fn until_next_deadline(&self, pause: Duration) -> Duration {
        let deadline = match self.sampling_since {
            None => Some(self.began + self.limits.delay_start),
            Some(since) => self.limits.duration.map(|duration| since + duration),
        };
        let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        left.map_or(pause, |left| left.min(pause))
    }

    /// Handles a signal. Returns whether the recording ends.
    fn handle(&mut self, signal: Signal, source: &mut dyn Source, observer: &mut dyn Observer) -> bool {
        match signal.number {
            libc::SIGUSR2 => self.save_snapshot(source, observer),
            libc::SIGTSTP => {
                observer.suspended();
                source.suspend(&self.signals, &mut self.recorder);
            }
            _ => return source.handle(signal),
        }
        false
    }

    /// Forgets all samples, in memory and in the file.
    fn clear(&mut self, source: &mut dyn Source, observer: &mut dyn Observer) {
        // Their stacks are forgotten with those of the samples.
        self.clear_allocations(source);
        source.forget_samples(&mut self.recorder);
        self.file.restart(&mut self.recorder, observer);
        self.progress.forget();
        self.cleared = true;
        if self.sampling_since.is_some() && std::mem::take(&mut self.stopped) {
            self.set_sampling(true, source);
        }
        observer.note("all samples so far are forgotten");
        Request::Everything.answer(self.session.folder());
    }

    /// Forgets all allocations. Those from now on are counted, if any are.
    fn clear_allocations(&mut self, source: &mut dyn Source) {
        let before = AllocationSettings::begin_anew(self.session.page());
        source.forget_allocations(before, &mut self.recorder);
    }

    fn report_progress(&mut self, source: &dyn Source, observer: &mut dyn Observer) {
        let sampling = self.sampling_since.is_some() && !self.recorder.is_full();
        let (elapsed, totals) = (self.began.elapsed(), self.recorder.totals());
        observer.progress(&self.progress.measure(elapsed, totals, source.processes(), sampling));
    }

    /// Writes a complete recording of the samples so far, beside the growing one.
    fn save_snapshot(&mut self, source: &mut dyn Source, observer: &mut dyn Observer) {
        source.read(&mut self.recorder, observer);
        source.settle_all(&mut self.recorder);
        self.titles.update(true, &mut self.recorder);
        let mut recording = self.recorder.recording().clone();
        set_end(&mut recording, Some(End::Running), source.sampler_cpu());
        self.file.save_snapshot(recording, observer);
    }
}

/// Fills in the facts about a recording that are known at its end. `sampler_cpu`: CPU time of samplers outside of
/// this process, ns.
pub(crate) fn set_end(recording: &mut Recording, end: Option<End>, sampler_cpu: u64) {
    let info = &mut recording.info;
    info.wall = Nanos(clock::monotonic().saturating_sub(info.start.0));
    info.end = end;
    info.own_cpu = Nanos(sampler_cpu + clock::own_cpu());
}
