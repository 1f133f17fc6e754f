//! Collecting inside the profiled process itself, for the crate `stackglass`.
//!
//! The sampler thread writes its stream into private memory. The crate drains it from a separate thread, before it is
//! full. For profiles by wall time, a third thread reads the await stacks of waiting tasks (`AwaitStacks` of the crate `inspect`), and at the end
//! polls and waits are brought into one tree ([`join_polls_and_waits`]).

mod one_tree;

pub use crate::recording::waits::WaitAnswers;
pub use one_tree::join_polls_and_waits;

use crate::recording::StreamDrain;
use stackglass_profile::{Recorder, Recording, RecordingInfo};
use stackglass_wire::ControlPage;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Reads one stream of this process into one recording.
pub struct Collector {
    state: Mutex<State>,
}

struct State {
    control: &'static ControlPage,
    ring: &'static [AtomicU64],
    /// `None` until the control page is ready, or while the recording is full.
    drain: Option<StreamDrain>,
    recorder: Recorder,
    /// Await stacks of waiting tasks.
    answers: Option<Arc<WaitAnswers>>,
}

impl Collector {
    /// A collector for the stream in `ring`, from its first word on. `about.capacity` bounds the recording.
    ///
    /// `answers`: the await stacks of waiting tasks, if a thread reads them.
    ///
    /// # Panics
    /// If the length of `ring` is not a power of two.
    pub fn new(
        control: &'static ControlPage,
        ring: &'static [AtomicU64],
        info: RecordingInfo,
        answers: Option<Arc<WaitAnswers>>,
    ) -> Collector {
        assert!(ring.len().is_power_of_two(), "a stream has a power of two words");
        let recorder = Recorder::new(info);
        Collector { state: Mutex::new(State { control, ring, drain: None, recorder, answers }) }
    }

    /// Reads all events that are waiting now. Returns whether the recording is full, so that sampling can stop.
    pub fn drain(&self) -> bool {
        self.lock().drain()
    }

    /// Reads all events that are waiting now, then calls `f` with the recorder.
    pub fn with<R>(&self, f: impl FnOnce(&mut Recorder) -> R) -> R {
        let mut state = self.lock();
        state.drain();
        let state = &mut *state;
        if let Some(drain) = &state.drain {
            drain.refresh(&mut state.recorder);
        }
        f(&mut state.recorder)
    }

    /// A copy of the recording as of now.
    pub fn snapshot(&self) -> Recording {
        self.with(|recorder| recorder.recording().clone())
    }

    /// Forgets all samples; threads and modules stay known.
    pub fn clear(&self) {
        let mut state = self.lock();
        // Events that are waiting are older than this call: they are forgotten as well.
        state.drain();
        let state = &mut *state;
        let before = state.recorder.clear_samples();
        if let Some(drain) = &mut state.drain {
            drain.forget_stacks(&before, &mut state.recorder);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic leaves only whole events behind: the recording is still valid.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn drain(&mut self) -> bool {
        if self.drain.is_none() && self.control.is_ready() {
            self.drain = StreamDrain::new(self.control, self.ring, &mut self.recorder);
            if let (Some(drain), Some(answers)) = (&mut self.drain, &self.answers) {
                drain.await_answers(answers.clone());
            }
        }
        if let Some(drain) = &mut self.drain {
            drain.drain(&mut self.recorder);
        }
        self.recorder.is_full()
    }
}
