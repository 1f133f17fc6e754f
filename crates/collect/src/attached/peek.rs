//! A peek from outside: what all threads of a process do now, followed by a short profile.
//!
//! [`peek()`] is for a user at the terminal. `stackglass run` does the same ([`run_peek`]) on separate threads.

use super::Attached;
use super::record::AttachError;
use crate::peeks::{PeekPart, activity};
use crate::session::signals::Signals;
use stackglass_attach::{AttachMode, Driver, Refusal, Stopped, access, choice};
use stackglass_procfs::{clock, process, threads};
use stackglass_profile::{Activity, Nanos, ProcessIndex, Recorder, Recording, RecordingInfo, State};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};

/// Time between two reads of the stream.
const PAUSE: Duration = Duration::from_millis(5);
/// Time between two attempts while another Stackglass traces the process.
const LONG_PAUSE: Duration = Duration::from_millis(20);
/// Longest wait for a first stack of each thread: on a busy machine, some threads wait for a CPU.
const FIRST_STACKS: Duration = Duration::from_millis(300);
/// Longest wait for a first stack of any thread. The sampler itself may wait for a CPU for longer than a short peek takes.
const FIRST_STACK: Duration = Duration::from_secs(5);

/// A peek at a process that does not answer by itself.
#[derive(Clone, Debug)]
pub struct OutsidePeek {
    /// The process.
    pub pid: u32,
    /// Duration of the profile. The peek lasts until each thread has a first stack: 0.3 s at most, or 5 s if no thread has one.
    pub duration: Duration,
    /// Time between two samples of a thread.
    pub delay: Duration,
    /// How stacks of running threads are taken; `None`: the better way that is allowed.
    pub driver: Option<Driver>,
}

/// What the client of a peek wants next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PeekControl {
    /// The peek goes on.
    Continue,
    /// The stacks of all threads are wanted again.
    RepeatStacks,
    /// The peek ends now, with a report of the samples so far.
    Finish,
    /// The peek ends without a report: the client is gone.
    Abandon,
}

/// The client of a peek: it receives the results and controls the course.
pub(crate) trait PeekClient {
    /// Waits for at most `pause` and says how to go on.
    fn next(&mut self, pause: Duration) -> PeekControl;

    /// Another Stackglass traces the process; the peek will follow.
    fn waiting(&mut self, line: &str);

    /// The peek begins; `why` names the driver and the reason for it.
    fn begin(&mut self, why: &str) {
        let _ = why;
    }

    /// The process is not traced any more.
    fn detached(&mut self) {}

    /// A part of the result, symbolized: first the threads, at the end the report.
    fn show(&mut self, part: PeekPart);
}

/// Peeks at a process, which goes on running. `say` receives the driver, `show` the stacks of all threads and at the
/// end the report, both symbolized. Returns why the peek ended early, if it did.
///
/// # Errors
/// Only before the first sample.
pub fn peek(
    options: &OutsidePeek,
    say: &mut dyn FnMut(&str),
    show: &mut dyn FnMut(&PeekPart),
) -> Result<Option<String>, AttachError> {
    let signals = Signals::block_as_onlooker().map_err(AttachError::Signals)?;
    Ok(run_peek(options, &mut Command { signals, say, show })?)
}

/// A client at the terminal.
struct Command<'a> {
    signals: Signals,
    say: &'a mut dyn FnMut(&str),
    show: &'a mut dyn FnMut(&PeekPart),
}

impl PeekClient for Command<'_> {
    fn next(&mut self, pause: Duration) -> PeekControl {
        let ends = self.signals.next(pause).is_some_and(|signal| super::record::ends(signal.number));
        if ends { PeekControl::Finish } else { PeekControl::Continue }
    }

    fn waiting(&mut self, line: &str) {
        (self.say)(line);
    }

    fn begin(&mut self, why: &str) {
        (self.say)(why);
    }

    fn show(&mut self, part: PeekPart) {
        (self.show)(&part);
    }
}

/// Peeks at a process for a client. Returns why the peek ended early, if the process is the reason.
///
/// # Errors
/// Only before the first sample.
pub(crate) fn run_peek(
    options: &OutsidePeek,
    client: &mut dyn PeekClient,
) -> Result<Option<String>, Refusal> {
    let info = RecordingInfo {
        command: process::arguments(options.pid),
        start: Nanos(clock::monotonic()),
        delay: Nanos(options.delay.as_nanos() as u64),
        ..RecordingInfo::default()
    };
    let Some((mut attached, why)) = attach_when_free(options, client)? else { return Ok(None) };
    client.begin(&why);
    let mut recorder = Recorder::new(info);
    let began = Instant::now();
    let mut stacks = ThreadStacks::new(Some(options.duration));
    let control = loop {
        attached.drain(&mut recorder);
        stacks.advance(options, &recorder, client, FIRST_STACKS);
        let is_over = began.elapsed() >= options.duration && !stacks.are_awaited(&recorder);
        if is_over || attached.stopped().is_some() {
            break PeekControl::Continue;
        }
        match client.next(PAUSE) {
            PeekControl::Continue => {}
            PeekControl::RepeatStacks => stacks.request_again(),
            control => break control,
        }
    };
    if control != PeekControl::Abandon {
        // While the threads still exist. Threads without a stack are not waited for any more.
        stacks.advance(options, &recorder, client, Duration::ZERO);
    }
    attached.stop();
    client.detached();
    if control == PeekControl::Abandon {
        return Ok(None);
    }
    attached.drain(&mut recorder);
    stacks.finish(client);
    let mut early = attached.stopped().map(|why| match why {
        Stopped::Gone => format!("process {} ended after {:.1?} of the peek", options.pid, began.elapsed()),
        Stopped::Locked(why) => why,
    });
    let mut recording = recorder.into_recording();
    if recording.samples.is_empty() && early.is_none() && control != PeekControl::Finish {
        let after = began.elapsed();
        early = Some(format!("no thread of process {} was seen within {after:.1?}; try again", options.pid));
    }
    if !recording.samples.is_empty() {
        recording.info.wall = Nanos(clock::monotonic().saturating_sub(recording.info.start.0));
        symbolize(&mut recording);
        client.show(PeekPart::Report { recording, early: early.is_some() || control == PeekControl::Finish });
    }
    Ok(early)
}

/// Attaches to the process, waiting for another Stackglass that traces it. `None` if the client ends the peek
/// meanwhile.
fn attach_when_free(
    options: &OutsidePeek,
    client: &mut dyn PeekClient,
) -> Result<Option<(Attached, String)>, Refusal> {
    match access::check(options.pid, options.driver.unwrap_or(Driver::Perf)) {
        // That may be another Stackglass: the lock of the tracer tells.
        Ok(()) | Err(Refusal::Traced { .. }) => {}
        Err(refusal) => return Err(refusal),
    }
    let choice = choice::choose_for_peek(options.pid, options.driver)?;
    let mut waits = false;
    loop {
        match Attached::begin(options.pid, options.delay, Some(choice.driver), AttachMode::Brief) {
            Err(Refusal::Taken { pid, name, mode: AttachMode::Brief }) => {
                if !std::mem::replace(&mut waits, true) {
                    client.waiting(&format!(
                        "process {pid} ({name}) is being sampled by another stackglass; your peek follows"
                    ));
                }
            }
            begun => return Ok(Some((begun?, choice.why))),
        }
        if matches!(client.next(LONG_PAUSE), PeekControl::Finish | PeekControl::Abandon) {
            return Ok(None);
        }
    }
}

/// The stacks of all threads, on their way to the client.
struct ThreadStacks {
    stage: Stage,
    /// Time of the request.
    since: Instant,
    /// Duration of the profile that follows; `None` if it runs already.
    profile: Option<Duration>,
}

/// How far the stacks have come.
enum Stage {
    /// Some threads have no stack yet.
    Waiting,
    /// They are being symbolized on another thread; sampling goes on meanwhile.
    Symbolizing(Receiver<PeekPart>),
    /// The client has received them.
    Shown,
}

impl ThreadStacks {
    fn new(profile: Option<Duration>) -> ThreadStacks {
        ThreadStacks { stage: Stage::Waiting, since: Instant::now(), profile }
    }

    /// Requests them again. A request that is still in progress serves both.
    fn request_again(&mut self) {
        if matches!(self.stage, Stage::Shown) {
            *self = ThreadStacks::new(None);
        }
    }

    /// Whether the peek goes on for them after the end of its time.
    fn are_awaited(&self, recorder: &Recorder) -> bool {
        let patience = if recorder.recording().samples.is_empty() { FIRST_STACK } else { FIRST_STACKS };
        matches!(self.stage, Stage::Waiting) && self.since.elapsed() < patience
    }

    fn advance(
        &mut self,
        options: &OutsidePeek,
        recorder: &Recorder,
        client: &mut dyn PeekClient,
        patience: Duration,
    ) {
        match &self.stage {
            Stage::Waiting => {
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
                    // The receiver is gone if the command has ended.
                    let _ = done.send(part);
                });
                self.stage = Stage::Symbolizing(named);
            }
            Stage::Symbolizing(named) => match named.try_recv() {
                Ok(part) => {
                    client.show(part);
                    self.stage = Stage::Shown;
                }
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => self.stage = Stage::Shown,
            },
            Stage::Shown => {}
        }
    }

    /// Shows stacks that are still being symbolized, before the report.
    fn finish(self, client: &mut dyn PeekClient) {
        if let Stage::Symbolizing(named) = self.stage
            && let Ok(part) = named.recv()
        {
            client.show(part);
        }
    }

    fn part(&self, options: &OutsidePeek, recording: &Recording, latest: Vec<usize>) -> PeekPart {
        let recording = recording.excerpt(latest);
        let mut activity = activity::of_process(options.pid, |tid| threads::is_ours(options.pid, tid));
        for sample in &recording.samples {
            let Some(tid) = recording.thread(sample.thread).map(|thread| thread.tid) else { continue };
            let slept = sample.state == State::Asleep;
            // Skip a thread whose state has changed since its stack was taken. A running thread that is stopped for
            // its stack looks stopped.
            let same = activity.get(&tid).is_some_and(|now| slept != matches!(now, Activity::Running))
                && (slept || matches!(activity.get(&tid), Some(Activity::Running)));
            if !same {
                activity.remove(&tid);
            }
        }
        PeekPart::Threads { recording, activity, profile: self.profile }
    }
}

/// The last sample of each thread of the current image.
fn latest(recording: &Recording) -> Vec<usize> {
    let last = recording.processes.len() as u32;
    last.checked_sub(1).map_or_else(Vec::new, |index| recording.latest(ProcessIndex(index)))
}

fn symbolize(recording: &mut Recording) {
    stackglass_symbols::symbolize(recording, &Default::default(), &mut |_| ());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_peek_waits_for_a_first_stack() {
        let nothing = Recorder::new(RecordingInfo::default());
        let stacks = ThreadStacks::new(Some(Duration::from_millis(50)));
        assert!(stacks.are_awaited(&nothing));
        let since = Instant::now().checked_sub(FIRST_STACK).expect("the machine runs for longer");
        assert!(!ThreadStacks { since, ..stacks }.are_awaited(&nothing));
    }
}
