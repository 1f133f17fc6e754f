//! Short-lived threads, forked children and programs.

use crate::options::Options;
use crate::report::Report;
use crate::spin::spin_rounds;
use std::process::Command;

#[inline(never)]
fn short_work(rounds: u32) -> u64 {
    spin_rounds(rounds as u64 | 1, rounds)
}

/// Starts `--work` threads (10 000), at most 8 at a time.
pub fn threads(options: &Options, report: &mut Report) {
    let total = options.work.unwrap_or(10_000);
    let mut done = 0u64;
    while done < total {
        let batch = 8.min(total - done);
        let handles: Vec<_> = (0..batch).map(|_| std::thread::spawn(|| short_work(20_000))).collect();
        for handle in handles {
            handle.join().expect("the thread ends well");
        }
        done += batch;
    }
    report.number("work", done);
}

/// Forks `--work` children (200) in sequence; each computes, sleeps and ends by `_exit`.
pub fn forks(options: &Options, report: &mut Report) {
    let total = options.work.unwrap_or(200);
    let mut well = 0u64;
    for _ in 0..total {
        // SAFETY: this process has one thread here, so the child may run normally; it ends by _exit and never returns
        // to the caller.
        let child = unsafe { libc::fork() };
        assert!(child >= 0, "a child can be forked");
        if child == 0 {
            short_work(1_000_000);
            std::thread::sleep(std::time::Duration::from_millis(2));
            // SAFETY: ends the process.
            unsafe { libc::_exit(7) };
        }
        let mut status = 0;
        // SAFETY: `status` outlives the call.
        let waited = unsafe { libc::waitpid(child, &mut status, 0) };
        well += (waited == child && libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 7) as u64;
    }
    report.number("work", total);
    report.number("ended_well", well);
}

/// Starts `--work` programs (100): this program with a little work.
pub fn execs(options: &Options, report: &mut Report) {
    let total = options.work.unwrap_or(100);
    let me = std::env::current_exe().expect("the own path is known");
    let mut well = 0u64;
    for _ in 0..total {
        let child =
            Command::new(&me).args(["chain", "--work", "20"]).output().expect("a program can be started");
        well += (child.status.success() && child.stdout.starts_with(b"{")) as u64;
    }
    report.number("work", total);
    report.number("ended_well", well);
}
