//! Peeks at programs that are recorded by the preload library: what all threads do now, followed by a short profile.
//!
//! A program counts its requests in its control page, which is checked between two reads of the streams. The profile
//! of a peek is a part of the samples of the recording. Symbols are found on a separate thread: reading debug
//! information must not delay the streams.
//!
//! A process has one peek at a time. A request during a peek is answered with a notice, and gets its own peek afterwards.
//! A signal during a peek for standard error repeats the stacks there.

use super::stream_file::PeekableImage;
use crate::peeks::PeekPart;
use crate::peeks::activity;
use crate::peeks::request::{self, PeekDefaults};
use crate::peeks::responder::{RequestQueue, Responder};
use crate::recording::Observer;
use foldhash::HashMap;
use stackglass_profile::{Nanos, ProcessIndex, Recorder};
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// Longest wait for a first stack of each thread: on a busy machine, some threads wait for a CPU.
const FIRST_STACKS: Duration = Duration::from_millis(200);
/// Longest wait for symbols at the end.
const LAST_SYMBOLS: Duration = Duration::from_secs(20);

/// A part of a result, and where it goes.
struct Addressed {
    pid: u32,
    responder: Responder,
    part: PeekPart,
}

/// Both ends of the symbolizing thread: parts go in and come out with symbols.
struct Symbolizer {
    jobs: Sender<Addressed>,
    done: Receiver<Addressed>,
}

/// A request for the stacks of all threads.
#[derive(Clone, Copy)]
struct StacksRequest {
    at: Instant,
    /// Duration of the profile that follows; `None` if it runs already.
    profile: Option<Duration>,
}

/// Identifies a process image.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct ImageId {
    pid: u32,
    start: Nanos,
}

impl ImageId {
    fn from_image(image: &PeekableImage) -> ImageId {
        ImageId { pid: image.pid, start: image.start }
    }
}

/// All peeks, active and waiting.
pub(super) struct StreamPeeks {
    defaults: PeekDefaults,
    images: HashMap<ImageId, ImagePeeks>,
    symbolizer: Option<Symbolizer>,
    /// Number of parts that are being symbolized.
    pending: usize,
}

/// The peeks of one process image.
struct ImagePeeks {
    index: ProcessIndex,
    seen: u32,
    queue: RequestQueue,
    /// The request for the stacks of all threads, until they are shown.
    stacks: Option<StacksRequest>,
    profile: Option<Profile>,
    /// Responders of the next peeks.
    waiting: VecDeque<Responder>,
    present: bool,
}

/// The profile of an active peek.
struct Profile {
    responder: Responder,
    /// Index of its first sample.
    from: usize,
    until: Instant,
}

impl StreamPeeks {
    /// No peeks yet. A profile takes `duration` unless the options of its request set another one.
    pub(super) fn new(defaults: PeekDefaults) -> StreamPeeks {
        StreamPeeks { defaults, images: HashMap::default(), symbolizer: None, pending: 0 }
    }

    /// The recorder has forgotten all samples.
    pub(super) fn forget_samples(&mut self) {
        let profiles = self.images.values_mut().filter_map(|peeks| peeks.profile.as_mut());
        profiles.for_each(|profile| profile.from = 0);
    }

    /// Checks for new requests, profiles whose time is over, and symbolized parts. `images` is the state of the
    /// images before their streams were last read.
    pub(super) fn update(
        &mut self,
        images: &[PeekableImage],
        recorder: &mut Recorder,
        observer: &mut dyn Observer,
    ) {
        self.images.values_mut().for_each(|peeks| peeks.present = false);
        for image in images {
            self.update_image(image, recorder);
        }
        let over: Vec<_> =
            self.images.iter().filter(|(_, peeks)| !peeks.present).map(|(key, _)| *key).collect();
        for key in over {
            self.remove(key, recorder);
        }
        self.show(Duration::ZERO, observer);
    }

    /// Ends all profiles and shows their results so far.
    pub(super) fn finish(&mut self, recorder: &mut Recorder, observer: &mut dyn Observer) {
        let peeks: Vec<_> = self.images.keys().copied().collect();
        for key in peeks {
            self.remove(key, recorder);
        }
        let until = Instant::now() + LAST_SYMBOLS;
        while self.pending > 0 && Instant::now() < until {
            self.show(Duration::from_millis(100), observer);
        }
    }

    /// An image has ended: its profile ends early, and waiting requests are finished.
    fn remove(&mut self, key: ImageId, recorder: &mut Recorder) {
        let Some(peeks) = self.images.remove(&key) else { return };
        if let Some(profile) = &peeks.profile {
            self.report(peeks.index, profile, Instant::now() < profile.until, recorder);
        }
        peeks.waiting.iter().for_each(|responder| responder.finish(false));
    }

    fn update_image(&mut self, image: &PeekableImage, recorder: &mut Recorder) {
        let key = ImageId::from_image(image);
        let peeks = self.images.entry(key).or_insert_with(|| ImagePeeks {
            index: image.index,
            seen: 0,
            queue: RequestQueue::new(image.pid),
            stacks: None,
            profile: None,
            waiting: VecDeque::new(),
            present: true,
        });
        peeks.present = true;
        let new = image.peeks.wrapping_sub(std::mem::replace(&mut peeks.seen, image.peeks));
        for responder in peeks.queue.receive(new) {
            match &peeks.profile {
                Some(profile) if profile.responder.is_stderr() && responder.is_stderr() => {
                    peeks.stacks.get_or_insert(StacksRequest { at: Instant::now(), profile: None });
                }
                Some(profile) => {
                    let left = profile.until.saturating_duration_since(Instant::now());
                    responder.write(request::wait_notice(image.pid, left).as_bytes());
                    peeks.waiting.push_back(responder);
                }
                None => peeks.waiting.push_back(responder),
            }
        }
        while peeks.profile.is_none()
            && let Some(responder) = peeks.waiting.pop_front()
        {
            if !responder.is_abandoned() {
                peeks.profile = Some(begin(self.defaults, peeks, responder, recorder));
            }
        }
        self.show_threads(image, recorder);
        self.end_profile(image, recorder);
    }

    /// Shows the stacks of all threads once they are there.
    fn show_threads(&mut self, image: &PeekableImage, recorder: &Recorder) {
        let Some(peeks) = self.images.get_mut(&ImageId::from_image(image)) else { return };
        let (Some(request), Some(profile)) = (peeks.stacks, &peeks.profile) else { return };
        let recording = recorder.recording();
        let latest = recording.latest(image.index);
        let activity = activity::of_process(image.pid, |tid| tid == image.sampler);
        if latest.len() < activity.len() && request.at.elapsed() <= FIRST_STACKS {
            return;
        }
        peeks.stacks = None;
        let responder = profile.responder.clone();
        let part = if latest.is_empty() {
            let name = &recording.processes[image.index.0 as usize].exe;
            let why = format!("{name} (pid {}) is not being sampled now: no stacks yet", image.pid);
            PeekPart::Nothing { why }
        } else {
            PeekPart::Threads { recording: recording.excerpt(latest), activity, profile: request.profile }
        };
        self.symbolize(image.pid, responder, part);
    }

    /// Shows the profile if its time is over. Without a client, nothing is shown.
    fn end_profile(&mut self, image: &PeekableImage, recorder: &mut Recorder) {
        let Some(peeks) = self.images.get_mut(&ImageId::from_image(image)) else { return };
        let over = peeks
            .profile
            .take_if(|profile| profile.responder.is_abandoned() || Instant::now() >= profile.until);
        let Some(profile) = over else { return };
        peeks.stacks = None;
        let index = peeks.index;
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
        recording.info.delay = Nanos(self.defaults.delay.as_nanos() as u64);
        let pid = recording.processes.get(index.0 as usize).map_or(0, |process| process.pid);
        self.symbolize(pid, profile.responder.clone(), PeekPart::Report { recording, early });
    }

    /// Passes a part to the symbolizing thread.
    fn symbolize(&mut self, pid: u32, responder: Responder, part: PeekPart) {
        let symbolizer = self.symbolizer.get_or_insert_with(symbolizer);
        if symbolizer.jobs.send(Addressed { pid, responder, part }).is_ok() {
            self.pending += 1;
        }
    }

    fn show(&mut self, patience: Duration, observer: &mut dyn Observer) {
        let Some(symbolizer) = &self.symbolizer else { return };
        while self.pending > 0
            && let Ok(Addressed { pid, responder, part }) = symbolizer.done.recv_timeout(patience)
        {
            self.pending -= 1;
            observer.peek(pid, &part, &responder);
        }
    }
}

/// Starts a profile.
fn begin(
    defaults: PeekDefaults,
    peeks: &mut ImagePeeks,
    responder: Responder,
    recorder: &mut Recorder,
) -> Profile {
    let duration = responder.options().duration.unwrap_or(defaults.duration);
    if responder.options().delay.is_some_and(|wished| wished != defaults.delay) {
        let line = format!(
            "stackglass: a recording is running with a delay of {:?}: --delay has no effect\n",
            defaults.delay
        );
        responder.write(line.as_bytes());
    }
    // Samples from now on belong to the profile of this peek.
    recorder.settle();
    let from = recorder.recording().samples.len();
    let now = Instant::now();
    peeks.stacks = Some(StacksRequest { at: now, profile: Some(duration) });
    Profile { responder, from, until: now + duration }
}

/// A thread that symbolizes parts until the sender is dropped.
fn symbolizer() -> Symbolizer {
    let (sender, jobs) = channel::<Addressed>();
    let (results, done) = channel();
    std::thread::spawn(move || {
        for mut job in jobs {
            if let PeekPart::Threads { recording, .. } | PeekPart::Report { recording, .. } = &mut job.part {
                stackglass_symbols::symbolize(recording, &Default::default(), &mut |_| ());
            }
            if results.send(job).is_err() {
                return;
            }
        }
    });
    Symbolizer { jobs: sender, done }
}
