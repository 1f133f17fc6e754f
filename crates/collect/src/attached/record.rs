//! Records processes that are already running, with their children: until Ctrl-C, the end of `--duration`, or the end of the process.

use super::descendants::Descendants;
use super::missed_children::EndedChildren;
use crate::recording::Observer;
use crate::recording::begin::beginning_now;
use crate::recording::children::Children;
use crate::recording::recording_file::RecordingFile;
use crate::recording::recording_loop::{Limits, RecordingLoop, Source, set_end};
use crate::session::signals::{Signal, Signals};
use crate::session::{Session, clearing};
use stackglass_attach::perf_refused::PerfRefused;
use stackglass_attach::{Driver, Refusal, Stopped, access, choice};
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
    /// The process. A profile by wall time is of this one alone.
    pub pid: u32,
    /// Further processes of the same recording.
    pub others: Vec<u32>,
    /// Whether children of the processes are recorded as well, those to come included.
    pub follow_children: bool,
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

/// Records the processes, which go on running.
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
    let pids = || std::iter::once(options.pid).chain(options.others.iter().copied());
    for pid in pids() {
        access::check(pid, options.driver.unwrap_or(Driver::Perf))?;
        choice::choose(pid, options.driver)?;
    }
    let signals = Signals::block_as_onlooker().map_err(AttachError::Signals)?;
    // The session lets `save` and `clear` find this process.
    let session = Session::create().map_err(AttachError::Session)?;
    session.page().launcher.store(std::process::id(), Relaxed);
    clearing::name_attached(session.folder(), pids(), options.follow_children)
        .map_err(AttachError::Session)?;
    if let Some(delay) = options.delay_start
        && !wait(&signals, delay)
    {
        return Ok(());
    }
    let info = info(options);
    let ended_children = EndedChildren::new(pids());
    let mut attached = Descendants::new(options.delay, options.driver, options.follow_children, true);
    observer.note(&attached.attach(options.pid)?);
    for pid in &options.others {
        attached.attach(*pid)?;
    }
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
    let left_out = if options.follow_children { Vec::new() } else { pids().map(Children::new).collect() };
    let ended_children = options.follow_children.then_some(ended_children);
    let mut processes = RecordedProcesses { attached, left_out, ended_children };
    recording.run(&mut processes, observer);
    processes.finish(recording, observer);
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

/// The processes that are recorded.
struct RecordedProcesses {
    attached: Descendants,
    /// Children that are not recorded, for each of the processes.
    left_out: Vec<Children>,
    /// Children that are recorded as far as they are found.
    ended_children: Option<EndedChildren>,
}

impl Source for RecordedProcesses {
    fn pause(&mut self) -> Duration {
        PAUSE
    }

    fn read(&mut self, recorder: &mut Recorder, _: &mut dyn Observer) {
        self.attached.read(recorder);
        self.left_out.iter_mut().for_each(Children::update);
    }

    fn set_sampling(&mut self, on: bool, _: &mut Recorder) {
        self.attached.set_sampling(on);
    }

    fn forget_samples(&mut self, recorder: &mut Recorder) {
        self.attached.forget_samples(recorder);
    }

    fn processes(&self) -> usize {
        self.attached.processes()
    }

    fn has_ended(&mut self, recorder: &mut Recorder, observer: &mut dyn Observer) -> bool {
        let Some(ended) = self.attached.have_ended() else { return false };
        for (pid, why) in ended {
            let line = match why {
                Stopped::Gone => format!("process {pid} has ended"),
                Stopped::Locked(why) => format!("the recording ends here: {why}"),
            };
            observer.note(&line);
            recorder.remark(line);
        }
        true
    }

    fn suspend(&mut self, signals: &Signals, recorder: &mut Recorder) {
        self.attached.interrupt_for(recorder, || signals.stop_here());
    }

    fn handle(&mut self, signal: Signal) -> bool {
        ends(signal.number)
    }
}

impl RecordedProcesses {
    /// Detaches from the processes, then symbolizes and saves the recording.
    fn finish(self, recording: RecordingLoop, observer: &mut dyn Observer) {
        recording.signals.finish();
        let RecordingLoop { mut recorder, file, session, .. } = recording;
        let used_by_children = self.ended_children.as_ref().map_or(0, EndedChildren::used);
        let have_ended = self.attached.close(&mut recorder);
        for mut children in self.left_out {
            children.remark().into_iter().for_each(|remark| recorder.remark(remark));
        }
        let mut recording = recorder.into_recording();
        let missed = self.ended_children.and_then(|children| children.remark(used_by_children, &recording));
        recording.info.remarks.extend(missed);
        set_end(&mut recording, (!have_ended).then_some(End::Running), 0);
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
