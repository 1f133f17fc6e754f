//! The order of tasks in a dump: by runtime, the largest first, and by id.
//!
//! They are read in the order of the runtimes' lists. To sort the lists first would read each task once more, and each may be on a
//! page of its own.

use crate::found::Found;
use std::cmp::Reverse;

/// A runtime, and how many tasks its list has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct OfRuntime {
    pub kind: &'static str,
    pub tasks: usize,
}

/// Sorts runtimes and tasks. Returns the kinds of the runtimes in their new order.
pub(super) fn sort(runtimes: &[OfRuntime], found: &mut Found) -> Vec<&'static str> {
    let Found { dump, held, polled, wrapped, .. } = found;
    let mut numbers: Vec<usize> = (0..runtimes.len()).filter(|number| runtimes[*number].tasks > 0).collect();
    numbers.sort_by_key(|number| Reverse(runtimes[*number].tasks));
    let mut new_numbers = vec![usize::MAX; runtimes.len()];
    numbers.iter().enumerate().for_each(|(new, old)| new_numbers[*old] = new);
    let mut tasks: Vec<_> = std::mem::take(&mut dump.tasks).into_iter().enumerate().collect();
    for (_, task) in &mut tasks {
        task.runtime = task.runtime.and_then(|number| new_numbers.get(number).copied());
    }
    tasks.sort_by_key(|(_, task)| (task.runtime, task.id));
    let mut new_indices = vec![0; tasks.len()];
    tasks.iter().enumerate().for_each(|(new, (old, _))| new_indices[*old] = new);
    dump.tasks = tasks.into_iter().map(|(_, task)| task).collect();
    held.iter_mut().for_each(|held| held.task = new_indices[held.task]);
    held.sort_by_key(|held| held.task);
    polled.iter_mut().for_each(|(task, _)| *task = new_indices[*task]);
    wrapped.renumber(&new_indices);
    numbers.into_iter().map(|number| runtimes[number].kind).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::holdings::TaskHoldings;
    use stackglass_profile::task_dump::{DumpedTask, TaskDump};

    #[test]
    fn indices_follow_their_tasks() {
        let task = |id, runtime| DumpedTask { id, runtime: Some(runtime), ..DumpedTask::default() };
        let tasks = vec![task(9, 0), task(4, 2), task(3, 2), task(5, 2), task(1, 0)];
        let dump = TaskDump { tasks, ..TaskDump::default() };
        let of = |kind, tasks| OfRuntime { kind, tasks };
        let runtimes = [of("small", 2), OfRuntime::default(), of("large", 3)];
        let held =
            |task| TaskHoldings { task, holdings: Default::default(), needs: Default::default(), drop: None };
        let (held, polled) = (vec![held(0), held(1), held(3)], vec![(4, 0x1), (2, 0x2)]);
        let mut found = Found { dump, held, polled, ..Found::default() };
        assert_eq!(sort(&runtimes, &mut found), ["large", "small"]);
        let order: Vec<_> = found.dump.tasks.iter().map(|task| (task.id, task.runtime)).collect();
        assert_eq!(order, [(3, Some(0)), (4, Some(0)), (5, Some(0)), (1, Some(1)), (9, Some(1))]);
        assert_eq!(found.held.iter().map(|held| held.task).collect::<Vec<_>>(), [1, 2, 4]);
        assert_eq!(found.polled, [(3, 0x1), (0, 0x2)]);
    }
}
