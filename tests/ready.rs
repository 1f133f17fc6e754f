//! Time in which a thread waits for a CPU is neither sleep nor CPU time, also after it was woken. The kernel's account is the truth.

use stackglass_profile::{Sample, State};
use whole_programs::{BusyLoops, Language, Record, host};

#[test]
fn a_thread_that_was_woken_and_waits_for_a_cpu_does_not_sleep() {
    let program = host("turns", Language::C);
    for sampler in [&[][..], &["--sampler", "preload"]] {
        let record = sampler.iter().fold(Record::of(&program), |record, flag| record.flag(flag));
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
