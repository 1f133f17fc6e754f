//! Records the tasks of a process that already runs: until Ctrl-C, the end of `--duration`, or the end of the process.

use super::WallTime;
use crate::attached::{self, AttachError, Options};
use crate::recording::Observer;
use crate::recording::recording_file::RecordingFile;
use crate::recording::recording_loop::{Limits, RecordingLoop, Source, set_end};
use crate::session::signals::{Signal, Signals};
use crate::session::{Session, clearing};
use stackglass_attach::{Driver, access, probe};
use stackglass_files::GlassWriter;
use stackglass_inspect::task_sampler::TaskTypes;
use stackglass_profile::{End, Recorder};
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// How long the first task snapshot is waited for.
const LONGEST_START: Duration = Duration::from_secs(30);

/// Records a profile by wall time of the process, which goes on running: of its tasks, or of its threads if its tasks cannot be read.
///
/// # Errors
/// Only before anything is recorded; later problems are reported to the observer.
pub fn record(options: &Options, observer: &mut dyn Observer) -> Result<(), AttachError> {
    let pid = options.pid;
    let exe = PathBuf::from(format!("/proc/{pid}/exe"));
    if let Some(why) = TaskTypes::from_program(&exe).lack() {
        return attached::record_as_tasks(options, why, observer);
    }
    access::check(pid, Driver::Ptrace)?;
    probe::stop_in_user_code().map_err(AttachError::NoStops)?;
    let signals = Signals::block_as_onlooker().map_err(AttachError::Signals)?;
    // The session lets `save` and `clear` find this process.
    let session = Session::create().map_err(AttachError::Session)?;
    session.page().launcher.store(std::process::id(), Relaxed);
    clearing::name_attached(session.folder(), std::iter::once(pid), false).map_err(AttachError::Session)?;
    if let Some(delay) = options.delay_start
        && !attached::wait(&signals, delay)
    {
        return Ok(());
    }
    let info = attached::info(options);
    let writer = GlassWriter::create(&options.output, &info)?;
    let file = RecordingFile::new(&options.output, writer);
    let mut recorder = Recorder::new(info);
    let mut source = RecordedProcess { pid, tasks: WallTime::begin(pid, options.delay, true) };
    let mut limits = Limits { duration: options.duration, ..Limits::default() };
    // The time to record begins when the types have been read.
    let begun = Instant::now();
    while !source.tasks.has_snapshot() && !source.tasks.has_ended() && begun.elapsed() < LONGEST_START {
        if !attached::wait(&signals, source.tasks.pause()) {
            limits.duration = Some(Duration::ZERO);
            break;
        }
        source.tasks.read(&mut recorder);
    }
    let mut recording = RecordingLoop::new(session, signals, recorder, file, limits);
    recording.run(&mut source, observer);
    recording.signals.finish();
    let RecordingLoop { mut recorder, file, session, .. } = recording;
    source.tasks.close(&mut recorder);
    let mut recording = recorder.into_recording();
    set_end(&mut recording, (!source.tasks.has_ended()).then_some(End::Running), 0);
    file.finish(recording, observer);
    drop(session);
    Ok(())
}

/// The process that is recorded.
struct RecordedProcess {
    pid: u32,
    tasks: WallTime,
}

impl Source for RecordedProcess {
    fn pause(&mut self) -> Duration {
        self.tasks.pause()
    }

    fn read(&mut self, recorder: &mut Recorder, observer: &mut dyn Observer) {
        self.tasks.read(recorder);
        self.tasks.notes().iter().for_each(|line| observer.note(line));
    }

    fn settle_all(&mut self, recorder: &mut Recorder) {
        self.tasks.read_all(recorder);
    }

    fn set_sampling(&mut self, on: bool, _: &mut Recorder) {
        self.tasks.set_sampling(on);
    }

    fn forget_samples(&mut self, recorder: &mut Recorder) {
        self.tasks.forget_samples(recorder);
    }

    fn processes(&self) -> usize {
        1
    }

    fn has_ended(&mut self, recorder: &mut Recorder, observer: &mut dyn Observer) -> bool {
        if self.tasks.has_ended() {
            let line = format!("process {} has ended", self.pid);
            observer.note(&line);
            recorder.remark(line);
        }
        self.tasks.has_ended()
    }

    fn suspend(&mut self, signals: &Signals, recorder: &mut Recorder) {
        self.tasks.set_sampling(false);
        self.tasks.read_all(recorder);
        signals.stop_here();
        self.tasks.set_sampling(true);
    }

    fn handle(&mut self, signal: Signal) -> bool {
        attached::ends(signal.number)
    }
}
