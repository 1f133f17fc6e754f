//! Collecting inside the profiled process itself: the crate's way.
//!
//! The sampler thread writes its stream into private memory; somebody must read it before it is
//! full. [`Collector::drain`] does so on demand, [`Collector::keep_draining`] from a thread.

use crate::{ProcessImage, Recorder};
use stackglass_profile::{About, Recording};
use stackglass_wire::ControlPage;
use stackglass_wire::stream::{Reader, Trouble};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time between two looks at the stream: a quarter of what its default size holds at its worst.
const PAUSE: Duration = Duration::from_millis(25);

/// Name of the reading thread.
pub const THREAD_NAME: &str = "stackglass-read";

/// Reads one stream of this process into one recording.
pub struct Collector {
    state: Mutex<State>,
}

struct State {
    control: &'static ControlPage,
    reader: Box<Reader<'static>>,
    image: Option<ProcessImage>,
    recorder: Recorder,
    broken: bool,
}

impl Collector {
    /// A collector for the stream in `ring`, from its first word on. `about.capacity` bounds it.
    ///
    /// # Panics
    /// When the length of `ring` is not a power of two.
    pub fn new(control: &'static ControlPage, ring: &'static [AtomicU64], about: About) -> Collector {
        let reader = Box::new(Reader::new(control, ring));
        let recorder = Recorder::new(about);
        Collector { state: Mutex::new(State { control, reader, image: None, recorder, broken: false }) }
    }

    /// Takes up everything that waits now. True when the recording is full: stop sampling.
    pub fn drain(&self) -> bool {
        self.lock().drain()
    }

    /// Takes up everything that waits, then lets `f` look at the recorder or change it.
    pub fn with<R>(&self, f: impl FnOnce(&mut Recorder) -> R) -> R {
        let mut state = self.lock();
        state.drain();
        state.refresh();
        f(&mut state.recorder)
    }

    /// A copy of the recording as of now.
    pub fn snapshot(&self) -> Recording {
        self.with(|recorder| recorder.recording().clone())
    }

    /// Forgets all samples; threads and modules stay known.
    pub fn clear(&self) {
        let mut state = self.lock();
        // What waits was sampled before: it is forgotten as well.
        state.drain();
        let state = &mut *state;
        let before = state.recorder.clear_samples();
        if let Some(image) = &mut state.image {
            image.forget_stacks(&before, &mut state.recorder);
        }
    }

    /// Drains from a thread of its own until the returned guard is dropped; `full` is called from
    /// that thread, once, when the recording has become full.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn keep_draining(
        self: &Arc<Self>,
        full: impl FnOnce() + Send + 'static,
    ) -> std::io::Result<Draining> {
        let stop = Arc::new(AtomicBool::new(false));
        let (collector, told) = (self.clone(), stop.clone());
        let mut full = Some(full);
        let thread = std::thread::Builder::new().name(THREAD_NAME.into()).spawn(move || {
            while !told.load(Ordering::Acquire) {
                std::thread::park_timeout(PAUSE);
                if collector.drain()
                    && let Some(full) = full.take()
                {
                    full();
                }
            }
        })?;
        Ok(Draining { stop, thread: Some(thread) })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic inside left whole events behind: the recording is still good.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn drain(&mut self) -> bool {
        if self.image.is_none() && self.control.is_ready() {
            self.image = ProcessImage::new(self.control, &mut self.recorder);
        }
        let Some(image) = &mut self.image else { return self.recorder.is_full() };
        // Bounded by what waits now: the writer may be as fast as we are.
        for _ in 0..self.reader.waiting() {
            if self.broken {
                break;
            }
            match self.reader.read() {
                Ok(Some(event)) => image.take(&event, &mut self.recorder),
                Ok(None) => break,
                Err(Trouble::Event(_)) => {}
                Err(Trouble::Broken) => {
                    self.broken = true;
                    self.recorder.remark("the sampler's stream is damaged; samples from before are kept");
                }
            }
        }
        self.recorder.is_full()
    }

    fn refresh(&mut self) {
        if let Some(image) = &self.image {
            image.refresh(self.control, &mut self.recorder);
        }
    }
}

/// Ends the reading thread when dropped (and waits for it).
#[must_use = "draining ends when this is dropped"]
pub struct Draining {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Draining {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It cannot panic with anything to tell us.
            let _ = thread.join();
        }
    }
}
