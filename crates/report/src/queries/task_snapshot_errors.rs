//! The errors of amounts that come from task snapshots, as in profiles by wall time.
//!
//! Tasks that do the same at one moment are no independent samples, and a snapshot stands for more or less time than another. So the error
//! comes from the snapshots themselves: they fall into groups at random, and an amount is as uncertain as its part of the groups' time
//! differs between them (the error of a ratio with a cluster sample: Cochran 1977, §6.3 and §9A).

use foldhash::HashMap;
use stackglass_profile::{Recording, Sample};

/// Groups of task snapshots. With more of them, errors are more exact, and take longer.
const GROUPS: usize = 16;

/// The samples of a group of task snapshots, and the time for which the snapshots stand, ns.
pub(crate) struct SnapshotGroup {
    pub samples: Vec<Sample>,
    pub time: f64,
}

/// The samples of a recording that took so many snapshots, in groups of whole snapshots.
pub(crate) fn groups(recording: &Recording, snapshots: u64) -> Vec<SnapshotGroup> {
    let mut groups: Vec<SnapshotGroup> =
        (0..GROUPS).map(|_| SnapshotGroup { samples: Vec::new(), time: 0.0 }).collect();
    // A task has all of the time of a snapshot. If it has only some of them, each stands for several.
    let mut tasks: HashMap<(u64, u64, u32), u64> = HashMap::default();
    for sample in &recording.samples {
        // Parts of a task are on several threads if one of them is polled while others wait.
        let thread = if sample.task == 0 { sample.thread.0 } else { 0 };
        *tasks.entry((sample.clock.0, sample.task, thread)).or_default() += sample.time.0;
        groups[group_of(sample.clock.0)].samples.push(*sample);
    }
    let mut times: HashMap<u64, u64> = HashMap::default();
    for ((clock, ..), time) in tasks {
        let least = times.entry(clock).or_insert(time);
        *least = time.min(*least);
    }
    let mut seen = 0.0;
    for (clock, time) in &times {
        groups[group_of(*clock)].time += *time as f64;
        seen += *time as f64;
    }
    // Snapshots of which nothing is left here, since only some tasks are wanted.
    if (times.len() as u64) < snapshots {
        let unseen = (recording.info.wall.0 as f64 - seen).max(0.0) / GROUPS as f64;
        groups.iter_mut().for_each(|group| group.time += unseen);
    }
    groups
}

/// The group of the snapshot at a moment. Moments at equal distances must not spread evenly, so all bits count (the finalizer of
/// SplitMix64, Steele, Lea and Flood 2014).
fn group_of(clock: u64) -> usize {
    let mut mixed = clock;
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ mixed >> 31) as usize % GROUPS
}

/// The standard error of the sum of amounts, in their unit. They are of groups of snapshots, each with the time of its snapshots.
pub(crate) fn standard_error(groups: &[(f64, f64)]) -> f64 {
    let (amounts, times) = groups.iter().fold((0.0, 0.0), |sum, group| (sum.0 + group.0, sum.1 + group.1));
    let ratio = if times > 0.0 { amounts / times } else { 0.0 };
    let squares: f64 = groups.iter().map(|(amount, time)| (amount - ratio * time).powi(2)).sum();
    let count = groups.len() as f64;
    (squares * count / (count - 1.0).max(1.0)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackglass_profile::{Nanos, StackId, State, ThreadNumber};

    /// Snapshots of ten tasks that live all of the time, and in a tenth of the snapshots of 200 more. `long`: how long every fifth snapshot
    /// stands for, compared to others.
    fn recording(snapshots: u64, long: u64) -> Recording {
        let mut recording = Recording::default();
        for snapshot in 0..snapshots {
            let time = if snapshot.is_multiple_of(5) { long } else { 1 } * 1_000_000;
            let tasks = if (snapshot * 7).is_multiple_of(10) { 210 } else { 10 };
            recording.info.wall.0 += time;
            for task in 0..tasks {
                recording.samples.push(Sample {
                    stack: StackId(u32::from(task >= 10)),
                    thread: ThreadNumber(1),
                    task: task + 1,
                    clock: Nanos(snapshot * 10_000_019),
                    state: State::Task,
                    cut: None,
                    hits: 1,
                    time: Nanos(time),
                    spread: Nanos(0),
                });
            }
        }
        recording
    }

    fn error(recording: &Recording, snapshots: u64, stack: u32) -> f64 {
        let amount = |group: &SnapshotGroup| {
            let own = group.samples.iter().filter(|sample| sample.stack.0 == stack);
            own.map(|sample| sample.time.0 as f64).sum::<f64>()
        };
        let groups: Vec<_> =
            groups(recording, snapshots).iter().map(|group| (amount(group), group.time)).collect();
        standard_error(&groups)
    }

    #[test]
    fn what_all_snapshots_have_is_certain_and_what_few_have_is_not() {
        for long in [1, 9] {
            let recording = recording(1000, long);
            assert!(error(&recording, 1000, 0) < 1.0, "{}", error(&recording, 1000, 0));
            // By snapshots: each with 200 tasks or none, for a tenth of the time.
            let snapshots = (0..1000).map(|snapshot: u64| {
                let time = if snapshot.is_multiple_of(5) { long } else { 1 } as f64 * 1e6;
                (if (snapshot * 7).is_multiple_of(10) { 200.0 * time } else { 0.0 }, time)
            });
            let exact = standard_error(&snapshots.collect::<Vec<_>>());
            let error = error(&recording, 1000, 1);
            assert!((error / exact - 1.0).abs() < 0.6, "{long}: {error} {exact}");
        }
    }

    #[test]
    fn a_task_on_two_threads_has_the_time_of_one() {
        let mut recording = recording(1000, 1);
        // In a third of the snapshots, one of two parts of a task is polled.
        let is_split = |sample: &Sample| sample.task == 3 && sample.clock.0.is_multiple_of(3);
        for at in 0..recording.samples.len() {
            let sample = recording.samples[at];
            if is_split(&sample) {
                let half = Nanos(sample.time.0 / 2);
                recording.samples[at].time = half;
                recording.samples.push(Sample { thread: ThreadNumber(2), time: half, ..sample });
            }
        }
        assert!(error(&recording, 1000, 0) < 1.0, "{}", error(&recording, 1000, 0));
    }

    #[test]
    fn snapshots_without_a_wanted_task_count() {
        let mut recording = recording(1000, 1);
        let all = error(&recording, 1000, 1);
        recording.samples = recording.samples.iter().filter(|sample| sample.stack.0 == 1).copied().collect();
        let some = error(&recording, 1000, 1);
        assert!((some / all - 1.0).abs() < 0.6, "{some} {all}");
    }

    #[test]
    fn nothing_has_no_error() {
        assert_eq!(standard_error(&[]), 0.0);
        assert_eq!(error(&Recording::default(), 0, 0), 0.0);
    }
}
