//! Looking at a process that knows nothing of us, from outside and while it runs.
//!
//! [`Attachment`] finds its modules and threads in `/proc`, reads the stacks of sleeping threads with
//! process_vm_readv, and has running ones show theirs by perf events or ptrace ([`choice`]). What it
//! sees are the same events that a sampler inside a program writes, so recordings, reports and files
//! are those of every other program.
//!
//! The process always runs on. It is never sent a signal; a thread that sleeps is not woken as long as the
//! kernel's account of it stands still; when we end, however we end, the kernel lets go of its threads.
#![allow(unsafe_code, reason = "system calls, ptrace and a stream in own memory")]

pub mod access;
mod calls;
pub mod choice;
mod clock;
mod deadlock;
mod images;
mod interrupted_call;
pub mod leak_check;
mod look;
mod modules;
mod parts;
mod perf_events;
mod ptrace;
mod sampler;
mod stack_reader;
mod stops;
mod stream;
mod thread;
mod tracking;
mod turn;

pub use access::Refusal;
pub use choice::{Choice, Driver};
pub use stream::Stream;
pub use turn::Stay;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

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
pub struct Attachment {
    pid: u32,
    delay: Duration,
    driver: Option<Driver>,
    orders: Arc<Orders>,
    thread: Option<JoinHandle<()>>,
    choice: Choice,
    stay: Stay,
    /// Held as long as threads may be traced.
    turn: Option<turn::Turn>,
}

impl Attachment {
    /// Begins to look at all threads of a process, once in each `delay`.
    ///
    /// # Errors
    /// When it is gone, or may not be looked at; what permission is missing and how to get it.
    pub fn begin(
        pid: u32,
        delay: Duration,
        driver: Option<Driver>,
        stay: Stay,
    ) -> Result<Attachment, Refusal> {
        Attachment::begin_as(pid, delay, driver, stay, false)
    }

    /// The same; one of many processes, which `rests` while nothing moves in it.
    pub fn begin_as(
        pid: u32,
        delay: Duration,
        driver: Option<Driver>,
        stay: Stay,
        rests: bool,
    ) -> Result<Attachment, Refusal> {
        let choice = choice::choose(pid, driver);
        // Perf events do not do for each thread, but for most: they need no turn.
        let turn = match choice.driver {
            Driver::Ptrace => Some(turn::Turn::take(pid, stay).map_err(|other| access::taken(pid, other))?),
            Driver::Perf => None,
        };
        access::check(pid, choice.driver)?;
        stackglass_procfs::threads::allow_many_files();
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
        Ok(Attachment { pid, delay, driver, orders, thread: Some(thread), choice, stay, turn })
    }

    /// How running threads are made to show their stacks, and why so.
    pub fn choice(&self) -> &Choice {
        &self.choice
    }

    /// Streams that have begun since the last call, one for each image of the process.
    pub fn new_streams(&self) -> Vec<Stream> {
        std::mem::take(&mut *self.orders.streams.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Keeps an exec of the process going. To be called every 50 ms at least.
    pub fn help_exec(&self) {
        self.orders.seizing.help(self.pid);
    }

    /// The clock of samples, ns.
    pub fn now() -> u64 {
        clock::monotonic()
    }

    /// Why nothing more is to come, once that is so.
    pub fn stopped(&self) -> Option<Stopped> {
        self.orders.stopped.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Begins to look again, as before, after it has been [stopped](Attachment::stop).
    pub fn resume(&mut self) {
        if self.stopped().is_some() {
            return;
        }
        match Attachment::begin_as(self.pid, self.delay, self.driver, self.stay, self.orders.rests) {
            Ok(again) => *self = again,
            Err(why) => self.orders.ended(why.into()),
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

impl Drop for Attachment {
    fn drop(&mut self) {
        self.stop();
    }
}
