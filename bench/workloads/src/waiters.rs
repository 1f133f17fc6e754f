//! Processes that only wait: their cost is that of the profiler.

use crate::options::Options;
use crate::report::Report;
use std::time::Duration;

/// Forks `--threads` children (20) that sleep for `--seconds`, and waits for them.
pub fn run(options: &Options, report: &mut Report) {
    let number = options.threads.unwrap_or(20);
    let mut children = Vec::new();
    for _ in 0..number {
        // SAFETY: this process has one thread here, so the child may run normally; it ends by _exit and never returns to
        // the caller.
        let child = unsafe { libc::fork() };
        assert!(child >= 0, "a child can be forked");
        if child == 0 {
            std::thread::sleep(Duration::from_secs_f64(options.seconds));
            // SAFETY: ends the process.
            unsafe { libc::_exit(0) };
        }
        children.push(child);
    }
    for child in children {
        // SAFETY: the child belongs to this process; no status is requested.
        unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    }
    report.number("work", number);
}
