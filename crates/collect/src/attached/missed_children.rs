//! CPU time of child processes that ended before they were found, or before all of it was sampled.

use stackglass_procfs::clock::of_ticks;
use stackglass_procfs::process::CpuUsage;
use stackglass_profile::{Recording, Sample, State};

/// The least time that is worth a line: clock ticks are as long as 10 ms.
const LEAST: u64 = 50_000_000;
/// The least part of the children's time that is worth a line: one in so many.
const PART: u64 = 10;

/// The processes that are recorded, and the CPU time of their children that had ended before, in ticks.
pub(crate) struct EndedChildren(Vec<(u32, u64)>);

impl EndedChildren {
    /// At the start of the recording.
    pub(crate) fn new(pids: impl Iterator<Item = u32>) -> EndedChildren {
        EndedChildren(pids.filter_map(|pid| Some((pid, CpuUsage::read(pid)?.ticks_of_children))).collect())
    }

    /// At the end of the recording: the CPU time of children that ended meanwhile, ns. That of processes that have ended
    /// themselves is not known.
    pub(crate) fn used(&self) -> u64 {
        let used = |(pid, before): &(u32, u64)| {
            Some(of_ticks(CpuUsage::read(*pid)?.ticks_of_children.saturating_sub(*before)))
        };
        self.0.iter().filter_map(used).sum()
    }

    /// The line that says how much of this time is not in the recording.
    pub(crate) fn remark(&self, used: u64, recording: &Recording) -> Option<String> {
        let is_child = |sample: &&Sample| {
            let thread = recording.thread(sample.thread);
            let pid = thread.map(|thread| recording.processes[thread.process.0 as usize].pid);
            sample.state == State::Awake && self.0.iter().all(|(named, _)| Some(*named) != pid)
        };
        let recorded: u64 = recording.samples.iter().filter(is_child).map(|sample| sample.time.0).sum();
        line(used, recorded)
    }
}

fn line(used: u64, recorded: u64) -> Option<String> {
    let missing = used.saturating_sub(recorded);
    let text = |time: u64| match time {
        1_000_000_000.. => format!("{:.2} s", time as f64 / 1e9),
        _ => format!("{} ms", time / 1_000_000),
    };
    (missing >= LEAST && missing >= used / PART).then(|| {
        format!(
            "child processes that ended used {} of CPU time, of which {} is in this recording: a running process does not tell of \
             new children, so they are found some milliseconds after they start. `record -- PROGRAM` misses none",
            text(used),
            text(recorded)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn only_what_matters_is_said() {
        const MS: u64 = 1_000_000;
        assert_eq!(line(0, 300 * MS), None);
        assert_eq!(line(1000 * MS, 910 * MS), None);
        assert_eq!(line(40 * MS, 0), None);
        let line = line(2580 * MS, 150 * MS).unwrap();
        assert!(
            line.starts_with("child processes that ended used 2.58 s of CPU time, of which 150 ms is"),
            "{line}"
        );
    }
}
