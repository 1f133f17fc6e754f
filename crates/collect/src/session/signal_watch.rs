//! Ends this process by a signal that nobody reads: the thread that should read it waits for something outside.
//!
//! A file system that does not answer, or a server, may hold that thread up for ever. The kernel then lets traced threads run,
//! and ends copies. What was written of a recording can be read.
//!
//! Time is counted in steps, not by a clock: a process that was stopped, or got no CPU, is not ended for that.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Signals that end a process.
const ENDING: [i32; 4] = [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP];
/// A step while no signal is waiting to be read.
const IDLE_STEP: Duration = Duration::from_millis(100);
/// A step while one is.
const STEP: Duration = Duration::from_millis(10);
/// A signal that is not read in so many steps ends the process.
const STEPS: u32 = 80;

/// What the thread that reads signals has last done.
#[derive(Debug, Default)]
pub(super) struct Reading {
    /// Its id.
    tid: AtomicU32,
    /// How often it has read signals.
    reads: AtomicU64,
    /// It reads no more signals. Those that were waiting then are in [`Reading::old`].
    finished: AtomicBool,
    /// Bits of signals that end nothing, because they came earlier.
    old: AtomicU64,
}

impl Reading {
    /// Notes that the calling thread reads signals.
    pub(super) fn note_read(&self) {
        // SAFETY: a system call without arguments.
        self.tid.store(unsafe { libc::gettid() } as u32, Relaxed);
        self.reads.fetch_add(1, Relaxed);
        self.finished.store(false, Relaxed);
        self.old.store(0, Relaxed);
    }

    /// Notes that signals are no longer read. One that comes from now on ends the process, also while it computes.
    pub(super) fn finish(&self) {
        self.old.store(waiting(), Relaxed);
        self.finished.store(true, Relaxed);
    }

    /// Nanoseconds in which the reading thread ran or waited for a CPU.
    fn active(&self) -> u64 {
        let path = format!("/proc/self/task/{}/schedstat", self.tid.load(Relaxed));
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.split_whitespace().take(2).filter_map(|ns| ns.parse::<u64>().ok()).sum()
    }
}

/// Starts a thread that watches. The signals must be blocked.
pub(super) fn start(reading: Arc<Reading>) {
    let watch = std::thread::Builder::new().name("signals".into()).stack_size(64 << 10);
    // Without it, signals are read all the same.
    drop(watch.spawn(move || watch_for_ever(&reading)));
}

fn watch_for_ever(reading: &Reading) {
    loop {
        std::thread::sleep(IDLE_STEP);
        if ending(reading) != 0 {
            watch_waiting(reading);
        }
    }
}

/// Signals that wait to be read, and would end this process.
fn ending(reading: &Reading) -> u64 {
    let old = if reading.finished.load(Relaxed) { reading.old.load(Relaxed) } else { 0 };
    waiting() & !old
}

/// Ends the process if signals that wait now stay unread. Returns if the thread reads them, or is at work.
fn watch_waiting(reading: &Reading) {
    let (reads, active) = (reading.reads.load(Relaxed), reading.active());
    for _ in 0..STEPS {
        std::thread::sleep(STEP);
        if ending(reading) == 0 || reading.reads.load(Relaxed) != reads {
            return;
        }
    }
    let step = u64::try_from(STEP.as_nanos()).unwrap_or(u64::MAX);
    let is_at_work = reading.active().saturating_sub(active) > step * u64::from(STEPS) / 4;
    if is_at_work && !reading.finished.load(Relaxed) {
        return;
    }
    let signals = ending(reading);
    for signal in ENDING.into_iter().filter(|signal| signals >> signal & 1 == 1) {
        end_by(signal);
    }
}

/// The ending signals that wait to be read and are not ignored, as bits.
fn waiting() -> u64 {
    // SAFETY: the kernel fills the set, which lives on this stack.
    let set = unsafe {
        let mut set = std::mem::zeroed::<libc::sigset_t>();
        libc::sigpending(&mut set);
        set
    };
    // SAFETY: reads the set.
    let is_in = |signal: &i32| unsafe { libc::sigismember(&set, *signal) } == 1 && !is_ignored(*signal);
    ENDING.into_iter().filter(is_in).fold(0, |bits, signal| bits | 1 << signal)
}

fn is_ignored(signal: i32) -> bool {
    // SAFETY: an all-zero sigaction is a value, which the kernel fills.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
    }
}

/// Lets a signal that waits do what it does by default.
fn end_by(signal: i32) {
    // SAFETY: a set on this stack, and the mask of this thread.
    unsafe {
        let mut set = std::mem::zeroed::<libc::sigset_t>();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut());
    }
}
