//! Time that the host of a virtual machine takes from it.
//!
//! Between two switches a thread counts as running, although the host may have stopped the whole CPU meanwhile. The kernel
//! does not count such time as CPU time of the thread, and no samples fall into it. It would show as CPU time without a
//! stack. `/proc/stat` has the sum of all CPUs (`steal`, proc_stat(5)).
//!
//! Interrupts are alike: on a busy machine they take some percent of the time between two switches.

use stackglass_procfs::clock::of_ticks;
use stackglass_profile::recording::State;
use stackglass_profile::{Cut, Nanos, Recording, Sample, Thread};

/// Less is not worth a correction, ns: the kernel's tick.
const LEAST: u64 = 10_000_000;

/// The time that was taken from all CPUs since the machine started.
pub(super) fn so_far() -> Nanos {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    Nanos(stolen(&text).unwrap_or(0))
}

/// `cpu user nice system idle iowait irq softirq steal …`, in clock ticks.
fn stolen(stat: &str) -> Option<u64> {
    let ticks: u64 = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace().nth(7)?.parse().ok()?;
    Some(of_ticks(ticks))
}

/// Takes stolen time away: as much as the recording exceeds the kernel's count, and at most what was stolen during the recording. It is
/// taken from CPU time without a stack. If stolen time explains all of the surplus, the rest of it is taken from all samples
/// alike: which of them the host has held up is not known. A larger surplus is that of children that nobody waited for.
/// Returns whether samples have changed.
pub(super) fn remove(recording: &mut Recording, kernel: Nanos, stolen: Nanos) -> bool {
    let seen: u64 = recording.threads.iter().map(|thread| thread.cpu.0).sum();
    let surplus = seen.saturating_sub(kernel.0);
    let removed = surplus.min(stolen.0);
    if removed < LEAST {
        return false;
    }
    let without_stack = shorten(recording, removed, |sample| {
        sample.state == State::Awake && sample.hits == 0 && sample.cut == Some(Cut::SHORT)
    });
    let rest = if surplus <= stolen.0 { removed - without_stack } else { 0 };
    let of_all = shorten(recording, rest, |sample| sample.state == State::Awake);
    without_stack + of_all > 0
}

/// Takes time from some samples, from each in proportion. Returns how much it was: at most what they have.
fn shorten(recording: &mut Recording, time: u64, is_one: impl Fn(&Sample) -> bool) -> u64 {
    let all: u64 = recording.samples.iter().filter(|sample| is_one(sample)).map(|sample| sample.time.0).sum();
    let time = time.min(all);
    if time == 0 {
        return 0;
    }
    for sample in recording.samples.iter_mut().filter(|sample| is_one(sample)) {
        let part = (u128::from(sample.time.0) * u128::from(time) / u128::from(all)) as u64;
        sample.time.0 -= part;
        let thread = (sample.thread.0 as usize).checked_sub(1).and_then(|at| recording.threads.get_mut(at));
        if let Some(thread) = thread {
            thread.cpu.0 = thread.cpu.0.saturating_sub(part);
        }
    }
    time
}

/// The process of the program has no more CPU time than the kernel counted for it and the children that it has waited for. A surplus
/// is taken from all of its samples alike. Returns whether samples have changed.
pub(super) fn bound(recording: &mut Recording, kernel: Nanos) -> bool {
    let Some(pid) = recording.processes.first().map(|process| process.pid) else { return false };
    let Recording { processes, threads, samples, .. } = recording;
    let of_program =
        |thread: &Thread| processes.get(thread.process.0 as usize).is_some_and(|process| process.pid == pid);
    let own: Vec<bool> = threads.iter().map(of_program).collect();
    let is_own = |sample: &Sample| {
        let thread = (sample.thread.0 as usize).checked_sub(1);
        sample.state == State::Awake && thread.and_then(|at| own.get(at)).is_some_and(|own| *own)
    };
    let seen: u64 = samples.iter().filter(|sample| is_own(sample)).map(|sample| sample.time.0).sum();
    let of_threads: u64 =
        threads.iter().zip(&own).filter(|(_, own)| **own).map(|(thread, _)| thread.cpu.0).sum();
    let scaled =
        |time: u64, of: u64| Nanos((u128::from(time) * u128::from(kernel.0) / u128::from(of)) as u64);
    if of_threads > kernel.0 {
        for (thread, _) in threads.iter_mut().zip(&own).filter(|(_, own)| **own) {
            thread.cpu = scaled(thread.cpu.0, of_threads);
        }
    }
    if seen <= kernel.0 {
        return false;
    }
    for sample in samples.iter_mut().filter(|sample| is_own(sample)) {
        sample.time = scaled(sample.time.0, seen);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackglass_profile::{ProcessIndex, StackId, ThreadNumber};

    #[test]
    fn steal_is_the_eighth_number() {
        let stat = "cpu  424307 82426 67021 164486 2148 0 415 5017 0 0\ncpu0 1 2\n";
        assert_eq!(stolen(stat), Some(50_170_000_000));
        assert_eq!(stolen("cpu 1 2\n"), None);
        assert_eq!(stolen(""), None);
    }

    fn recording() -> Recording {
        let thread = Thread {
            process: ProcessIndex(0),
            tid: 1,
            name: "t".into(),
            start: Nanos(0),
            end: None,
            cpu: Nanos(140_000_000),
            blocked_signal: false,
        };
        let sample = |time, hits, cut| Sample {
            stack: StackId(0),
            thread: ThreadNumber(1),
            task: 0,
            clock: Nanos(0),
            state: State::Awake,
            cut,
            hits,
            time: Nanos(time),
            spread: Nanos(0),
        };
        let samples = [sample(100_000_000, 100, None), sample(40_000_000, 0, Some(Cut::SHORT))];
        Recording { threads: vec![thread], samples: samples.into_iter().collect(), ..Recording::default() }
    }

    fn times(kernel: u64, stolen: u64) -> (Vec<u64>, u64) {
        let mut recording = recording();
        remove(&mut recording, Nanos(kernel * 1_000_000), Nanos(stolen * 1_000_000));
        let times = recording.samples.iter().map(|sample| sample.time.0 / 1_000_000).collect();
        (times, recording.threads[0].cpu.0 / 1_000_000)
    }

    #[test]
    fn stolen_time_is_no_cpu_time() {
        assert_eq!(times(104, 50), (vec![100, 4], 104));
        // Not more than was stolen, than the surplus, and than has no stack.
        assert_eq!(times(104, 20), (vec![100, 20], 120));
        assert_eq!(times(140, 90), (vec![100, 40], 140));
        // All samples lose the rest, if the host explains it.
        assert_eq!(times(50, 90), (vec![50, 0], 50));
        assert_eq!(times(50, 80), (vec![100, 0], 100));
        // Children that nobody waited for are not in the kernel's count.
        assert_eq!(times(0, 0), (vec![100, 40], 140));
    }

    #[test]
    fn the_programs_process_has_no_more_than_the_kernel_counted() {
        let process = |pid| stackglass_profile::Process { pid, ..stackglass_profile::Process::default() };
        for (second, expected) in [(7, (vec![50, 20], [70, 140])), (9, (vec![100, 40], [140, 140]))] {
            let mut recording = recording();
            recording.processes = vec![process(9), process(second)];
            recording.threads.push(Thread { process: ProcessIndex(1), ..recording.threads[0].clone() });
            // The second thread is one of a child, or of another image of the process.
            let kernel = if second == 7 { 70 } else { 280 };
            assert_eq!(bound(&mut recording, Nanos(kernel * 1_000_000)), second == 7);
            let times: Vec<u64> = recording.samples.iter().map(|sample| sample.time.0 / 1_000_000).collect();
            let cpu = [0, 1].map(|at: usize| recording.threads[at].cpu.0 / 1_000_000);
            assert_eq!((times, cpu), expected);
        }
    }
}
