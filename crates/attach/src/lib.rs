//! Samples a running process from outside. The process needs no preparation and links nothing of Stackglass.
//!
//! [`Attachment`] finds modules and threads in `/proc`. It reads the stacks of sleeping threads from
//! `/proc/PID/mem`, and takes those of running threads by perf events or ptrace ([`choice`]). It writes the same
//! events as a sampler inside a program, so recordings, reports and files are the same.
//!
//! The process keeps running. It is never sent a signal. With perf events no thread is stopped or traced. With
//! ptrace, running threads are stopped, which interrupts their system calls; a sleeping thread is stopped only where its
//! stack cannot be read from outside, once per location, and only in calls that the kernel resumes by itself. When
//! this process ends, for whatever reason, the kernel detaches all threads.
#![allow(unsafe_code, reason = "system calls, ptrace and a stream in own memory")]

pub mod access;
mod calls;
pub mod choice;
mod clock;
mod deadlock;
mod detach_for_copy;
pub mod driver;
#[cfg(test)]
mod ended_child;
pub mod frozen;
mod interrupted_call;
pub mod leak_check;
mod module_reader;
mod modules;
mod perf_events;
pub mod perf_refused;
mod poll;
pub mod probe;
mod ptrace;
mod refusal;
mod sampled_process;
mod sampler;
mod sampling_period;
mod stack_reader;
mod stream;
mod thread;
mod trace_reports;
mod tracer_lock;
mod tracking;

pub use choice::Choice;
pub use driver::Driver;
pub use refusal::Refusal;
pub use stream::Stream;
pub use tracer_lock::AttachMode;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tracer_lock::TracerLock;

/// Why a process cannot be sampled any more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Stopped {
    /// It has ended.
    Gone,
    /// It has exec'ed a program that may not be sampled: the reason and the remedy.
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

/// Shared between the thread that samples and the one that drains.
pub(crate) struct Orders {
    stop: AtomicBool,
    /// Streams that the draining thread has not picked up yet.
    streams: Mutex<Vec<Stream>>,
    stopped: Mutex<Option<Stopped>>,
    cpus: usize,
    seizing: deadlock::Seizing,
    /// Held while threads may be traced.
    tracer_lock: Mutex<Option<TracerLock>>,
    /// Sample less often while all threads sleep: the process is one of many.
    slow_when_idle: bool,
}

impl Orders {
    fn add(&self, stream: Stream) {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner).push(stream);
    }

    fn ended(&self, why: Stopped) {
        *self.stopped.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
    }
}

/// A process that is being sampled. Dropping it detaches from the process.
pub struct Attachment {
    pid: u32,
    delay: Duration,
    driver: Option<Driver>,
    orders: Arc<Orders>,
    thread: Option<JoinHandle<()>>,
    choice: Choice,
    mode: AttachMode,
}

impl Attachment {
    /// Starts to sample all threads of a process, once in each `delay`.
    ///
    /// # Errors
    /// If the process does not exist or may not be sampled: which permission is missing, and how to get it.
    pub fn begin(
        pid: u32,
        delay: Duration,
        driver: Option<Driver>,
        mode: AttachMode,
    ) -> Result<Attachment, Refusal> {
        Attachment::begin_as(pid, delay, driver, mode, false)
    }

    /// Like [`Attachment::begin`]. With `slow_when_idle`, the process is sampled less often while all its threads sleep.
    pub fn begin_as(
        pid: u32,
        delay: Duration,
        driver: Option<Driver>,
        mode: AttachMode,
        slow_when_idle: bool,
    ) -> Result<Attachment, Refusal> {
        if !matches!(driver, Some(Driver::Ptrace)) {
            access::check(pid, Driver::Perf)?;
        }
        let choice = choice::choose(pid, driver)?;
        // Without ptrace there is no need for the lock.
        let tracer_lock = match choice.driver {
            Driver::Ptrace => Some(TracerLock::take(pid, mode).map_err(|other| access::taken(pid, other))?),
            Driver::Perf | Driver::Asleep => None,
        };
        access::check(pid, choice.driver)?;
        stackglass_procfs::threads::allow_many_files();
        let orders = Arc::new(Orders {
            stop: AtomicBool::new(false),
            streams: Mutex::default(),
            stopped: Mutex::default(),
            cpus: std::thread::available_parallelism().map_or(1, |n| n.get()),
            seizing: deadlock::Seizing::default(),
            tracer_lock: Mutex::new(tracer_lock),
            slow_when_idle,
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
        Ok(Attachment { pid, delay, driver, orders, thread: Some(thread), choice, mode })
    }

    /// The driver that is used, and why.
    pub fn choice(&self) -> &Choice {
        &self.choice
    }

    /// Streams that have begun since the last call: one for each image of the process.
    pub fn new_streams(&self) -> Vec<Stream> {
        std::mem::take(&mut *self.orders.streams.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Resolves a deadlock between an exec of the process and PTRACE_SEIZE. Call it at least every 50 ms.
    pub fn help_exec(&self) {
        self.orders.seizing.help(self.pid);
    }

    /// The clock of samples, ns.
    pub fn now() -> u64 {
        clock::monotonic()
    }

    /// Why the process is not sampled any more; `None` while it is.
    pub fn stopped(&self) -> Option<Stopped> {
        self.orders.stopped.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Samples the process again with the same settings, after [`Attachment::stop`].
    pub fn resume(&mut self) {
        if self.stopped().is_some() {
            return;
        }
        match Attachment::begin_as(self.pid, self.delay, self.driver, self.mode, self.orders.slow_when_idle) {
            Ok(again) => *self = again,
            Err(why) => self.orders.ended(why.into()),
        }
    }

    /// Stops sampling. The events written so far can still be drained.
    pub fn stop(&mut self) {
        self.orders.stop.store(true, Ordering::Release);
        let Some(thread) = self.thread.take() else { return };
        while !thread.is_finished() {
            self.orders.seizing.help(self.pid);
            std::thread::sleep(Duration::from_micros(200));
        }
        if thread.join().is_err() {
            self.orders.ended(Stopped::Locked("the sampling thread has failed; please report this".into()));
        }
        *self.orders.tracer_lock.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        self.stop();
    }
}
