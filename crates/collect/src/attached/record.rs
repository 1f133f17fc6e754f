//! Records a process that is already running: until Ctrl-C, the end of `--duration`, or the end of the process.

use super::Attached;
use crate::recording::Observer;
use crate::recording::begin::beginning_now;
use crate::recording::children::Children;
use crate::recording::recording_file::RecordingFile;
use crate::recording::recording_loop::{Limits, RecordingLoop, Source, set_end};
use crate::session::signals::{Signal, Signals};
use crate::session::{Session, clearing};
use stackglass_attach::perf_refused::PerfRefused;
use stackglass_attach::{AttachMode, Driver, Refusal, Stopped, access, choice};
use stackglass_files::{GlassWriter, WriteError};
use stackglass_procfs::process;
use stackglass_profile::{End, Nanos, Recorder, RecordingInfo};
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Time between two reads of the stream.
const PAUSE: Duration = Duration::from_millis(20);

/// What to record and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// The process.
    pub pid: u32,
    /// The recording's file.
    pub output: PathBuf,
    /// Time between two samples of a thread.
    pub delay: Duration,
    /// Words that may be stored; 0: not bounded.
    pub capacity: u64,
    /// The recording ends after this time.
    pub duration: Option<Duration>,
    /// Sampling begins after this time.
    pub delay_start: Option<Duration>,
    /// How stacks of running threads are taken; `None`: the better way that is allowed.
    pub driver: Option<Driver>,
    /// Name and version of the program that writes the recording.
    pub writer: String,
}

/// Nothing was recorded.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// The process cannot be sampled.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The file for the recording cannot be made.
    #[error(transparent)]
    Output(#[from] WriteError),
    /// There is no place for the session.
    #[error("no folder for the session can be made in /dev/shm, $XDG_RUNTIME_DIR or /tmp: {0}")]
    Session(std::io::Error),
    /// The events that stop threads in user code are refused.
    #[error("{0}, so a running process cannot be copied without interrupting its system calls")]
    NoStops(PerfRefused),
    /// Signals cannot be read.
    #[error("cannot watch for signals: {0}")]
    Signals(std::io::Error),
}

/// Records the process, which goes on running.
///
/// # Errors
/// Only before anything is recorded; later problems are reported to the observer.
pub fn record(options: &Options, observer: &mut dyn Observer) -> Result<(), AttachError> {
    run(options, None, observer)
}

/// Records a profile by wall time in which each thread counts as a task of its own. `why`: the reason, for the user.
///
/// # Errors
/// Like [`record`].
pub(crate) fn record_as_tasks(
    options: &Options,
    why: &str,
    observer: &mut dyn Observer,
) -> Result<(), AttachError> {
    run(options, Some(why), observer)
}

/// Threads count as tasks if there is a reason, which the user is told.
fn run(options: &Options, as_tasks: Option<&str>, observer: &mut dyn Observer) -> Result<(), AttachError> {
    access::check(options.pid, options.driver.unwrap_or(Driver::Perf))?;
    choice::choose(options.pid, options.driver)?;
    let signals = Signals::block_as_onlooker().map_err(AttachError::Signals)?;
    // The session lets `save` and `clear` find this process.
    let session = Session::create().map_err(AttachError::Session)?;
    session.page().launcher.store(std::process::id(), Relaxed);
    clearing::name_attached(session.folder(), options.pid).map_err(AttachError::Session)?;
    if let Some(delay) = options.delay_start
        && !wait(&signals, delay)
    {
        return Ok(());
    }
    let info = info(options);
    let attached = Attached::begin(options.pid, options.delay, options.driver, AttachMode::Long)?;
    observer.note(&attached.choice().why);
    let writer = GlassWriter::create(&options.output, &info)?;
    let file = RecordingFile::new(&options.output, writer);
    let limits = Limits { duration: options.duration, ..Limits::default() };
    let mut recorder = Recorder::new(info);
    if let Some(why) = as_tasks {
        observer.note(why);
        recorder.remark(why);
        recorder.count_threads_as_tasks();
    }
    let mut recording = RecordingLoop::new(session, signals, recorder, file, limits);
    let mut process = RecordedProcess { pid: options.pid, attached, children: Children::new(options.pid) };
    recording.run(&mut process, observer);
    process.finish(recording, observer);
    Ok(())
}

/// Sleeps for `time`. Returns false if a signal ends the recording meanwhile.
pub(crate) fn wait(signals: &Signals, time: Duration) -> bool {
    let until = Instant::now() + time;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        if signals.next(left).is_some_and(|signal| ends(signal.number)) {
            return false;
        }
    }
}

/// Signals that end the recording.
pub fn ends(signal: i32) -> bool {
    matches!(signal, libc::SIGINT | libc::SIGQUIT | libc::SIGTERM | libc::SIGHUP)
}

/// The process that is recorded.
struct RecordedProcess {
    pid: u32,
    attached: Attached,
    children: Children,
}

impl Source for RecordedProcess {
    fn pause(&mut self) -> Duration {
        PAUSE
    }

    fn read(&mut self, recorder: &mut Recorder, _: &mut dyn Observer) {
        self.attached.drain(recorder);
        self.children.update();
    }

    fn set_sampling(&mut self, on: bool, _: &mut Recorder) {
        if on { self.attached.resume() } else { self.attached.stop() }
    }

    fn forget_samples(&mut self, recorder: &mut Recorder) {
        let before = recorder.clear_samples();
        self.attached.forget_stacks(&before, recorder);
    }

    fn processes(&self) -> usize {
        1
    }

    fn has_ended(&mut self, recorder: &mut Recorder, observer: &mut dyn Observer) -> bool {
        let Some(why) = self.attached.stopped() else { return false };
        let line = match why {
            Stopped::Gone => format!("process {} has ended", self.pid),
            Stopped::Locked(why) => format!("the recording ends here: {why}"),
        };
        observer.note(&line);
        recorder.remark(line);
        true
    }

    fn suspend(&mut self, signals: &Signals, recorder: &mut Recorder) {
        self.attached.interrupt_for(recorder, || signals.stop_here());
    }

    fn handle(&mut self, signal: Signal) -> bool {
        ends(signal.number)
    }
}

impl RecordedProcess {
    /// Detaches from the process, then symbolizes and saves the recording.
    fn finish(mut self, recording: RecordingLoop, observer: &mut dyn Observer) {
        recording.signals.finish();
        let RecordingLoop { mut recorder, file, session, .. } = recording;
        self.attached.stop();
        self.attached.drain(&mut recorder);
        let has_ended = self.attached.stopped() == Some(Stopped::Gone);
        drop(self.attached);
        super::remark_calls_cut_short(&mut recorder);
        if let Some(remark) = self.children.remark() {
            recorder.remark(remark);
        }
        let mut recording = recorder.into_recording();
        set_end(&mut recording, (!has_ended).then_some(End::Running), 0);
        file.finish(recording, observer);
        drop(session);
    }
}

/// Facts about the recording that are known before it begins.
pub(crate) fn info(options: &Options) -> RecordingInfo {
    let command = process::arguments(options.pid);
    RecordingInfo {
        delay: Nanos(options.delay.as_nanos() as u64),
        capacity: options.capacity,
        ..beginning_now(command, &options.writer)
    }
}
