//! The kernel's clocks of a process and a thread.

use crate::report::Report;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The clocks at one moment.
pub struct Reading {
    wall: Duration,
    process: Duration,
    thread: Duration,
}

impl Reading {
    /// All clocks now.
    pub fn now() -> Reading {
        Reading { wall: monotonic(), process: process_cpu(), thread: thread_cpu() }
    }

    /// Adds the time since then: `wall_ns`, `cpu_ns` (all threads), `thread_cpu_ns` (this thread).
    pub fn until_now(&self, report: &mut Report) {
        let now = Reading::now();
        report.number("wall_ns", (now.wall - self.wall).as_nanos());
        report.number("cpu_ns", (now.process - self.process).as_nanos());
        report.number("thread_cpu_ns", (now.thread - self.thread).as_nanos());
    }
}

fn read(clock: libc::clockid_t) -> Duration {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call fills `now`.
    let status = unsafe { libc::clock_gettime(clock, &mut now) };
    assert_eq!(status, 0, "clock {clock} can be read");
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// CLOCK_MONOTONIC.
pub fn monotonic() -> Duration {
    read(libc::CLOCK_MONOTONIC)
}

/// CPU time of the calling thread.
pub fn thread_cpu() -> Duration {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time of the process so far, ended threads included.
pub fn process_cpu() -> Duration {
    read(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// CPU time of all reaped children and their reaped children.
pub fn children_cpu() -> Duration {
    let usage = children_usage();
    [usage.ru_utime, usage.ru_stime]
        .map(|time| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000))
        .into_iter()
        .sum()
}

/// Peak resident memory of one of them, KiB.
pub fn children_peak_kib() -> u64 {
    children_usage().ru_maxrss as u64
}

fn children_usage() -> libc::rusage {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the call fills the rusage; all zeros is valid if it fails.
    unsafe {
        libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr());
        usage.assume_init()
    }
}

/// The calling thread's kernel id.
pub fn thread_id() -> i32 {
    // SAFETY: no arguments.
    unsafe { libc::gettid() }
}

/// Resident memory of this process in KiB, shared pages included.
pub fn resident_kib() -> u64 {
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap_or_default();
    let field = rollup.lines().find_map(|line| line.strip_prefix("Rss:"));
    field.and_then(|text| text.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

/// What a thread measures that reads the clock all the time.
pub struct Ticker {
    /// The longest time between two readings.
    pub longest: Duration,
    /// The same, less the time in which the thread waited for a CPU. What is left: it was stopped, or the kernel worked for it.
    pub longest_stop: Duration,
}

impl Ticker {
    /// Reads the clock until `stop` is set.
    pub fn until(stop: &AtomicBool) -> Ticker {
        /// Shortest time between two readings that is examined.
        const LONG: Duration = Duration::from_micros(50);
        let mut ticker = Ticker { longest: Duration::ZERO, longest_stop: Duration::ZERO };
        let (mut last, mut waited) = (Instant::now(), waited_for_cpu());
        while !stop.load(Ordering::Relaxed) {
            let now = Instant::now();
            let time = now - last;
            last = now;
            if time > LONG {
                let before = std::mem::replace(&mut waited, waited_for_cpu());
                ticker.longest = ticker.longest.max(time);
                ticker.longest_stop = ticker.longest_stop.max(time.saturating_sub(waited - before));
                last = Instant::now();
            }
        }
        ticker
    }
}

/// How long this thread was ready and had no CPU.
fn waited_for_cpu() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let field = text.split_ascii_whitespace().nth(1).and_then(|field| field.parse().ok());
    Duration::from_nanos(field.unwrap_or(0))
}
