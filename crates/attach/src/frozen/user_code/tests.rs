//! A thread that is no longer traced gets no signal of ours.

use super::*;
use crate::deadlock::Seizing;
use crate::frozen::traced::Method;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

fn run_on_the_first_cpu(task: i32) {
    // SAFETY: all zeros is an empty set, to which a CPU is added.
    unsafe {
        let mut cpus: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(0, &mut cpus);
        assert_eq!(libc::sched_setaffinity(task, size_of_val(&cpus), &raw const cpus), 0);
    }
}

/// Another thread often takes the program's CPU, so that its signals come late. Without a tracer, they would end it.
#[test]
fn a_thread_is_let_go_once_its_signals_have_come() {
    if stackglass_perf::user_stop::are_allowed().is_err() {
        return;
    }
    let mut program = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
    let pid = program.id();
    run_on_the_first_cpu(pid as i32);
    let ends = AtomicBool::new(false);
    let alive = std::thread::scope(|scope| {
        scope.spawn(|| {
            run_on_the_first_cpu(0);
            let first = libc::sched_param { sched_priority: 1 };
            // SAFETY: the struct is live. Without the right to it, the priority stays.
            unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const first) };
            while !ends.load(Relaxed) {
                std::thread::sleep(Duration::from_micros(50));
                let begin = Instant::now();
                while begin.elapsed() < Duration::from_millis(1) {
                    std::hint::spin_loop();
                }
            }
        });
        // A thread that was not stopped is traced until the tracing thread ends.
        let let_go = |number: u64| {
            let seizing = Seizing::default();
            let mut process = StoppedThreads::seize(pid, Method::UserCode, &seizing).unwrap();
            for thread in &mut process.threads {
                thread.armed = Some(Armed::new(pid, thread.tid, &mut None));
                thread.armed.iter_mut().for_each(Armed::arm);
            }
            std::thread::sleep(Duration::from_micros(number * 37 % 2000));
            process.release();
        };
        let alive = (0..300).all(|number| {
            scope.spawn(move || let_go(number)).join().unwrap();
            program.try_wait().unwrap().is_none()
        });
        ends.store(true, Relaxed);
        alive
    });
    let _ = program.kill();
    assert!(alive, "{}", program.wait().unwrap());
}
