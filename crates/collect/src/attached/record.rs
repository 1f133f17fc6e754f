//! A recording of a process that runs already: until Ctrl-C, the end of `--duration`, or its own end.

use super::Attached;
use crate::Recorder;
use crate::recording::recording_file::{LastTold, RecordingFile};
use crate::recording::{Observer, machine};
use crate::session::Session;
use crate::session::clearing;
use crate::session::signals::{Signal, Signals};
use stackglass_attach::{Driver, Refusal, Stay, Stopped, access, choice};
use stackglass_files::{GlassWriter, WriteError};
use stackglass_procfs::{clock, process};
use stackglass_profile::{About, End, Nanos, Recording};
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Time between two looks at the stream.
const PAUSE: Duration = Duration::from_millis(20);
/// Time between two appends to the file and two progress calls.
const WRITE_EVERY: Duration = Duration::from_millis(250);

/// What to record and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// The process.
    pub pid: u32,
    /// The recording's file.
    pub output: PathBuf,
    /// Time between two looks at a thread.
    pub delay: Duration,
    /// Words that may be stored; 0: not bounded.
    pub capacity: u64,
    /// The recording ends after this time.
    pub duration: Option<Duration>,
    /// Sampling begins after this time.
    pub delay_start: Option<Duration>,
    /// How running threads are made to show their stacks; `None`: what is best here.
    pub driver: Option<Driver>,
    /// Name and version of the program that writes the recording.
    pub writer: String,
}

/// Nothing was recorded.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// The process cannot be looked at.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The file for the recording cannot be made.
    #[error(transparent)]
    Output(#[from] WriteError),
    /// There is no place for the session.
    #[error("no folder for the session can be made in /dev/shm, $XDG_RUNTIME_DIR or /tmp: {0}")]
    Session(std::io::Error),
    /// Signals cannot be read.
    #[error("cannot watch for signals: {0}")]
    Signals(std::io::Error),
}

/// Records the process; it runs on.
///
/// # Errors
/// Only while nothing was recorded; afterwards what goes wrong is told to the observer.
pub fn record(options: &Options, observer: &mut dyn Observer) -> Result<(), AttachError> {
    access::check(options.pid, choice::choose(options.pid, options.driver).driver)?;
    let signals = Signals::block_as_onlooker().map_err(AttachError::Signals)?;
    // So that `save` and `clear` find us.
    let session = Session::create().map_err(AttachError::Session)?;
    session.page().launcher.store(std::process::id(), Relaxed);
    clearing::name_attached(session.folder(), options.pid).map_err(AttachError::Session)?;
    if let Some(delay) = options.delay_start
        && !wait(&signals, delay)
    {
        return Ok(());
    }
    let about = about(options);
    let attached = Attached::begin(options.pid, options.delay, options.driver, Stay::Long)?;
    observer.note(&attached.choice().why);
    let writer = GlassWriter::create(&options.output, &about)?;
    let mut recording = Growing {
        options,
        session,
        attached,
        recorder: Recorder::new(about),
        file: RecordingFile::new(&options.output, writer),
        began: Instant::now(),
        last: LastTold::default(),
    };
    recording.until_finished(&signals, observer);
    recording.finish(observer);
    Ok(())
}

/// Sleeps; false when somebody wants it to end before.
fn wait(signals: &Signals, time: Duration) -> bool {
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

struct Growing<'a> {
    options: &'a Options,
    session: Session,
    attached: Attached,
    recorder: Recorder,
    file: RecordingFile,
    began: Instant,
    last: LastTold,
}

impl Growing<'_> {
    fn until_finished(&mut self, signals: &Signals, observer: &mut dyn Observer) {
        let mut next_write = self.began + WRITE_EVERY;
        loop {
            let left = self.options.duration.map(|duration| duration.saturating_sub(self.began.elapsed()));
            if left.is_some_and(|left| left.is_zero()) {
                return;
            }
            let signal = signals.next(left.map_or(PAUSE, |left| left.min(PAUSE)));
            self.attached.drain(&mut self.recorder);
            match signal {
                Some(Signal { number, .. }) if ends(number) => return,
                Some(Signal { number: libc::SIGTSTP, .. }) => {
                    observer.suspended();
                    self.attached.interrupt_for(&mut self.recorder, || signals.stop_here());
                }
                Some(Signal { number: libc::SIGUSR2, .. }) => self.save_now(observer),
                _ => {}
            }
            if let Some(why) = self.attached.stopped() {
                return self.tell_why(why, observer);
            }
            if clearing::is_asked(self.session.folder()) {
                self.clear(observer);
            }
            if self.recorder.is_full() {
                self.attached.stop();
            }
            if Instant::now() >= next_write {
                self.file.append(&mut self.recorder, observer);
                self.tell(observer);
                next_write = Instant::now() + WRITE_EVERY;
            }
        }
    }

    /// Forgets what was sampled so far, here and in the file.
    fn clear(&mut self, observer: &mut dyn Observer) {
        let before = self.recorder.clear_samples();
        self.attached.forget_stacks(&before, &mut self.recorder);
        self.file.begin_anew(&mut self.recorder, observer);
        self.last.forget();
        observer.note("all samples so far are forgotten");
        clearing::answer(self.session.folder());
    }

    fn tell_why(&mut self, why: Stopped, observer: &mut dyn Observer) {
        let line = match why {
            Stopped::Gone => format!("process {} has ended", self.options.pid),
            Stopped::Locked(why) => format!("the recording ends here: {why}"),
        };
        observer.note(&line);
        self.recorder.remark(line);
    }

    fn tell(&mut self, observer: &mut dyn Observer) {
        let (elapsed, totals) = (self.began.elapsed(), self.recorder.totals());
        observer.progress(&self.last.progress(elapsed, totals, 1, !self.recorder.is_full()));
    }

    /// Writes a complete recording as of now beside the growing one.
    fn save_now(&mut self, observer: &mut dyn Observer) {
        let mut recording = self.recorder.recording().clone();
        close(&mut recording, Some(End::Running));
        self.file.save_beside(recording, observer);
    }

    /// Lets the process go, names and saves everything.
    fn finish(mut self, observer: &mut dyn Observer) {
        self.attached.stop();
        self.attached.drain(&mut self.recorder);
        let gone = self.attached.stopped() == Some(Stopped::Gone);
        let mut recording = self.recorder.into_recording();
        close(&mut recording, (!gone).then_some(End::Running));
        self.file.finish(recording, observer);
    }
}

/// What is known of the recording as a whole at its end.
fn close(recording: &mut Recording, end: Option<End>) {
    let about = &mut recording.about;
    about.wall = Nanos(clock::monotonic().saturating_sub(about.start.0));
    about.end = end;
    about.own_cpu = Nanos(clock::own_cpu());
}

fn about(options: &Options) -> About {
    About {
        command: process::arguments(options.pid),
        started: clock::realtime(),
        start: Nanos(clock::monotonic()),
        delay: Nanos(options.delay.as_nanos() as u64),
        capacity: options.capacity,
        writer: options.writer.clone(),
        machine: machine::machine(),
        ..About::default()
    }
}
