//! Time in which a thread waits for a CPU is neither sleep nor CPU time, also after it was woken. The kernel's account is the truth.

use stackglass_profile::{Sample, State};
use whole_programs::{BusyLoops, Language, Record, host};

#[test]
fn a_thread_that_was_woken_and_waits_for_a_cpu_does_not_sleep() {
    let program = host("turns", Language::C);
    for sampler in [&[][..], &["--sampler", "preload"]] {
        let record = sampler.iter().fold(Record::new(&program), |record, flag| record.flag(flag));
        let busy = BusyLoops::start(4 * std::thread::available_parallelism().expect("it is known").get());
        let outcome = record.run();
        drop(busy);
        assert_eq!(outcome.code(), 0, "{}", outcome.stderr);
        let truth: Vec<f64> =
            outcome.stdout.split_whitespace().map(|number| number.parse().unwrap()).collect();
        let recording = outcome.recording();
        let is_main = |sample: &Sample| {
            recording.thread(sample.thread).is_some_and(|thread| thread.tid == recording.processes[0].pid)
        };
        let sum = |states: &[State]| -> f64 {
            // The main thread waits for the others all the time.
            let counts = |sample: &&Sample| states.contains(&sample.state) && !is_main(sample);
            recording.samples.iter().filter(counts).map(|sample| sample.time.0 as f64).sum()
        };
        let ready = sum(&[State::Waiting]);
        let all = sum(&[State::Awake, State::Waiting, State::Asleep]);
        assert!(
            truth[0] > 50e6 && (ready / truth[0] - 1.0).abs() < 0.2 && (all / truth[1] - 1.0).abs() < 0.1,
            "{sampler:?}: {ready:.0} ns ready of {all:.0}; {truth:?} by the kernel's account"
        );
    }
}

/// On a busy machine, interrupts take some percent of the time between two switches of a thread. The kernel counts them for none.
#[test]
fn no_process_has_more_cpu_time_than_the_kernel_counts() {
    let program = host("turns", Language::C);
    let busy = BusyLoops::start(4 * std::thread::available_parallelism().expect("it is known").get());
    let alone = Record::new(&program).run();
    // What a shell waits for is in its count as well.
    let child = Record::new("/bin/sh").args(["-c", "\"$0\"; true", program.to_str().expect("a path")]).run();
    drop(busy);
    for (outcome, most) in [(alone, 1.000_001), (child, 1.02)] {
        assert_eq!(outcome.code(), 0, "{}", outcome.stderr);
        let recording = outcome.recording();
        let kernel = recording.info.kernel_cpu.expect("the kernel's count").seconds();
        let awake = recording.samples.iter().filter(|sample| sample.state == State::Awake);
        let seen: f64 = awake.map(|sample| sample.time.seconds()).sum();
        assert!(seen > kernel * 0.9 && seen <= kernel * most, "{seen} of {kernel}");
    }
}
