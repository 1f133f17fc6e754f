//! The tasks of `top`: groups with equal await stacks, how they change, and since when their tasks are seen there.
//!
//! A task that is seen in the same place at every refresh may have run in between, so "seen for" is no waiting time.

use foldhash::{HashMap, HashMapExt};
use stackglass_profile::task_dump::TaskDump;
use stackglass_report::tasks::{TaskGroup, groups};
use std::hash::{BuildHasher, Hasher};
use std::time::{Duration, Instant};

/// A group of tasks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct TaskRow {
    /// Index of the group.
    pub(super) group: usize,
    /// Number of its tasks.
    pub(super) count: u64,
    /// How many more these are than at the last refresh.
    pub(super) change: i64,
    /// How long one of its tasks is seen there, at every refresh.
    pub(super) seen_for: Duration,
}

/// The tasks at the last refresh, and what was before.
#[derive(Default)]
pub(super) struct TasksModel {
    dump: TaskDump,
    rows: Vec<TaskRow>,
    /// By id or number: in which group a task is, and since when.
    tasks: HashMap<(u64, u64), (u64, Instant)>,
    /// The counts of groups, by their keys. `None` before the first refresh.
    counts: Option<HashMap<u64, u64>>,
    /// How long the last refresh took.
    pub(super) took: Duration,
}

impl TasksModel {
    /// Takes over what a refresh has found.
    pub(super) fn refresh(&mut self, dump: TaskDump, took: Duration, now: Instant) {
        let hasher = foldhash::fast::FixedState::default();
        let (mut tasks, mut counts) = (HashMap::new(), HashMap::new());
        let mut rows = Vec::new();
        for (number, group) in groups(&dump).iter().enumerate() {
            let key = key(group, hasher.build_hasher());
            let count = group.tasks.len() as u64;
            let before = self.counts.as_ref().map(|counts| counts.get(&key).copied().unwrap_or(0));
            let mut since = now;
            for task in &group.tasks {
                let id = (dump.tasks[*task].id, dump.tasks[*task].number);
                if id == (0, 0) {
                    continue;
                }
                let known = self.tasks.get(&id).filter(|(known, _)| *known == key);
                let first = known.map_or(now, |(_, first)| *first);
                since = since.min(first);
                tasks.insert(id, (key, first));
            }
            *counts.entry(key).or_insert(0) += count;
            rows.push(TaskRow {
                group: number,
                count,
                change: before.map_or(0, |before| count as i64 - before as i64),
                seen_for: now.saturating_duration_since(since),
            });
        }
        *self = TasksModel { dump, rows, tasks, counts: Some(counts), took };
    }

    /// The tasks.
    pub(super) fn dump(&self) -> &TaskDump {
        &self.dump
    }

    /// The groups, the largest first.
    pub(super) fn groups(&self) -> Vec<TaskGroup<'_>> {
        groups(&self.dump)
    }

    /// A row for each group, in the same order.
    pub(super) fn rows(&self) -> &[TaskRow] {
        &self.rows
    }

    /// Whether there was a refresh.
    pub(super) fn is_known(&self) -> bool {
        self.counts.is_some()
    }
}

/// A number for state, function and stack.
fn key(group: &TaskGroup<'_>, mut hasher: impl Hasher) -> u64 {
    use std::hash::Hash;
    group.state.hash(&mut hasher);
    group.name.hash(&mut hasher);
    group.stack.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackglass_profile::task_dump::{AwaitFrame, AwaitPoint, DumpedTask};

    fn task(id: u64, line: u32) -> DumpedTask {
        let point = AwaitPoint::Await(Some(("main.rs".into(), line)));
        let frame = AwaitFrame { function: "app::f".into(), point, children: Vec::new(), is_race: false };
        DumpedTask { id, name: "app::f".into(), stack: vec![frame], ..DumpedTask::default() }
    }

    fn dump(tasks: &[(u64, u32)]) -> TaskDump {
        TaskDump { tasks: tasks.iter().map(|(id, line)| task(*id, *line)).collect(), ..TaskDump::default() }
    }

    #[test]
    fn changes_and_times_are_those_of_the_same_place() {
        let mut model = TasksModel::default();
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let took = Duration::ZERO;
        model.refresh(dump(&[(1, 5), (2, 5), (3, 9)]), took, at(0));
        assert!(model.rows().iter().all(|row| row.change == 0 && row.seen_for.is_zero()));
        model.refresh(dump(&[(1, 5), (2, 5), (3, 9), (4, 5)]), took, at(2));
        let row = |group, count, change, seconds| TaskRow {
            group,
            count,
            change,
            seen_for: Duration::from_secs(seconds),
        };
        assert_eq!(model.rows(), [row(0, 3, 1, 2), row(1, 1, 0, 2)]);
        // Task 1 moves on; 3 was away for one refresh.
        model.refresh(dump(&[(1, 9), (2, 5)]), took, at(3));
        assert_eq!(model.rows(), [row(0, 1, -2, 3), row(1, 1, 0, 0)]);
        model.refresh(dump(&[(1, 9), (2, 5), (3, 9)]), took, at(4));
        assert_eq!(model.rows(), [row(0, 2, 1, 1), row(1, 1, 0, 4)]);
        // Tasks of other executors have no id, but a number.
        let mut named = dump(&[(0, 9), (0, 5)]);
        (named.tasks[0].number, named.tasks[1].number) = (1, 2);
        model.refresh(named.clone(), took, at(5));
        model.refresh(named, took, at(8));
        assert_eq!(model.rows(), [row(0, 1, 0, 3), row(1, 1, 0, 3)]);
    }
}
