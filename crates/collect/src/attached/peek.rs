//! A peek from outside: what all threads of a process do now, and where the next second goes.
//!
//! [`peek()`] is one for who asks at the terminal; `stackglass run` has the same ([`look`]) on threads of its own.

use super::Attached;
use super::record::AttachError;
use crate::Recorder;
use crate::peeks::{PeekPart, activity};
use crate::session::signals::Signals;
use stackglass_attach::{AttachMode, Driver, Refusal, Stopped};
use stackglass_procfs::{clock, process, threads};
use stackglass_profile::{About, Activity, Nanos, ProcessIndex, Recording, State};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};

/// Time between two looks at the stream.
const PAUSE: Duration = Duration::from_millis(5);
/// The same while another one's end is awaited.
const LONG_PAUSE: Duration = Duration::from_millis(20);
/// How long a first stack of each thread is waited for: on a busy machine some wait for a processor.
const FIRST_STACKS: Duration = Duration::from_millis(300);

/// What to look at and how.
#[derive(Clone, Debug)]
pub struct OutsidePeek {
    /// The process.
    pub pid: u32,
    /// How long the profile takes.
    pub duration: Duration,
    /// Time between two looks at a thread.
    pub delay: Duration,
    /// How running threads are made to show their stacks.
    pub driver: Option<Driver>,
}

/// What the asker wants next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wish {
    /// That it goes on.
    GoOn,
    /// The stacks of all threads once more.
    StacksAgain,
    /// The report of what was seen so far.
    End,
    /// Nothing: nobody waits any more.
    Nothing,
}

/// The asker of a peek.
pub(crate) trait Onlooker {
    /// Waits for so long, less where there is something new, and says how to go on.
    fn wish(&mut self, pause: Duration) -> Wish;

    /// Another one is being answered first.
    fn wait(&mut self, line: &str);

    /// It begins; which driver is used, and why.
    fn begin(&mut self, why: &str) {
        let _ = why;
    }

    /// Nothing of the process is traced any more.
    fn let_go(&mut self) {}

    /// The threads at once and the report at the end, each with names.
    fn show(&mut self, part: PeekPart);
}

/// Looks at the process for a while; it runs on. `say` is told which driver is used; `show` gets the threads at once and the report at the end,
/// each with names. What it returns is why it ended before its time, if it did.
///
/// # Errors
/// While nothing was seen.
pub fn peek(
    options: &OutsidePeek,
    say: &mut dyn FnMut(&str),
    show: &mut dyn FnMut(&PeekPart),
) -> Result<Option<String>, AttachError> {
    let signals = Signals::block_as_onlooker().map_err(AttachError::Signals)?;
    Ok(look(options, &mut Command { signals, say, show })?)
}

/// An asker at the terminal.
struct Command<'a> {
    signals: Signals,
    say: &'a mut dyn FnMut(&str),
    show: &'a mut dyn FnMut(&PeekPart),
}

impl Onlooker for Command<'_> {
    fn wish(&mut self, pause: Duration) -> Wish {
        let ends = self.signals.next(pause).is_some_and(|signal| super::record::ends(signal.number));
        if ends { Wish::End } else { Wish::GoOn }
    }

    fn wait(&mut self, line: &str) {
        (self.say)(line);
    }

    fn begin(&mut self, why: &str) {
        (self.say)(why);
    }

    fn show(&mut self, part: PeekPart) {
        (self.show)(&part);
    }
}

/// Looks at the process for an asker; why it ended before its time, where the process is the reason.
///
/// # Errors
/// While nothing was seen.
pub(crate) fn look(options: &OutsidePeek, onlooker: &mut dyn Onlooker) -> Result<Option<String>, Refusal> {
    let about = About {
        command: process::arguments(options.pid),
        start: Nanos(clock::monotonic()),
        delay: Nanos(options.delay.as_nanos() as u64),
        ..About::default()
    };
    let Some(mut attached) = in_turn(options, onlooker)? else { return Ok(None) };
    onlooker.begin(&attached.choice().why);
    let mut recorder = Recorder::new(about);
    let began = Instant::now();
    let mut stacks = Stacks::wanted(Some(options.duration));
    let last_wish = loop {
        attached.drain(&mut recorder);
        stacks.proceed(options, &recorder, onlooker, FIRST_STACKS);
        if began.elapsed() >= options.duration || attached.stopped().is_some() {
            break Wish::GoOn;
        }
        match onlooker.wish(PAUSE) {
            Wish::GoOn => {}
            Wish::StacksAgain => stacks.want_again(),
            wish => break wish,
        }
    };
    if last_wish != Wish::Nothing {
        // While its threads are there still: those that have not shown a stack are not waited for any more.
        stacks.proceed(options, &recorder, onlooker, Duration::ZERO);
    }
    attached.stop();
    onlooker.let_go();
    if last_wish == Wish::Nothing {
        return Ok(None);
    }
    attached.drain(&mut recorder);
    stacks.finish(onlooker);
    let early = attached.stopped().map(|why| match why {
        Stopped::Gone => format!("process {} ended after {:.1?} of the peek", options.pid, began.elapsed()),
        Stopped::Locked(why) => why,
    });
    let mut recording = recorder.into_recording();
    if !recording.samples.is_empty() {
        recording.about.wall = Nanos(clock::monotonic().saturating_sub(recording.about.start.0));
        symbolize(&mut recording);
        onlooker.show(PeekPart::Report { recording, early: early.is_some() || last_wish == Wish::End });
    }
    Ok(early)
}

/// Begins to look, after another stackglass that does where only one can. `None` when somebody wants it to end before.
fn in_turn(options: &OutsidePeek, onlooker: &mut dyn Onlooker) -> Result<Option<Attached>, Refusal> {
    let mut waits = false;
    loop {
        match Attached::begin(options.pid, options.delay, options.driver, AttachMode::Brief) {
            Err(Refusal::Taken { pid, name, mode: AttachMode::Brief }) => {
                if !std::mem::replace(&mut waits, true) {
                    onlooker.wait(&format!(
                        "process {pid} ({name}) is being looked at by another stackglass; your peek follows"
                    ));
                }
            }
            begun => return Ok(Some(begun?)),
        }
        if matches!(onlooker.wish(LONG_PAUSE), Wish::End | Wish::Nothing) {
            return Ok(None);
        }
    }
}

/// The stacks of all threads, on their way to the asker.
struct Stacks {
    stage: Stage,
    /// Since when they are wanted.
    since: Instant,
    /// How long the profile takes that follows; `None`: it goes on already.
    profile: Option<Duration>,
}

/// How far they have come.
enum Stage {
    /// Not every thread has shown a stack.
    Awaited,
    /// Names are looked for, on a thread of their own: looking goes on meanwhile.
    Named(Receiver<PeekPart>),
    /// They were shown.
    Shown,
}

impl Stacks {
    fn wanted(profile: Option<Duration>) -> Stacks {
        Stacks { stage: Stage::Awaited, since: Instant::now(), profile }
    }

    /// Those that are on their way do for both.
    fn want_again(&mut self) {
        if matches!(self.stage, Stage::Shown) {
            *self = Stacks::wanted(None);
        }
    }

    fn proceed(
        &mut self,
        options: &OutsidePeek,
        recorder: &Recorder,
        onlooker: &mut dyn Onlooker,
        patience: Duration,
    ) {
        match &self.stage {
            Stage::Awaited => {
                let recording = recorder.recording();
                let latest = latest(recording);
                let listed = process::program_threads(options.pid).len();
                if latest.len() < listed && self.since.elapsed() < patience || latest.is_empty() {
                    return;
                }
                let mut part = self.part(options, recording, latest);
                let (done, named) = channel();
                std::thread::spawn(move || {
                    if let PeekPart::Threads { recording, .. } = &mut part {
                        symbolize(recording);
                    }
                    // Nobody waits any more where the command has ended.
                    let _ = done.send(part);
                });
                self.stage = Stage::Named(named);
            }
            Stage::Named(named) => match named.try_recv() {
                Ok(part) => {
                    onlooker.show(part);
                    self.stage = Stage::Shown;
                }
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => self.stage = Stage::Shown,
            },
            Stage::Shown => {}
        }
    }

    /// Shows those that are on their way before the report.
    fn finish(self, onlooker: &mut dyn Onlooker) {
        if let Stage::Named(named) = self.stage
            && let Ok(part) = named.recv()
        {
            onlooker.show(part);
        }
    }

    fn part(&self, options: &OutsidePeek, recording: &Recording, latest: Vec<usize>) -> PeekPart {
        let recording = recording.excerpt(latest);
        let mut activity = activity::of_process(options.pid, |tid| threads::is_ours(options.pid, tid));
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
        PeekPart::Threads { recording, activity, profile: self.profile }
    }
}

/// The last sample of each thread of the image that runs now.
fn latest(recording: &Recording) -> Vec<usize> {
    let last = recording.processes.len() as u32;
    last.checked_sub(1).map_or_else(Vec::new, |index| recording.latest(ProcessIndex(index)))
}

fn symbolize(recording: &mut Recording) {
    stackglass_symbols::symbolize(recording, &Default::default(), &mut |_| ());
}
