//! Peeks at programs that we have started: what all threads do now, and a second later where it went.
//!
//! A program counts the requests it got in its control page; here they are noticed between two
//! looks at the streams. The profile of a peek is a piece of the samples that come anyway (`record`)
//! or that the program's sampler takes for this purpose alone (`run`). Names are found on a
//! thread of their own: reading debug information must not hold up the streams.

use super::Observer;
use super::drain::Peekable;
use crate::{Recorder, activity};
use stackglass_profile::peek::Activity;
use stackglass_profile::{Nanos, ProcessIndex, Recording};
use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// How much longer than the profile itself its end is waited for where the program's sampler keeps the time.
const LATE: Duration = Duration::from_millis(500);
/// How long a first stack of each thread is waited for: on a busy machine some wait for a processor.
const FIRST_STACKS: Duration = Duration::from_millis(200);
/// Patience with names at the end of everything.
const LAST_NAMES: Duration = Duration::from_secs(20);

/// A piece of a peek, ready to be shown.
pub enum PeekPart {
    /// What all threads do now.
    Threads {
        /// Their last stacks.
        recording: Recording,
        /// More about each thread, by its kernel id.
        activity: HashMap<u32, Activity>,
        /// How long the profile takes that follows; `None`: one goes on already.
        profile: Option<Duration>,
    },
    /// The profile.
    Report {
        /// Of one process, for as long as the peek took.
        recording: Recording,
    },
    /// There is nothing to be shown, and why.
    Nothing {
        /// A line for people.
        why: String,
    },
}

/// Both ends of the thread that finds names: parts for a process go in and come out with them.
type Namer = (Sender<(u32, PeekPart)>, Receiver<(u32, PeekPart)>);

/// Peeks that go on, and those seen before.
pub(super) struct Peeks {
    duration: Duration,
    /// The programs sample for peeks only.
    alone: bool,
    known: HashMap<(u32, Nanos), Known>,
    namer: Option<Namer>,
    /// Parts whose names are being looked for.
    unnamed: usize,
}

/// One image.
struct Known {
    index: ProcessIndex,
    seen: u32,
    /// When the stacks of all threads were asked for that have not been shown yet, and whether a profile follows.
    asked: Option<(Instant, bool)>,
    profile: Option<Profile>,
    /// Samples before this one were shown.
    shown: usize,
    here: bool,
}

/// A profile that goes on.
struct Profile {
    /// Its first sample.
    from: usize,
    until: Instant,
    /// The number of requests that must have been served, where the program's sampler keeps the time.
    number: Option<u32>,
}

impl Peeks {
    /// None yet; each profile takes `duration`.
    pub(super) fn new(duration: Duration) -> Peeks {
        Peeks { duration, alone: false, known: HashMap::new(), namer: None, unnamed: 0 }
    }

    /// The same where the programs sample for peeks only.
    pub(super) fn alone(duration: Duration) -> Peeks {
        Peeks { alone: true, ..Peeks::new(duration) }
    }

    /// The recorder has forgotten all samples.
    pub(super) fn forgotten(&mut self) {
        self.known.values_mut().for_each(|known| known.shown = 0);
    }

    /// Looks for new requests, profiles that are over and names that were found. `images` is what they said
    /// of themselves before their streams were last read.
    pub(super) fn look(&mut self, images: &[Peekable], recorder: &mut Recorder, observer: &mut dyn Observer) {
        self.known.values_mut().for_each(|known| known.here = false);
        for image in images {
            self.look_at(image, recorder);
        }
        let over: Vec<_> = self.known.iter().filter(|(_, known)| !known.here).map(|(key, _)| *key).collect();
        for key in over {
            if let Some(Known { index, profile: Some(profile), .. }) = self.known.remove(&key) {
                self.report(index, &profile, recorder);
            }
        }
        self.show(Duration::ZERO, observer);
    }

    /// True while a profile goes on or names are looked for.
    pub(super) fn is_busy(&self) -> bool {
        self.unnamed > 0 || self.known.values().any(|known| known.profile.is_some())
    }

    /// Ends all profiles as they are and shows what there is.
    pub(super) fn finish(&mut self, recorder: &mut Recorder, observer: &mut dyn Observer) {
        let known: Vec<Known> = self.known.drain().map(|(_, known)| known).collect();
        for Known { index, profile, .. } in known {
            if let Some(profile) = profile {
                self.report(index, &profile, recorder);
            }
        }
        let until = Instant::now() + LAST_NAMES;
        while self.unnamed > 0 && Instant::now() < until {
            self.show(Duration::from_millis(100), observer);
        }
    }

    fn look_at(&mut self, image: &Peekable, recorder: &mut Recorder) {
        let alone = self.alone;
        let first = Known { index: image.index, seen: 0, asked: None, profile: None, shown: 0, here: true };
        let known = self.known.entry((image.pid, image.start)).or_insert(first);
        known.here = true;
        if image.peeks != known.seen {
            known.seen = image.peeks;
            let has_one = known.profile.is_some();
            if !has_one {
                // From here on: whatever grows now belongs to the profile of this peek.
                recorder.settle();
                let from = if alone { known.shown } else { recorder.recording().samples.len() };
                let number = alone.then_some(image.peeks);
                known.profile = Some(Profile { from, until: Instant::now() + self.duration, number });
            }
            known.asked.get_or_insert((Instant::now(), !has_one));
        }
        if let Some((at, follows)) = known.asked {
            let recording = recorder.recording();
            let latest = recording.latest(image.index);
            let activity = activity::of_process(image.pid, |tid| tid == image.sampler);
            if latest.len() >= activity.len() || at.elapsed() > FIRST_STACKS {
                known.asked = None;
                let part = if latest.is_empty() {
                    let name = &recording.processes[image.index.0 as usize].exe;
                    let why = format!("{name} (pid {}) is not being sampled now: no stacks yet", image.pid);
                    PeekPart::Nothing { why }
                } else {
                    let profile = follows.then_some(self.duration);
                    PeekPart::Threads { recording: recording.excerpt(latest), activity, profile }
                };
                self.name(image.pid, part);
            }
        }
        let key = (image.pid, image.start);
        let Some(known) = self.known.get_mut(&key) else { return };
        let index = known.index;
        let over = known.profile.take_if(|profile| match profile.number {
            None => Instant::now() >= profile.until,
            Some(number) => {
                image.served.wrapping_sub(number) as i32 >= 0 || Instant::now() >= profile.until + LATE
            }
        });
        if let Some(profile) = over {
            known.shown = recorder.recording().samples.len();
            self.report(index, &profile, recorder);
        }
    }

    fn report(&mut self, index: ProcessIndex, profile: &Profile, recorder: &mut Recorder) {
        recorder.settle();
        let recording = recorder.recording();
        let ours = |sample: &stackglass_profile::Sample| {
            recording.thread(sample.thread).is_some_and(|thread| thread.process == index)
        };
        let samples = recording.samples.iter().enumerate().skip(profile.from);
        let picked: Vec<usize> = samples.filter(|(_, sample)| ours(sample)).map(|(index, _)| index).collect();
        let recording = recording.excerpt(picked);
        let pid = recording.processes.get(index.0 as usize).map_or(0, |process| process.pid);
        self.name(pid, PeekPart::Report { recording });
    }

    /// Hands a part to the thread that finds names.
    fn name(&mut self, pid: u32, part: PeekPart) {
        let (to, _) = self.namer.get_or_insert_with(namer);
        if to.send((pid, part)).is_ok() {
            self.unnamed += 1;
        }
    }

    fn show(&mut self, patience: Duration, observer: &mut dyn Observer) {
        let Some((_, from)) = &self.namer else { return };
        while self.unnamed > 0
            && let Ok((pid, part)) = from.recv_timeout(patience)
        {
            self.unnamed -= 1;
            observer.peek(pid, &part);
        }
    }
}

/// A thread that adds names to what it is sent and sends it back, until nobody sends any more.
fn namer() -> Namer {
    let (to, jobs) = channel::<(u32, PeekPart)>();
    let (done, from) = channel();
    std::thread::spawn(move || {
        for (pid, mut part) in jobs {
            if let PeekPart::Threads { recording, .. } | PeekPart::Report { recording } = &mut part {
                stackglass_symbols::symbolize(recording, &Default::default(), &mut |_| ());
            }
            if done.send((pid, part)).is_err() {
                return;
            }
        }
    });
    (to, from)
}
