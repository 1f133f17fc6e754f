//! Peeks at programs that are recorded from inside: what all threads do now, and a second later where it went.
//!
//! A program counts the requests it got in its control page; here they are noticed between two
//! looks at the streams. The profile of a peek is a piece of the samples that come anyway. Names are found on a
//! thread of their own: reading debug information must not hold up the streams.
//!
//! A process is peeked at for one responder at a time. A question that comes meanwhile is told so and gets a peek of its
//! own afterwards; a signal that comes while the peek is for standard error shows the stacks there again.

use super::stream_file::PeekableImage;
use crate::Recorder;
use crate::peeks::PeekPart;
use crate::peeks::responder::{RequestQueue, Responder};
use crate::peeks::{activity, request};
use crate::recording::Observer;
use foldhash::HashMap;
use stackglass_profile::{Nanos, ProcessIndex};
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// How long a first stack of each thread is waited for: on a busy machine some wait for a processor.
const FIRST_STACKS: Duration = Duration::from_millis(200);
/// Patience with names at the end of everything.
const LAST_NAMES: Duration = Duration::from_secs(20);

/// A part, of which process and for whom it is.
type Addressed = (u32, Responder, PeekPart);
/// Both ends of the thread that finds names: parts go in and come out with them.
type Namer = (Sender<Addressed>, Receiver<Addressed>);

/// Peeks that go on, and those seen before.
pub(super) struct StreamPeeks {
    duration: Duration,
    /// Time between two looks at a thread.
    delay: Duration,
    known: HashMap<(u32, Nanos), Known>,
    namer: Option<Namer>,
    /// Parts whose names are being looked for.
    unnamed: usize,
}

/// One image.
struct Known {
    index: ProcessIndex,
    seen: u32,
    queue: RequestQueue,
    /// When the stacks of all threads were asked for that have not been shown yet, and which profile follows.
    asked: Option<(Instant, Option<Duration>)>,
    profile: Option<Profile>,
    /// For whom the next ones are.
    waiting: VecDeque<Responder>,
    here: bool,
}

/// A profile that goes on.
struct Profile {
    responder: Responder,
    /// Its first sample.
    from: usize,
    until: Instant,
}

impl StreamPeeks {
    /// None yet; each profile takes `duration`, unless it is wished otherwise.
    pub(super) fn new(duration: Duration, delay: Duration) -> StreamPeeks {
        StreamPeeks { duration, delay, known: HashMap::default(), namer: None, unnamed: 0 }
    }

    /// The recorder has forgotten all samples.
    pub(super) fn forget_samples(&mut self) {
        let profiles = self.known.values_mut().filter_map(|known| known.profile.as_mut());
        profiles.for_each(|profile| profile.from = 0);
    }

    /// Looks for new requests, profiles that are over and names that were found. `images` is what they said
    /// of themselves before their streams were last read.
    pub(super) fn update(
        &mut self,
        images: &[PeekableImage],
        recorder: &mut Recorder,
        observer: &mut dyn Observer,
    ) {
        self.known.values_mut().for_each(|known| known.here = false);
        for image in images {
            self.look_at(image, recorder);
        }
        let over: Vec<_> = self.known.iter().filter(|(_, known)| !known.here).map(|(key, _)| *key).collect();
        for key in over {
            self.abandon(key, recorder);
        }
        self.show(Duration::ZERO, observer);
    }

    /// Ends all profiles as they are and shows what there is.
    pub(super) fn finish(&mut self, recorder: &mut Recorder, observer: &mut dyn Observer) {
        let known: Vec<_> = self.known.keys().copied().collect();
        for key in known {
            self.abandon(key, recorder);
        }
        let until = Instant::now() + LAST_NAMES;
        while self.unnamed > 0 && Instant::now() < until {
            self.show(Duration::from_millis(100), observer);
        }
    }

    /// An image is gone: its profile ends as it is, and nobody waits for another.
    fn abandon(&mut self, key: (u32, Nanos), recorder: &mut Recorder) {
        let Some(known) = self.known.remove(&key) else { return };
        if let Some(profile) = &known.profile {
            self.report(known.index, profile, Instant::now() < profile.until, recorder);
        }
        known.waiting.iter().for_each(|responder| responder.finish(false));
    }

    fn look_at(&mut self, image: &PeekableImage, recorder: &mut Recorder) {
        let key = (image.pid, image.start);
        let known = self.known.entry(key).or_insert_with(|| Known {
            index: image.index,
            seen: 0,
            queue: RequestQueue::of(image.pid),
            asked: None,
            profile: None,
            waiting: VecDeque::new(),
            here: true,
        });
        known.here = true;
        let new = image.peeks.wrapping_sub(std::mem::replace(&mut known.seen, image.peeks));
        for responder in known.queue.receive(new) {
            match &known.profile {
                Some(profile) if profile.responder.is_stderr() && responder.is_stderr() => {
                    known.asked.get_or_insert((Instant::now(), None));
                }
                Some(profile) => {
                    let left = profile.until.saturating_duration_since(Instant::now());
                    responder.write(request::wait_notice(image.pid, left).as_bytes());
                    known.waiting.push_back(responder);
                }
                None => known.waiting.push_back(responder),
            }
        }
        while known.profile.is_none()
            && let Some(responder) = known.waiting.pop_front()
        {
            if !responder.is_abandoned() {
                known.profile = Some(begin((self.duration, self.delay), known, responder, recorder));
            }
        }
        self.show_threads(image, recorder);
        self.end_profile(image, recorder);
    }

    /// Shows what all threads do, once that is known.
    fn show_threads(&mut self, image: &PeekableImage, recorder: &Recorder) {
        let Some(known) = self.known.get_mut(&(image.pid, image.start)) else { return };
        let (Some((at, follows)), Some(profile)) = (known.asked, &known.profile) else { return };
        let recording = recorder.recording();
        let latest = recording.latest(image.index);
        let activity = activity::of_process(image.pid, |tid| tid == image.sampler);
        if latest.len() < activity.len() && at.elapsed() <= FIRST_STACKS {
            return;
        }
        known.asked = None;
        let responder = profile.responder.clone();
        let part = if latest.is_empty() {
            let name = &recording.processes[image.index.0 as usize].exe;
            let why = format!("{name} (pid {}) is not being sampled now: no stacks yet", image.pid);
            PeekPart::Nothing { why }
        } else {
            PeekPart::Threads { recording: recording.excerpt(latest), activity, profile: follows }
        };
        self.name(image.pid, responder, part);
    }

    /// Shows the profile where it is over. Of one that nobody waits for any more nothing is shown.
    fn end_profile(&mut self, image: &PeekableImage, recorder: &mut Recorder) {
        let Some(known) = self.known.get_mut(&(image.pid, image.start)) else { return };
        let over = known
            .profile
            .take_if(|profile| profile.responder.is_abandoned() || Instant::now() >= profile.until);
        let Some(profile) = over else { return };
        known.asked = None;
        let index = known.index;
        if !profile.responder.is_abandoned() {
            self.report(index, &profile, false, recorder);
        }
    }

    fn report(&mut self, index: ProcessIndex, profile: &Profile, early: bool, recorder: &mut Recorder) {
        recorder.settle();
        let recording = recorder.recording();
        let ours = |sample: &stackglass_profile::Sample| {
            recording.thread(sample.thread).is_some_and(|thread| thread.process == index)
        };
        let samples = recording.samples.iter().enumerate().skip(profile.from);
        let picked: Vec<usize> = samples.filter(|(_, sample)| ours(sample)).map(|(index, _)| index).collect();
        let mut recording = recording.excerpt(picked);
        recording.about.delay = Nanos(self.delay.as_nanos() as u64);
        let pid = recording.processes.get(index.0 as usize).map_or(0, |process| process.pid);
        self.name(pid, profile.responder.clone(), PeekPart::Report { recording, early });
    }

    /// Hands a part to the thread that finds names.
    fn name(&mut self, pid: u32, responder: Responder, part: PeekPart) {
        let (to, _) = self.namer.get_or_insert_with(namer);
        if to.send((pid, responder, part)).is_ok() {
            self.unnamed += 1;
        }
    }

    fn show(&mut self, patience: Duration, observer: &mut dyn Observer) {
        let Some((_, from)) = &self.namer else { return };
        while self.unnamed > 0
            && let Ok((pid, responder, part)) = from.recv_timeout(patience)
        {
            self.unnamed -= 1;
            observer.peek(pid, &part, &responder);
        }
    }
}

/// Begins a profile. `own` are the duration and the delay that nobody wished.
fn begin(
    own: (Duration, Duration),
    known: &mut Known,
    responder: Responder,
    recorder: &mut Recorder,
) -> Profile {
    let duration = responder.options().duration.unwrap_or(own.0);
    if responder.options().delay.is_some_and(|wished| wished != own.1) {
        let line = format!(
            "stackglass: a recording is running with a delay of {:?}: --delay has no effect\n",
            own.1
        );
        responder.write(line.as_bytes());
    }
    // From here on: whatever grows now belongs to the profile of this peek.
    recorder.settle();
    let from = recorder.recording().samples.len();
    let now = Instant::now();
    known.asked = Some((now, Some(duration)));
    Profile { responder, from, until: now + duration }
}

/// A thread that adds names to what it is sent and sends it back, until nobody sends any more.
fn namer() -> Namer {
    let (to, jobs) = channel::<Addressed>();
    let (done, from) = channel();
    std::thread::spawn(move || {
        for (pid, responder, mut part) in jobs {
            if let PeekPart::Threads { recording, .. } | PeekPart::Report { recording, .. } = &mut part {
                stackglass_symbols::symbolize(recording, &Default::default(), &mut |_| ());
            }
            if done.send((pid, responder, part)).is_err() {
                return;
            }
        }
    });
    (to, from)
}
