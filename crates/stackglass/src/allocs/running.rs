//! Starting and stopping, for one thread at a time.

use super::{Options, Sampling, StartError};
use stackglass_heap::own_recording;
use std::sync::{Mutex, MutexGuard, PoisonError};

static STATE: Mutex<State> = Mutex::new(State { pid: 0, running: None, weight: None });

pub(super) struct State {
    /// The process that the rest belongs to: a forked child begins anew.
    pid: u32,
    running: Option<Options>,
    /// What the records since the last `clear` count as: 1, or by one sample in this many bytes.
    weight: Option<Sampling>,
}

pub(super) fn state() -> MutexGuard<'static, State> {
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    let pid = std::process::id();
    if state.pid != pid {
        *state = State { pid, running: None, weight: None };
    }
    state
}

impl State {
    pub(super) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    fn start(&mut self, options: Options) -> Result<(), StartError> {
        self.stop();
        let weight = match options.sampling {
            Sampling::Rate(_) => Sampling::Rate(1.0),
            bytes => bytes,
        };
        if self.weight.is_some_and(|before| before != weight) {
            own_recording::forget();
        }
        match own_recording::begin(options.keeping()).map_err(StartError::from_not_recorded) {
            Ok(_) => (self.running, self.weight) = (Some(options), Some(weight)),
            Err(None) => {}
            Err(Some(error)) => return Err(error),
        }
        Ok(())
    }

    fn stop(&mut self) {
        if self.running.take().is_some() {
            own_recording::end();
        }
    }
}

/// Starts recording the allocations of all threads. Stops first if a recording is running. Records of earlier recordings stay.
///
/// Estimates and counts do not add up: a start that changes to or from [`Sampling::Bytes`], or its number, forgets the earlier
/// records. Under `stackglass record --allocs` it succeeds and does nothing, because the command records.
///
/// ```
/// # #[global_allocator]
/// # static ALLOCATOR: stackglass::Alloc = stackglass::Alloc::system();
/// use stackglass::allocs;
///
/// # fn main() -> Result<(), allocs::StartError> {
/// allocs::start(1.0)?;
/// let boxed = Box::new([7u8; 1000]);
/// allocs::stop();
/// assert!(allocs::fetch().allocs.iter().any(|alloc| alloc.size == 1000));
/// allocs::clear();
/// assert!(allocs::fetch().allocs.is_empty());
/// # drop(boxed);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// If [`Alloc`](crate::Alloc) is not the program's allocator, or without memory.
pub fn start(options: impl Into<Options>) -> Result<(), StartError> {
    state().start(options.into())
}

/// Stops recording. When it returns, no thread is inside the recorder, and none can enter. Recorded blocks stay followed until
/// they are freed or [`clear`] is called, which costs each free some nanoseconds.
pub fn stop() {
    state().stop();
}

/// Whether allocations are being recorded. False under `stackglass record --allocs`, where the command records.
pub fn is_running() -> bool {
    state().is_running()
}

/// Forgets all records. A running recording continues.
pub fn clear() {
    let mut state = state();
    let running = state.running;
    state.stop();
    own_recording::forget();
    state.weight = None;
    if let Some(options) = running {
        // It ran before, so nothing is missing.
        let _ = state.start(options);
    }
}
