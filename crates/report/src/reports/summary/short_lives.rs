//! A note on lives that ended before a stack was taken: their time stands on the stacks of others.
//!
//! Where whole CPUs are sampled, a stack of a short life stands for a period, of which its own thread ran a part. The rest is
//! time of other short lives of the same program. The sums of functions are right in expectation; which thread ran what is not
//! known.

use super::shares::{CONSIDERABLE, FROM_OUTSIDE};
use crate::text::numbers::{counted, percent_text};
use foldhash::{HashMap, HashSet};
use stackglass_profile::{Recording, StackId, ThreadNumber};

/// The note, if that is much of the CPU time.
pub(super) fn note(recording: &Recording, cpu: u64) -> Option<String> {
    let mut labels = recording.processes.first()?.counters.keys();
    if !labels.any(|label| label.starts_with(FROM_OUTSIDE)) {
        return None;
    }
    let mut seen: HashSet<ThreadNumber> = HashSet::default();
    let mut times: HashMap<ThreadNumber, u64> = HashMap::default();
    for sample in &recording.samples {
        if sample.hits > 0 {
            seen.insert(sample.thread);
        } else if sample.state.uses_cpu() && sample.stack != StackId(0) {
            *times.entry(sample.thread).or_default() += sample.time.0;
        }
    }
    times.retain(|thread, _| !seen.contains(thread));
    let time: u64 = times.values().sum();
    let share = time as f64 / cpu.max(1) as f64;
    (share >= CONSIDERABLE).then(|| {
        let threads = counted(times.len() as u64, "thread", "threads");
        format!(
            "{} of CPU time is of {threads} that ended before a stack was taken: it is shown on stacks of other short \
             lives of the same program",
            percent_text(time, cpu)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackglass_profile::{Location, Nanos, Process, Sample, State};

    #[test]
    fn time_without_a_stack_of_its_own_is_named() {
        let mut recording = Recording::default();
        let mut process = Process::default();
        process.counters.insert(FROM_OUTSIDE.to_owned(), 1);
        recording.processes.push(process);
        let location = recording.stacks.intern_location(Location { module: None, offset: 1 });
        let stack = recording.stacks.extend(StackId(0), location);
        let mut add = |thread, hits, state| {
            recording.samples.push(Sample {
                stack,
                thread: ThreadNumber(thread),
                task: 0,
                clock: Nanos(0),
                state,
                cut: None,
                hits,
                time: Nanos(100),
                spread: Nanos(0),
            });
        };
        add(1, 1, State::Awake);
        add(1, 0, State::Awake);
        add(2, 0, State::Awake);
        // It was seen asleep, so its time in calls is its own.
        add(3, 1, State::Asleep);
        add(3, 0, State::Awake);
        let note = note(&recording, 400).expect("a quarter is much");
        assert!(note.starts_with("25 % of CPU time is of 1 thread that"), "{note}");
        assert_eq!(super::note(&recording, 40_000), None);
        recording.processes[0].counters.clear();
        assert_eq!(super::note(&recording, 400), None);
    }
}
