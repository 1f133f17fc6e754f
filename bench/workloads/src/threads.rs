//! Threads of known behaviour; each reports its CPU time by the kernel at its end.

use crate::clock::{thread_cpu, thread_id};
use crate::options::Options;
use crate::report::Report;
use crate::spin::{Limit, spin_rounds};
use std::thread::{Builder, Scope, ScopedJoinHandle};

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
