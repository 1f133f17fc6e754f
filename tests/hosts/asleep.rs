//! Waits until threads sleep. The kernel tells when they do, so no time has to be long enough for that.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

/// The system call of each other thread, with its arguments and registers. `None` if one of them runs, or has a page fault.
fn calls() -> Option<Vec<String>> {
    let own = fs::read_link("/proc/thread-self").unwrap();
    let mut calls = Vec::new();
    for thread in fs::read_dir("/proc/self/task").unwrap() {
        let thread = thread.unwrap();
        if Some(thread.file_name().as_os_str()) != own.file_name() {
            let call = fs::read_to_string(thread.path().join("syscall")).ok()?;
            calls.push(call);
        }
    }
    calls.iter().all(|call| !call.starts_with(['r', '-'])).then_some(calls)
}

/// Returns when all other threads sleep. One that sleeps for a moment, until another one wakes it, is in another call afterwards.
pub fn until_all_sleep() {
    let mut before = None;
    loop {
        let now = calls();
        if now.is_some() && now == before {
            return;
        }
        before = now;
        sleep(Duration::from_millis(1));
    }
}
