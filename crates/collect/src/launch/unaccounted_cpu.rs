//! CPU time that a recording leaves out because of its options.
//!
//! The kernel counts the CPU time of a program from its start to its end, with all children it has waited for. If the
//! recording covers less than that, the figure is not stored as its total. A remark gives the figure and the reason
//! for the difference.

use super::options::Options;
use stackglass_profile::{Nanos, Recording};

/// CPU time for starting and ending a program that needs no remark, ns.
const LEAST: u64 = 10_000_000;

/// Why the kernel's CPU time covers more than the recording. `early`: the recording ended before the program;
/// `cleared`: it was cleared meanwhile.
pub fn reasons(options: &Options, early: bool, cleared: bool) -> Vec<&'static str> {
    let late = options.delay_start.is_some_and(|delay| !delay.is_zero());
    [
        (!options.follow_children, "children (--no-children)"),
        (late, "the time before sampling began (--delay-start)"),
        (cleared, "the time before the recording was cleared"),
        (early, "the time after the recording ended (--duration)"),
    ]
    .into_iter()
    .filter_map(|(left_out, what)| left_out.then_some(what))
    .collect()
}

/// CPU time that the kernel counted and neither the recording nor its samplers account for, ns.
pub fn missing(kernel: Nanos, sampler_cpu: Nanos, recording: &Recording) -> u64 {
    let seen: u64 = recording.threads.iter().map(|thread| thread.cpu.0).sum();
    kernel.0.saturating_sub(seen).saturating_sub(sampler_cpu.0)
}

/// The remark, if the kernel counted noticeably more than the recording and its samplers.
pub fn remark(reasons: &[&str], kernel: Nanos, sampler_cpu: Nanos, recording: &Recording) -> Option<String> {
    let missing = missing(kernel, sampler_cpu, recording);
    let seen: u64 = recording.threads.iter().map(|thread| thread.cpu.0).sum();
    (missing > LEAST && missing > kernel.0 / 20).then(|| {
        let (kernel, seen) = (kernel.seconds(), Nanos(seen).seconds());
        let left_out = reasons.join(" and ");
        format!(
            "the kernel counted {kernel:.2} s of CPU time, {seen:.2} s are recorded: left out is {left_out}"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::program::Program;
    use stackglass_profile::{ProcessIndex, Thread};
    use std::time::Duration;

    #[test]
    fn what_was_asked_for_is_named() {
        let whole = Options {
            program: Program::find("true".as_ref()).unwrap(),
            arguments: Vec::new(),
            folder: None,
            variables: Vec::new(),
            library: || Err(String::new()),
            sampler: None,
            output: "".into(),
            delay: Duration::from_millis(1),
            capacity: 0,
            duration: None,
            delay_start: None,
            follow_children: true,
            peek: Duration::from_secs(1),
            walltime: false,
            allocations: None,
            heap_at: None,
            time: true,
            writer: String::new(),
        };
        assert!(reasons(&whole, false, false).is_empty());
        // A duration that was not reached leaves nothing out.
        let long = Options { duration: Some(Duration::from_secs(60)), ..whole.clone() };
        assert!(reasons(&long, false, false).is_empty());
        assert_eq!(reasons(&long, true, false).len(), 1);
        let late = Options { delay_start: Some(Duration::from_secs(1)), follow_children: false, ..whole };
        let reasons = reasons(&late, false, false);
        assert!(reasons[0].contains("--no-children") && reasons[1].contains("--delay-start"));
    }

    #[test]
    fn only_what_is_noticeable_is_remarked() {
        let thread = Thread {
            process: ProcessIndex(0),
            tid: 1,
            name: "t".into(),
            start: Nanos(0),
            end: None,
            cpu: Nanos(500_000_000),
            blocked_signal: false,
        };
        let recording = Recording { threads: vec![thread], ..Recording::default() };
        let remark = |kernel: u64, own: u64| {
            remark(&["children"], Nanos(kernel * 1_000_000), Nanos(own * 1_000_000), &recording)
        };
        assert_eq!(
            remark(2000, 0).unwrap(),
            "the kernel counted 2.00 s of CPU time, 0.50 s are recorded: left out is children"
        );
        assert_eq!([remark(509, 0), remark(520, 0), remark(600, 90), remark(400, 0)], [const { None }; 4]);
    }
}
