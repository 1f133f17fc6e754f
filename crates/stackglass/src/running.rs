//! The profile of this process: its settings, the number of guards, the current run, and the samples of earlier runs.
//!
//! A *run* begins with the first guard and ends with the last. It has the sampler's thread and a reading thread. At its end
//! its samples move to `past`. A forked child inherits this memory but not the threads: it finds another process id in the
//! run, and forgets the run.

#[cfg(feature = "files")]
mod file;
pub(crate) mod peek;
mod waits;

use crate::settings::Settings;
use crate::{InitError, ProfileKind, StartError};
use stackglass_collect::in_process::{Collector, WaitAnswers};
use stackglass_profile::{Nanos, Recording, RecordingInfo};
use stackglass_sampler::{Config, Handle, NotStarted};
#[cfg(feature = "files")]
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// On a busy machine, the sampler may take this long to begin, ns.
const LONGEST_BEGIN: u64 = 20_000_000;
/// Time between two reads of the stream: a fraction of the time in which it can fill up.
const PAUSE: Duration = Duration::from_millis(25);

static STATE: Mutex<Running> = Mutex::new(Running::new());

struct Running {
    settings: Option<Settings>,
    guards: usize,
    run: Option<Run>,
    /// The current peek, which also needs a run.
    peek: Option<peek::ActivePeek>,
    past: Option<Recording>,
    full: bool,
    /// `stackglass record` samples.
    delegated: bool,
}

struct Run {
    pid: u32,
    kind: ProfileKind,
    delay: Duration,
    began: Instant,
    sampler: Arc<Handle>,
    collector: Arc<Collector>,
    reader: Option<Reader>,
    /// Reads await stacks, for a profile by wall time.
    waits: Option<waits::Reader>,
    full: Arc<AtomicBool>,
    /// How long sampling had lasted when it ended, or the recording became full.
    full_after: Arc<OnceLock<Duration>>,
    #[cfg(feature = "files")]
    file: Option<Arc<file::File>>,
}

struct Reader {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

fn state() -> MutexGuard<'static, Running> {
    // After a panic with the lock held, counts and recordings are still consistent.
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    state.forget_the_parents_run();
    state
}

/// Adds a guard. The first one starts the run.
pub(crate) fn enter(kind: ProfileKind) -> Result<(), StartError> {
    state().enter(kind)
}

/// Adds a guard whose run is written to `path`.
#[cfg(feature = "files")]
pub(crate) fn enter_with_file(path: &Path) -> Result<(), StartError> {
    let mut state = state();
    if let Some(other) = state.run.as_ref().and_then(|run| run.file.as_ref()) {
        return Err(StartError::OtherFile(other.path().to_path_buf()));
    }
    state.enter(ProfileKind::Threads)?;
    let info = state.info();
    // Under `stackglass record`, the command writes its own file.
    let Some(run) = &mut state.run else { return Ok(()) };
    let file = match file::File::create(path, &info) {
        Ok(file) => Arc::new(file),
        Err(error) => {
            state.leave();
            return Err(error.into());
        }
    };
    run.file = Some(file.clone());
    let (collector, full) = (run.collector.clone(), run.full.clone());
    stackglass_sampler::expect_helper();
    let spawned = std::thread::Builder::new().name("stackglass-file".into()).spawn(move || {
        stackglass_sampler::leave_out_this_thread();
        file.keep_appending(&collector, &full);
    });
    if let Err(error) = spawned {
        stackglass_sampler::expect_no_helper();
        state.leave();
        return Err(StartError::Collector(error));
    }
    Ok(())
}

/// Removes a guard. The last one ends the run.
pub(crate) fn leave() {
    state().leave();
}

/// Forgets all samples. A running profile continues with an empty buffer.
pub fn clear() {
    let mut state = state();
    state.past = None;
    state.full = false;
    if state.guards > 0 {
        state.restart();
    }
}

/// Whether this process is sampling itself. False under `stackglass record`, where the command samples.
pub fn is_running() -> bool {
    let state = state();
    state.guards > 0 && state.run.as_ref().is_some_and(|run| !run.full.load(Ordering::Acquire))
}

/// Whether sampling stopped because `n` words were stored. [`clear`] empties the buffer, and [`init`](crate::init) can enlarge
/// it. Reports say so as well.
pub fn is_buffer_full() -> bool {
    let state = state();
    state.full || state.guards > 0 && state.run.as_ref().is_some_and(|run| run.full.load(Ordering::Acquire))
}

pub(crate) fn is_delegated() -> bool {
    state().delegated
}

pub(crate) fn settings(n: Option<u64>, delay: Option<Duration>) -> Result<Settings, InitError> {
    let mut state = state();
    let mut settings = state.settings();
    if n.is_none() && delay.is_none() {
        return Ok(settings);
    }
    if state.guards > 0 {
        return Err(InitError::Running);
    }
    settings.n = n.unwrap_or(settings.n);
    settings.delay = delay.unwrap_or(settings.delay);
    (state.settings, state.past, state.full) = (Some(settings), None, false);
    Ok(settings)
}

/// Everything sampled so far, without names.
pub(crate) fn snapshot() -> Recording {
    let state = state();
    let mut all =
        state.past.clone().unwrap_or_else(|| Recording { info: state.info(), ..Default::default() });
    if let Some(run) = state.run.as_ref().filter(|_| state.guards > 0) {
        all.absorb(&run.recording());
    }
    all.info.full = state.full || all.info.full;
    all
}

impl Running {
    const fn new() -> Running {
        Running {
            settings: None,
            guards: 0,
            run: None,
            peek: None,
            past: None,
            full: false,
            delegated: false,
        }
    }

    fn settings(&self) -> Settings {
        self.settings.unwrap_or_default()
    }

    fn forget_the_parents_run(&mut self) {
        if self.run.as_ref().is_some_and(|run| run.pid != std::process::id())
            && let Some(run) = self.run.take()
        {
            // Its threads do not exist in this process, so no part of it may be joined or dropped.
            std::mem::forget(run);
            (self.past, self.full, self.peek, self.guards) = (None, false, None, 0);
        }
    }

    fn info(&self) -> RecordingInfo {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        RecordingInfo {
            command: std::env::args_os().map(|text| text.to_string_lossy().into_owned()).collect(),
            started: since.as_nanos() as u64,
            delay: Nanos(self.settings().delay.as_nanos() as u64),
            capacity: self.settings().n,
            writer: concat!("stackglass ", env!("CARGO_PKG_VERSION")).to_string(),
            ..RecordingInfo::default()
        }
    }

    fn enter(&mut self, asked: ProfileKind) -> Result<(), StartError> {
        if self.guards == 0 && !self.delegated {
            self.begin(asked)?;
        } else if let Some(running) =
            self.run.as_ref().map(|run| run.kind).filter(|running| *running != asked)
        {
            return Err(StartError::OtherKind { running, asked });
        }
        self.guards += 1;
        Ok(())
    }

    /// Starts a run for the first guard, or shares the run of a peek.
    fn begin(&mut self, kind: ProfileKind) -> Result<(), StartError> {
        let stored = self.past.as_ref().map_or(0, words);
        let room = self.settings().n.saturating_sub(stored);
        if room == 0 || self.full {
            self.full = true;
            return Err(StartError::Full);
        }
        if self.run.as_ref().is_some_and(|run| run.full.load(Ordering::Acquire)) {
            self.stop_run();
        }
        let delay = self.settings().delay;
        if self.run.as_ref().is_some_and(|run| run.kind != kind || run.delay != delay) {
            self.save_for_peek();
            self.stop_run();
        }
        if self.run.is_none() {
            return self.start_run(room, delay, kind);
        }
        self.restart();
        if let Some(run) = &self.run {
            run.collector.with(|recorder| recorder.set_capacity(room));
        }
        Ok(())
    }

    /// Forgets the samples of the run. A peek that shares the run keeps its part.
    fn restart(&mut self) {
        self.save_for_peek();
        if let Some(run) = &mut self.run {
            run.collector.clear();
            run.began = Instant::now();
            run.full_after = Arc::default();
        }
    }

    fn leave(&mut self) {
        self.guards = self.guards.saturating_sub(1);
        if self.guards == 0 {
            self.end_profile();
        }
    }

    /// Starts the threads of a run that may store `room` words.
    fn start_run(&mut self, room: u64, delay: Duration, kind: ProfileKind) -> Result<(), StartError> {
        let mut info = self.info();
        (info.capacity, info.delay) = (room, Nanos(delay.as_nanos() as u64));
        let config =
            Config { delay_ns: info.delay.0, walltime: kind == ProfileKind::Walltime, ..Config::default() };
        let sampler = match stackglass_sampler::start(config) {
            Ok(handle) => Arc::new(handle),
            Err(NotStarted::Delegated) => {
                self.delegated = true;
                return Ok(());
            }
            Err(error) => return Err(StartError::Sampler(error.to_string())),
        };
        info.start = Nanos(sampler.control().start_ns.load(Ordering::Relaxed));
        let answers = (kind == ProfileKind::Walltime).then(|| Arc::new(WaitAnswers::default()));
        let collector = Collector::new(sampler.control(), sampler.ring(), info, answers.clone());
        let collector = Arc::new(collector);
        let mut run = Run {
            pid: std::process::id(),
            kind,
            delay,
            began: Instant::now(),
            sampler,
            collector,
            reader: None,
            waits: None,
            full: Arc::default(),
            full_after: Arc::default(),
            #[cfg(feature = "files")]
            file: None,
        };
        let started = run.read().and_then(|reader| {
            run.reader = Some(reader);
            let collector = run.collector.clone();
            run.waits = answers.map(|answers| waits::Reader::start(collector, answers)).transpose()?;
            stackglass_sampler::wait_until_begun(LONGEST_BEGIN);
            Ok(())
        });
        self.run = Some(run);
        if let Err(error) = started {
            drop(self.stop_run());
            return Err(StartError::Collector(error));
        }
        Ok(())
    }

    /// Ends the run after the last guard, and keeps its samples. A peek continues with the run.
    fn end_profile(&mut self) {
        let Some(run) = &self.run else { return };
        let share = self.peek.is_some() && run.kind == ProfileKind::Threads;
        #[cfg(feature = "files")]
        let share = share && run.file.is_none();
        if share {
            let recording = run.recording();
            self.full |= run.full.load(Ordering::Acquire);
            self.keep(&recording);
            self.restart();
            return;
        }
        self.save_for_peek();
        let Some(run) = self.stop_run() else { return };
        let recording = run.recording();
        #[cfg(feature = "files")]
        if let Some(file) = &run.file {
            file.finish(&recording);
        }
        self.full |= run.full.load(Ordering::Acquire);
        self.keep(&recording);
    }

    fn keep(&mut self, recording: &Recording) {
        let info = self.info();
        self.past.get_or_insert_with(|| Recording { info, ..Default::default() }).absorb(recording);
    }

    /// Ends the threads of the run.
    fn stop_run(&mut self) -> Option<Run> {
        let mut run = self.run.take()?;
        run.sampler.stop();
        // What follows is no part of the profile.
        let _ = run.full_after.set(run.began.elapsed());
        if let Some(waits) = run.waits.take() {
            waits.stop();
        }
        if let Some(reader) = run.reader.take() {
            reader.stop.store(true, Ordering::Release);
            reader.thread.thread().unpark();
            // A panic of that thread has been printed already.
            let _ = reader.thread.join();
        }
        Some(run)
    }
}

impl Run {
    /// The samples of this run.
    fn recording(&self) -> Recording {
        let mut recording = self.collector.snapshot();
        let wall = self.full_after.get().copied().unwrap_or_else(|| self.began.elapsed());
        recording.info.wall = Nanos(wall.as_nanos() as u64);
        let control = self.sampler.control();
        recording.info.own_cpu = Nanos(control.sampler_cpu_ns.load(Ordering::Relaxed));
        recording
    }

    /// Starts the thread that reads the stream.
    fn read(&self) -> std::io::Result<Reader> {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, collector, full) = (stop.clone(), self.collector.clone(), self.full.clone());
        let (sampler, began, full_after) = (self.sampler.clone(), self.began, self.full_after.clone());
        stackglass_sampler::expect_helper();
        let spawned = std::thread::Builder::new().name("stackglass-read".into()).spawn(move || {
            stackglass_sampler::leave_out_this_thread();
            while !stopped.load(Ordering::Acquire) {
                std::thread::park_timeout(PAUSE);
                if collector.drain() && !full.swap(true, Ordering::AcqRel) {
                    // Sampling ends, and the program continues.
                    sampler.stop();
                    let _ = full_after.set(began.elapsed());
                }
            }
            // The sampler has ended before.
            stackglass_sampler::count_this_thread_again();
        });
        let thread = spawned.inspect_err(|_| stackglass_sampler::expect_no_helper())?;
        Ok(Reader { stop, thread })
    }
}

/// The words that a recording stores, by the same count as while it grows.
fn words(recording: &Recording) -> u64 {
    let stacks = &recording.stacks;
    (stacks.nodes().len() + 2 * stacks.locations().len() + 5 * recording.samples.len()) as u64
}
