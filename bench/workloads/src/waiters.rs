//! Processes that only wait: what they cost is the profiler's own.

use crate::options::Options;
use crate::report::Report;
use std::time::Duration;

/// Forks `--threads` children (20) that sleep for `--seconds`, and waits for them.
pub fn run(options: &Options, report: &mut Report) {
    let number = options.threads.unwrap_or(20);
    let mut children = Vec::new();
    for _ in 0..number {
        // SAFETY: this process has one thread here, so that the child may go on as usual; it leaves by _exit and never
        // returns into the caller.
        let child = unsafe { libc::fork() };
        assert!(child >= 0, "a child can be forked");
        if child == 0 {
            std::thread::sleep(Duration::from_secs_f64(options.seconds));
            // SAFETY: ends the process; nothing of it is used afterwards.
            unsafe { libc::_exit(0) };
        }
        children.push(child);
    }
    for child in children {
        // SAFETY: the child is ours; no status is asked for.
        unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    }
    report.number("work", number);
}
