//! Many threads that wait for a condition, and one that computes: the cost of sampling waiting threads.
//!
//! Figures start one second after the last thread, when a profiler has found all.

use crate::clock::{process_cpu, thread_cpu, thread_id};
use crate::options::Options;
use crate::report::Report;
use crate::spin::spin_rounds;
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::thread::{Builder, sleep};
use std::time::{Duration, Instant};

#[inline(never)]
fn parked_thread(gate: &(Mutex<bool>, Condvar)) {
    let mut open = gate.0.lock().expect("nobody panics with the lock");
    while !*open {
        open = gate.1.wait(open).expect("nobody panics with the lock");
    }
}

#[inline(never)]
fn busy_thread(work: u64) -> u64 {
    let mut x = 7;
    for _ in 0..work {
        x = spin_rounds(x | 1, 100_000);
    }
    x
}

/// Voluntary context switches of a thread of this process.
fn voluntary_switches(tid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/self/task/{tid}/status")).unwrap_or_default();
    let field = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    field.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// Starts threads that wait for ever.
pub fn start(count: usize) {
    static GATE: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());
    for _ in 0..count {
        let thread = Builder::new().name("parked".into()).stack_size(64 << 10);
        thread.spawn(|| parked_thread(&GATE)).expect("a thread can be started");
    }
}

/// `--threads` parked threads and `--work` units (about 200 us each) on a thread named `busy`.
pub fn run(options: &Options, report: &mut Report) {
    let gate = Arc::new((Mutex::new(false), Condvar::new()));
    let (send, tids) = mpsc::channel();
    let count = options.threads.unwrap_or(1000);
    let handles: Vec<_> = (0..count)
        .map(|_| {
            let (gate, send) = (gate.clone(), send.clone());
            let body = move || {
                send.send(thread_id()).expect("the main thread listens");
                drop(send);
                parked_thread(&gate);
            };
            Builder::new()
                .name("parked".into())
                .stack_size(64 << 10)
                .spawn(body)
                .expect("a thread can be started")
        })
        .collect();
    drop(send);
    let tids: Vec<i32> = tids.iter().collect();
    sleep(Duration::from_secs(1));

    let work = options.work.unwrap_or((options.seconds * 5000.0) as u64);
    let body = move || {
        let (wall, cpu, process) = (Instant::now(), thread_cpu(), process_cpu());
        busy_thread(work);
        (wall.elapsed(), thread_cpu() - cpu, process_cpu() - process)
    };
    let switches = || tids.iter().map(|tid| voluntary_switches(*tid)).sum::<u64>();
    let before = switches();
    let busy = Builder::new().name("busy".into()).spawn(body).expect("a thread can be started");
    let (wall, cpu, process) = busy.join().expect("the thread ends well");
    let after = switches();

    *gate.0.lock().expect("nobody panics with the lock") = true;
    gate.1.notify_all();
    for handle in handles {
        handle.join().expect("the thread ends well");
    }
    report.number("parked", count);
    report.number("parked_switches", after - before);
    report.number("busy_wall_ns", wall.as_nanos());
    report.number("busy_cpu_ns", cpu.as_nanos());
    report.number("busy_process_cpu_ns", process.as_nanos());
    report.number("work", work);
}
