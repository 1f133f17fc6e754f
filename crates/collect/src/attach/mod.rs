//! Looking at a process that knows nothing of us, from outside and while it runs.
//!
//! [`Attached`] finds its modules and threads in `/proc`, reads the stacks of sleeping threads with
//! process_vm_readv, and has running ones show theirs by perf events or ptrace ([`choice`]). What it
//! sees are the same events that a sampler inside a program writes, so recordings, reports and files
//! are those of every other program. [`record()`] makes a recording of it.
//!
//! The process always runs on. It is never sent a signal; a thread that sleeps is not woken as long as the
//! kernel's account of it stands still; when we end, however we end, the kernel lets go of its threads.

pub mod access;
mod calls;
pub mod choice;
mod clock;
mod deadlock;
pub(crate) mod descendants;
mod images;
mod leak_check;
mod look;
pub(crate) mod modules;
pub(crate) mod peek;
mod perf_events;
pub mod process;
mod ptrace;
pub mod recognise;
mod record;
mod sampler;
mod sleep_stacks;
mod stream;
pub mod threads;
mod turn;

pub use access::Refusal;
pub use choice::{Choice, Driver};
pub use peek::{PeekOptions, peek};
pub use record::{AttachError, Options, ends, record};
pub use turn::Stay;

use crate::Recorder;
use stackglass_profile::Stacks;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use stream::{Drained, Stream};

/// Why nothing more can be seen of a process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Stopped {
    /// It has ended.
    Gone,
    /// It has exec'ed a program that may not be looked at; why and what to do.
    Locked(String),
}

impl From<Refusal> for Stopped {
    fn from(why: Refusal) -> Stopped {
        match why {
            Refusal::NoProcess { .. } | Refusal::Ended { .. } => Stopped::Gone,
            why => Stopped::Locked(why.to_string()),
        }
    }
}

/// What the recording thread and the looking one tell each other.
pub(crate) struct Orders {
    stop: AtomicBool,
    /// Images that the recording thread has not taken up.
    streams: Mutex<Vec<Stream>>,
    stopped: Mutex<Option<Stopped>>,
    processors: usize,
    seizing: deadlock::Seizing,
    /// A process in which nothing moves is looked at less often: it is one of many.
    rests: bool,
}

impl Orders {
    fn add(&self, stream: Stream) {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner).push(stream);
    }

    fn ended(&self, why: Stopped) {
        *self.stopped.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
    }
}

/// A process that is looked at. When it is dropped, the process is let go.
pub struct Attached {
    pid: u32,
    delay: Duration,
    driver: Option<Driver>,
    orders: Arc<Orders>,
    thread: Option<JoinHandle<()>>,
    drained: Vec<Drained>,
    choice: Choice,
    stay: Stay,
    /// Held as long as threads may be traced.
    turn: Option<turn::Turn>,
}

impl Attached {
    /// Begins to look at all threads of a process, once in each `delay`.
    ///
    /// # Errors
    /// When it is gone, or may not be looked at; what permission is missing and how to get it.
    pub fn begin(pid: u32, delay: Duration, driver: Option<Driver>, stay: Stay) -> Result<Attached, Refusal> {
        Attached::begin_as(pid, delay, driver, stay, false)
    }

    /// The same; one of many processes, which `rests` while nothing moves in it.
    fn begin_as(
        pid: u32,
        delay: Duration,
        driver: Option<Driver>,
        stay: Stay,
        rests: bool,
    ) -> Result<Attached, Refusal> {
        let choice = choice::choose(pid, driver);
        // Perf events do not do for each thread, but for most: they need no turn.
        let turn = match choice.driver {
            Driver::Ptrace => Some(turn::Turn::take(pid, stay).map_err(|other| access::taken(pid, other))?),
            Driver::Perf => None,
        };
        access::check(pid, choice.driver)?;
        access::allow_many_files();
        let orders = Arc::new(Orders {
            stop: AtomicBool::new(false),
            streams: Mutex::default(),
            stopped: Mutex::default(),
            processors: std::thread::available_parallelism().map_or(1, |n| n.get()),
            seizing: deadlock::Seizing::default(),
            rests,
        });
        let sampler = sampler::Sampler::new(pid, delay.as_nanos() as u64, choice.driver, orders.clone())
            .ok_or(Refusal::NoProcess { pid })?;
        let thread = std::thread::Builder::new()
            .name("stackglass-look".into())
            .spawn(move || {
                clock::prepare_thread();
                sampler.run();
            })
            .map_err(Refusal::Thread)?;
        Ok(Attached {
            pid,
            delay,
            driver,
            orders,
            thread: Some(thread),
            drained: Vec::new(),
            choice,
            stay,
            turn,
        })
    }

    /// How running threads are made to show their stacks, and why so.
    pub fn choice(&self) -> &Choice {
        &self.choice
    }

    /// Takes up what was seen since the last call.
    /// To be called every 50 ms at least: an exec of the process may wait for it.
    pub fn drain(&mut self, recorder: &mut Recorder) {
        self.orders.seizing.help(self.pid);
        let mut streams = self.orders.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let new = std::mem::take(&mut *streams);
        drop(streams);
        self.drained.retain_mut(|drained| {
            drained.drain(recorder);
            !drained.close_if_stopped(recorder)
        });
        for stream in new {
            if stream.was_never_there() {
                continue;
            }
            let mut drained = Drained::new(stream, recorder);
            drained.drain(recorder);
            self.drained.push(drained);
        }
    }

    /// Forgets which stacks were seen, after [`Recorder::clear_samples`].
    pub fn forget_stacks(&mut self, before: &Stacks, recorder: &mut Recorder) {
        self.drained.iter_mut().for_each(|drained| drained.forget_stacks(before, recorder));
    }

    /// The clock of samples, ns.
    pub fn now() -> u64 {
        clock::monotonic()
    }

    /// Why nothing more is to come, once that is so.
    pub fn stopped(&self) -> Option<Stopped> {
        self.orders.stopped.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Lets the process go, stops ourselves as Ctrl-Z does (`stand` returns when somebody continues us), and looks
    /// again: a thread of it that we have asked to stand would stand as long as we do.
    pub fn interrupt_for(&mut self, recorder: &mut Recorder, stand: impl FnOnce()) {
        self.stop();
        self.drain(recorder);
        stand();
        if self.stopped().is_none() {
            match Attached::begin(self.pid, self.delay, self.driver, self.stay) {
                Ok(again) => *self = again,
                Err(why) => self.orders.ended(why.into()),
            }
        }
    }

    /// Ends the looking; what was seen until then can still be drained.
    pub fn stop(&mut self) {
        self.orders.stop.store(true, Ordering::Release);
        let Some(thread) = self.thread.take() else { return };
        while !thread.is_finished() {
            self.orders.seizing.help(self.pid);
            std::thread::sleep(Duration::from_micros(200));
        }
        if thread.join().is_err() {
            self.orders.ended(Stopped::Locked("the looking thread has failed; please report this".into()));
        }
        self.turn = None;
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.stop();
    }
}
