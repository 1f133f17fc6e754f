//! Threads of known behaviour; each reports its CPU time by the kernel at its end.

use crate::clock::{thread_cpu, thread_id};
use crate::options::Options;
use crate::report::Report;
use crate::spin::{Limit, spin_rounds};
use std::sync::Mutex;
use std::thread::{Builder, Scope, ScopedJoinHandle, sleep};
use std::time::{Duration, Instant};

/// Starts a named thread that returns its account as JSON.
fn accountable<'s, 'e>(
    scope: &'s Scope<'s, 'e>,
    name: String,
    work: impl FnOnce() + Send + 's,
) -> ScopedJoinHandle<'s, String> {
    let body = {
        let name = name.clone();
        move || {
            work();
            format!(
                "{{\"name\": \"{name}\", \"tid\": {}, \"cpu_ns\": {}}}",
                thread_id(),
                thread_cpu().as_nanos()
            )
        }
    };
    Builder::new().name(name).spawn_scoped(scope, body).expect("a thread can be started")
}

fn accounts(handles: Vec<ScopedJoinHandle<'_, String>>) -> Vec<String> {
    handles.into_iter().map(|handle| handle.join().expect("the thread ends well")).collect()
}

#[inline(never)]
fn busy_thread(mut limit: Limit) -> u64 {
    let mut x = 7;
    while limit.go_on() {
        x = spin_rounds(x | 1, 100_000);
    }
    x
}

/// Threads that only compute.
pub fn busy(options: &Options, report: &mut Report) {
    let threads = std::thread::scope(|scope| {
        let start = |i| {
            accountable(scope, format!("busy-{i}"), || {
                busy_thread(Limit::from_options(options));
            })
        };
        accounts((0..options.threads.unwrap_or(6)).map(start).collect())
    });
    report.list("threads", &threads);
}

#[inline(never)]
fn sleeper_thread(end: Instant) {
    while Instant::now() < end {
        sleep(Duration::from_millis(5));
    }
}

#[inline(never)]
fn lock_and_spin(lock: &Mutex<u64>, end: Instant, rounds: u32, pause: Duration) {
    while Instant::now() < end {
        let mut guarded = lock.lock().expect("nobody panics with the lock");
        for _ in 0..rounds {
            *guarded = spin_rounds(*guarded | 1, 1000);
        }
        drop(guarded);
        sleep(pause);
    }
}

/// Four threads: one computes, one sleeps, two contend for a lock.
pub fn mix(options: &Options, report: &mut Report) {
    let end = Instant::now() + Duration::from_secs_f64(options.seconds);
    let lock = Mutex::new(1);
    let threads = std::thread::scope(|scope| {
        accounts(vec![
            accountable(scope, "cpu".into(), || {
                busy_thread(Limit::Until(end));
            }),
            accountable(scope, "sleeper".into(), || sleeper_thread(end)),
            accountable(scope, "holder".into(), || {
                lock_and_spin(&lock, end, 1000, Duration::from_millis(2));
            }),
            accountable(scope, "waiter".into(), || {
                lock_and_spin(&lock, end, 100, Duration::from_millis(1));
            }),
        ])
    });
    report.list("threads", &threads);
}
