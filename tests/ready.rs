//! Time in which a thread waits for a CPU is neither sleep nor CPU time, also after it was woken. The kernel's account is the truth.

use stackglass_profile::State;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use whole_programs::{Language, Record, host};

/// Runs something while other threads want all CPUs.
fn beside_busy_threads<T>(work: impl FnOnce() -> T) -> T {
    let (is_over, cpus) = (AtomicBool::new(false), std::thread::available_parallelism().unwrap().get());
    std::thread::scope(|scope| {
        for _ in 0..4 * cpus {
            scope.spawn(|| while !is_over.load(Relaxed) {});
        }
        let done = work();
        is_over.store(true, Relaxed);
        done
    })
}

#[test]
fn a_thread_that_was_woken_and_waits_for_a_cpu_does_not_sleep() {
    let program = host("turns", Language::C);
    for sampler in [&[][..], &["--sampler", "preload"]] {
        let record = sampler.iter().fold(Record::of(&program), |record, flag| record.flag(flag));
        let outcome = beside_busy_threads(|| record.run());
        assert_eq!(outcome.code(), 0, "{}", outcome.stderr);
        let waited: f64 = outcome.stdout.trim().parse().unwrap();
        let recording = outcome.recording();
        let sum = |state| -> f64 {
            let samples = recording.samples.iter().filter(|sample| sample.state == state);
            samples.map(|sample| sample.time.0 as f64).sum()
        };
        let (ready, asleep) = (sum(State::Waiting), sum(State::Asleep));
        // Each of 600 sleeps of a millisecond is a bit longer.
        assert!(
            waited > 20e6 && (ready / waited - 1.0).abs() < 0.2 && asleep > 0.6e9,
            "{sampler:?}: {ready:.0} ns ready, {waited:.0} by the kernel's account; {asleep:.0} ns asleep"
        );
    }
}
