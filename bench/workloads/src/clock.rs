//! The kernel's clocks of a process and a thread.

use crate::report::Report;
use std::time::Duration;

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
