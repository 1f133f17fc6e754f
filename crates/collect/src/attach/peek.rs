//! A peek at a process that knows nothing of us: what all its threads do now, and where the next second goes.

use super::record::AttachError;
use super::{Attached, Driver, Refusal, Stay, Stopped};
use crate::launch::signals::Signals;
use crate::launch::{PeekPart, moment};
use crate::{Recorder, activity};
use stackglass_profile::peek::Activity;
use stackglass_profile::{About, Nanos, ProcessIndex, Recording, State};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};

/// Time between two looks at the stream.
const PAUSE: Duration = Duration::from_millis(5);
/// How long a first stack of each thread is waited for: on a busy machine some wait for a processor.
const FIRST_STACKS: Duration = Duration::from_millis(300);

/// What to look at and how.
#[derive(Clone, Debug)]
pub struct PeekOptions {
    /// The process.
    pub pid: u32,
    /// How long the profile takes.
    pub duration: Duration,
    /// Time between two looks at a thread.
    pub delay: Duration,
    /// How running threads are made to show their stacks.
    pub driver: Option<Driver>,
}

/// Looks at the process for a while; it runs on. `say` is told which driver is used; `show` gets the threads at once and the report at the end,
/// each with names. What it returns is why it ended before its time, if it did.
///
/// # Errors
/// While nothing was seen.
pub fn peek(
    options: &PeekOptions,
    say: &mut dyn FnMut(&str),
    show: &mut dyn FnMut(&PeekPart),
) -> Result<Option<String>, AttachError> {
    let signals = Signals::block_as_onlooker().map_err(AttachError::Signals)?;
    let about = About {
        command: super::process::arguments(options.pid),
        start: Nanos(moment::monotonic()),
        delay: Nanos(options.delay.as_nanos() as u64),
        ..About::default()
    };
    let Some(mut attached) = in_turn(options, &signals, say)? else { return Ok(None) };
    say(&attached.choice().why);
    let mut recorder = Recorder::new(about);
    let began = Instant::now();
    let mut threads = Threads::Awaited;
    loop {
        attached.drain(&mut recorder);
        threads = threads.next(options, &recorder, began, show);
        let gone = attached.stopped();
        let over = began.elapsed() >= options.duration || gone.is_some();
        if over || signals.next(PAUSE).is_some_and(|signal| super::record::ends(signal.number)) {
            break;
        }
    }
    attached.stop();
    attached.drain(&mut recorder);
    threads.finish(options, &recorder, show);
    let early = attached.stopped().map(|why| match why {
        Stopped::Gone => format!("process {} ended after {:.1?} of the peek", options.pid, began.elapsed()),
        Stopped::Locked(why) => why,
    });
    let mut recording = recorder.into_recording();
    if !recording.samples.is_empty() {
        recording.about.wall = Nanos(moment::monotonic().saturating_sub(recording.about.start.0));
        symbolize(&mut recording);
        show(&PeekPart::Report { recording, early: early.is_some() });
    }
    Ok(early)
}

/// Begins to look, after another stackglass that does where only one can. `None` when somebody wants it to end before.
fn in_turn(
    options: &PeekOptions,
    signals: &Signals,
    say: &mut dyn FnMut(&str),
) -> Result<Option<Attached>, AttachError> {
    let mut waits = false;
    loop {
        match Attached::begin(options.pid, options.delay, options.driver, Stay::Brief) {
            Err(Refusal::Taken { pid, name, stay: Stay::Brief }) => {
                if !std::mem::replace(&mut waits, true) {
                    say(&format!(
                        "process {pid} ({name}) is being looked at by another stackglass; your peek follows"
                    ));
                }
            }
            begun => return Ok(Some(begun?)),
        }
        if signals.next(PAUSE * 4).is_some_and(|signal| super::record::ends(signal.number)) {
            return Ok(None);
        }
    }
}

/// How far the first part has come.
enum Threads {
    /// Not every thread has shown a stack.
    Awaited,
    /// Names are looked for, on a thread of their own: looking goes on meanwhile.
    Named(Receiver<PeekPart>),
    /// It was shown.
    Shown,
}

impl Threads {
    fn next(
        self,
        options: &PeekOptions,
        recorder: &Recorder,
        began: Instant,
        show: &mut dyn FnMut(&PeekPart),
    ) -> Threads {
        match self {
            Threads::Awaited => {
                let recording = recorder.recording();
                let latest = latest(recording);
                let listed = super::threads::of_the_program(options.pid).len();
                if latest.len() < listed && began.elapsed() < FIRST_STACKS || latest.is_empty() {
                    return Threads::Awaited;
                }
                let mut part = part(options, recording, latest);
                let (done, named) = channel();
                std::thread::spawn(move || {
                    if let PeekPart::Threads { recording, .. } = &mut part {
                        symbolize(recording);
                    }
                    // Nobody waits any more where the command has ended.
                    let _ = done.send(part);
                });
                Threads::Named(named)
            }
            Threads::Named(named) => match named.try_recv() {
                Ok(part) => {
                    show(&part);
                    Threads::Shown
                }
                Err(TryRecvError::Empty) => Threads::Named(named),
                Err(TryRecvError::Disconnected) => Threads::Shown,
            },
            Threads::Shown => Threads::Shown,
        }
    }

    /// Shows it before the report, in any case.
    fn finish(self, options: &PeekOptions, recorder: &Recorder, show: &mut dyn FnMut(&PeekPart)) {
        match self {
            Threads::Awaited => {
                let recording = recorder.recording();
                let latest = latest(recording);
                if !latest.is_empty() {
                    let mut part = part(options, recording, latest);
                    if let PeekPart::Threads { recording, .. } = &mut part {
                        symbolize(recording);
                    }
                    show(&part);
                }
            }
            Threads::Named(named) => {
                if let Ok(part) = named.recv() {
                    show(&part);
                }
            }
            Threads::Shown => {}
        }
    }
}

/// The last sample of each thread of the image that runs now.
fn latest(recording: &Recording) -> Vec<usize> {
    let last = recording.processes.len() as u32;
    last.checked_sub(1).map_or_else(Vec::new, |index| recording.latest(ProcessIndex(index)))
}

fn part(options: &PeekOptions, recording: &Recording, latest: Vec<usize>) -> PeekPart {
    let recording = recording.excerpt(latest);
    let mut activity = activity::of_process(options.pid, |tid| super::threads::is_ours(options.pid, tid));
    for sample in &recording.samples {
        let Some(tid) = recording.thread(sample.thread).map(|thread| thread.tid) else { continue };
        let slept = sample.state == State::Asleep;
        // A thread that has done something else since would stand there with a stack of before; and one
        // that runs looks stopped where it stands for us.
        let same = activity.get(&tid).is_some_and(|now| slept != matches!(now, Activity::Running))
            && (slept || matches!(activity.get(&tid), Some(Activity::Running)));
        if !same {
            activity.remove(&tid);
        }
    }
    PeekPart::Threads { recording, activity, profile: Some(options.duration) }
}

fn symbolize(recording: &mut Recording) {
    stackglass_symbols::symbolize(recording, &Default::default(), &mut |_| ());
}
