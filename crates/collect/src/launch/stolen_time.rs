//! Time that the host of a virtual machine takes from it.
//!
//! Between two switches a thread counts as running, although the host may have stopped the whole CPU meanwhile. The kernel
//! does not count such time as CPU time of the thread, and no samples fall into it. It would show as CPU time without a
//! stack. `/proc/stat` has the sum of all CPUs (`steal`, proc_stat(5)).

use stackglass_procfs::clock::of_ticks;
use stackglass_profile::recording::State;
use stackglass_profile::{Cut, Nanos, Recording};

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

/// Takes stolen time from the CPU time without a stack: as much as the recording exceeds the kernel's count, and at most what
/// was stolen during the recording.
pub(super) fn remove(recording: &mut Recording, kernel: Nanos, stolen: Nanos) {
    let seen: u64 = recording.threads.iter().map(|thread| thread.cpu.0).sum();
    let surplus = seen.saturating_sub(kernel.0).min(stolen.0);
    let is_stackless = |sample: &stackglass_profile::Sample| {
        sample.state == State::Awake && sample.hits == 0 && sample.cut == Some(Cut::SHORT)
    };
    let stackless: u64 =
        recording.samples.iter().filter(|sample| is_stackless(sample)).map(|s| s.time.0).sum();
    let removed = surplus.min(stackless);
    if removed < LEAST {
        return;
    }
    let share = |time: u64| (u128::from(time) * u128::from(removed) / u128::from(stackless)) as u64;
    for sample in recording.samples.iter_mut().filter(|sample| is_stackless(sample)) {
        let part = share(sample.time.0);
        sample.time.0 -= part;
        let thread = (sample.thread.0 as usize).checked_sub(1).and_then(|at| recording.threads.get_mut(at));
        if let Some(thread) = thread {
            thread.cpu.0 = thread.cpu.0.saturating_sub(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackglass_profile::{ProcessIndex, Sample, StackId, Thread, ThreadNumber};

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
        assert_eq!(times(50, 90), (vec![100, 0], 100));
        assert_eq!(times(140, 90), (vec![100, 40], 140));
        // Children that nobody waited for are not in the kernel's count.
        assert_eq!(times(0, 0), (vec![100, 40], 140));
    }
}
