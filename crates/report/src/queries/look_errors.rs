//! The errors of amounts that were seen in looks at many tasks at once, as in profiles by wall time.
//!
//! Tasks that do the same at one moment are no independent samples, and a look stands for more or less time than another. So the error
//! comes from the looks themselves: they fall into groups at random, and an amount is as uncertain as its part of the groups' time
//! differs between them (the error of a ratio with a cluster sample: Cochran 1977, §6.3 and §9A).

use foldhash::HashMap;
use stackglass_profile::{Recording, Sample};

/// Groups of looks. With more of them, errors are more exact, and take longer.
const GROUPS: usize = 16;

/// The samples of a group of looks, and the time for which the looks stand, ns.
pub(crate) struct LookGroup {
    pub samples: Vec<Sample>,
    pub time: f64,
}

/// The samples of a recording that took so many looks, in groups of whole looks.
pub(crate) fn groups(recording: &Recording, looks: u64) -> Vec<LookGroup> {
    let mut groups: Vec<LookGroup> =
        (0..GROUPS).map(|_| LookGroup { samples: Vec::new(), time: 0.0 }).collect();
    // A task has all of the time of a look. If only some of them were looked at, each stands for several.
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
    // Looks of which nothing is left here, since only some tasks are wanted.
    if (times.len() as u64) < looks {
        let unseen = (recording.info.wall.0 as f64 - seen).max(0.0) / GROUPS as f64;
        groups.iter_mut().for_each(|group| group.time += unseen);
    }
    groups
}

/// The group of the look at a moment. Moments at equal distances must not spread evenly, so all bits count (the finalizer of SplitMix64,
/// Steele, Lea and Flood 2014).
fn group_of(clock: u64) -> usize {
    let mut mixed = clock;
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ mixed >> 31) as usize % GROUPS
}

/// The standard error of the sum of amounts, in their unit. They are of groups of looks, each with the time of its looks.
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

    /// Looks at ten tasks that live all of the time, and in a tenth of the looks at 200 more. `long`: how long every fifth look
    /// stands for, compared to others.
    fn recording(looks: u64, long: u64) -> Recording {
        let mut recording = Recording::default();
        for look in 0..looks {
            let time = if look.is_multiple_of(5) { long } else { 1 } * 1_000_000;
            let tasks = if (look * 7).is_multiple_of(10) { 210 } else { 10 };
            recording.info.wall.0 += time;
            for task in 0..tasks {
                recording.samples.push(Sample {
                    stack: StackId(u32::from(task >= 10)),
                    thread: ThreadNumber(1),
                    task: task + 1,
                    clock: Nanos(look * 10_000_019),
                    state: State::Task,
                    cut: None,
                    hits: 1,
                    time: Nanos(time),
                });
            }
        }
        recording
    }

    fn error(recording: &Recording, looks: u64, stack: u32) -> f64 {
        let amount = |group: &LookGroup| {
            let own = group.samples.iter().filter(|sample| sample.stack.0 == stack);
            own.map(|sample| sample.time.0 as f64).sum::<f64>()
        };
        let groups: Vec<_> =
            groups(recording, looks).iter().map(|group| (amount(group), group.time)).collect();
        standard_error(&groups)
    }

    #[test]
    fn what_all_looks_see_is_certain_and_what_few_see_is_not() {
        for long in [1, 9] {
            let recording = recording(1000, long);
            assert!(error(&recording, 1000, 0) < 1.0, "{}", error(&recording, 1000, 0));
            // By looks: each with 200 tasks or none, for a tenth of the time.
            let looks = (0..1000).map(|look: u64| {
                let time = if look.is_multiple_of(5) { long } else { 1 } as f64 * 1e6;
                (if (look * 7).is_multiple_of(10) { 200.0 * time } else { 0.0 }, time)
            });
            let exact = standard_error(&looks.collect::<Vec<_>>());
            let error = error(&recording, 1000, 1);
            assert!((error / exact - 1.0).abs() < 0.6, "{long}: {error} {exact}");
        }
    }

    #[test]
    fn a_task_on_two_threads_has_the_time_of_one() {
        let mut recording = recording(1000, 1);
        // In a third of the looks, one of two parts of a task is polled.
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
    fn looks_without_a_wanted_task_count() {
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
