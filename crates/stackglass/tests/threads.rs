//! Threads: names, ids, beginnings and ends, and time awake against the kernel's account.
#![allow(unsafe_code, reason = "calls the C library")]

use stackglass::{GroupBy, Recording, Report};
use std::hint::black_box;
use std::time::Duration;

/// Some microseconds for each of `n`.
#[inline(never)]
fn work(n: u64) {
    for _ in 0..n {
        black_box((0..4000u64).fold(1, |a, b| (black_box(a) * 31 % 1_000_003) ^ b));
    }
}

/// User and system time of the calling thread as getrusage tells it, ms, and its kernel id.
fn used() -> (f64, u32) {
    // SAFETY: all zeros is a value, and the kernel writes to it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage), 0);
        usage
    };
    let millis = |time: libc::timeval| time.tv_sec as f64 * 1e3 + time.tv_usec as f64 * 1e-3;
    // SAFETY: no arguments.
    let tid = unsafe { libc::gettid() } as u32;
    (millis(usage.ru_utime) + millis(usage.ru_stime), tid)
}

fn block_all_signals() {
    // SAFETY: the set is filled before it is used.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        assert_eq!(libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut()), 0);
    }
}

/// Milliseconds of awake and other time that the thread's samples stand for.
fn sampled(recording: &Recording, index: usize) -> (f64, f64) {
    let of = recording.samples.iter().filter(|sample| sample.thread.0 as usize == index + 1);
    of.fold((0.0, 0.0), |(awake, rest), sample| match sample.state.uses_cpu() {
        true => (awake + sample.time.millis(), rest),
        false => (awake, rest + sample.time.millis()),
    })
}

#[test]
fn threads_have_their_names_ids_times_and_what_the_kernel_says_they_used() {
    let steady = || work(40_000);
    let bursts = || {
        for _ in 0..150 {
            work(200);
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    let blocks = || {
        block_all_signals();
        work(40_000);
    };
    let kinds: [(&str, fn()); 3] = [("steady", steady), ("in bursts", bursts), ("blocks", blocks)];
    let used: Vec<(f64, u32)> = stackglass::profile!(std::thread::scope(|scope| {
        let spawn = |(name, run): (&str, fn())| {
            let run = move || {
                run();
                used()
            };
            std::thread::Builder::new().name(name.into()).spawn_scoped(scope, run).unwrap()
        };
        kinds.map(spawn).into_iter().map(|thread| thread.join().unwrap()).collect()
    }));
    let recording = stackglass::recording();
    for ((name, _), (used, tid)) in kinds.iter().zip(used) {
        let index = recording.threads.iter().position(|thread| &*thread.name == *name).unwrap();
        let thread = &recording.threads[index];
        assert_eq!(thread.tid, tid);
        let end = thread.end.expect("it has ended").0;
        assert!(thread.start.0 < end, "{thread:?}");
        let (awake, rest) = sampled(&recording, index);
        assert!((awake / used - 1.0).abs() < 0.01, "{name}: {awake} ms awake, getrusage says {used}");
        assert!((thread.cpu.millis() - awake).abs() < 1e-3, "{thread:?}");
        let lived = (end - thread.start.0) as f64 * 1e-6;
        assert!((awake + rest - lived).abs() < 0.05 * lived, "{name}: {awake} + {rest} of {lived} ms");
        let counters = || &recording.processes[0].counters;
        assert_eq!(thread.blocked_signal, *name == "blocks", "{thread:?} {:?}", counters());
        let mut text = Vec::new();
        Report::new().group_by(GroupBy::Thread).write(&recording, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains(&format!("Thread {} ({name})", index + 1)), "{text}");
    }
    let text = stackglass::report(100);
    assert!(text.contains("blocks") && text.contains("signal"), "{text}");
}
