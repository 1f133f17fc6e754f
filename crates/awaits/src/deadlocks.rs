//! Tasks that wait for each other.
//!
//! A task waits for another if it awaits its `JoinHandle`, or a lock of which the other alone has a guard. Only waits without
//! a timeout or another branch count: nothing but the other task ends them. A guard that was given to `drop()` may still be
//! described as a variable, so a cycle with a lock is not certain.

use foldhash::{HashMap, HashMapExt};
use stackglass_profile::task_dump::{Deadlock, DumpedTask, Lock, SharedKind, WaitTarget};

/// The cycles among tasks. Each task is in one at most.
pub fn find(tasks: &[DumpedTask], locks: &[Lock]) -> Vec<Deadlock> {
    let by_id: HashMap<u64, usize> = tasks
        .iter()
        .enumerate()
        .filter(|(_, task)| task.id != 0)
        .map(|(index, task)| (task.id, index))
        .collect();
    let holder: HashMap<u64, usize> = locks
        .iter()
        .filter(|lock| lock.kind == SharedKind::Mutex)
        .filter_map(|lock| match &lock.holders[..] {
            [holder] if holder.is_described => Some((lock.address, holder.task)),
            _ => None,
        })
        .collect();
    let next = |task: usize| -> Option<(usize, WaitTarget)> {
        let [wait] = &tasks[task].waits[..] else { return None };
        let other = match wait.target {
            WaitTarget::Task(id) => by_id.get(&id),
            WaitTarget::Shared { address, .. } => holder.get(&address),
        };
        Some((*other.filter(|_| wait.is_only)?, wait.target))
    };
    // Each task waits for one other at most, so a walk that meets itself has found a cycle.
    let mut walked_by: HashMap<usize, usize> = HashMap::new();
    let mut found = Vec::new();
    for start in 0..tasks.len() {
        let mut at = start;
        while !walked_by.contains_key(&at) {
            walked_by.insert(at, start);
            let Some((other, _)) = next(at) else { break };
            at = other;
        }
        if walked_by.get(&at) == Some(&start) && next(at).is_some() {
            let mut deadlock = Deadlock { tasks: Vec::new(), via: Vec::new(), is_certain: true };
            let first = at;
            while let Some((other, via)) = next(at) {
                deadlock.tasks.push(at);
                deadlock.via.push(via);
                deadlock.is_certain &= matches!(via, WaitTarget::Task(_));
                at = other;
                if at == first {
                    break;
                }
            }
            if at == first {
                found.push(deadlock);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackglass_profile::task_dump::{Holder, Wait};

    fn task(id: u64, waits: &[(WaitTarget, bool)]) -> DumpedTask {
        let wait = |(target, is_only): &(WaitTarget, bool)| Wait { target: *target, is_only: *is_only };
        DumpedTask { id, name: "f".into(), waits: waits.iter().map(wait).collect(), ..DumpedTask::default() }
    }

    fn mutex(address: u64) -> WaitTarget {
        WaitTarget::Shared { kind: SharedKind::Mutex, address }
    }

    fn lock(address: u64, holders: &[usize]) -> Lock {
        let holders =
            holders.iter().map(|task| Holder { task: *task, line: None, is_described: true }).collect();
        Lock { kind: SharedKind::Mutex, address, holders, waiters: Vec::new() }
    }

    #[test]
    fn two_locks_in_opposite_order() {
        let tasks =
            [task(1, &[(mutex(10), true)]), task(2, &[(mutex(20), true)]), task(3, &[(mutex(10), true)])];
        let locks = [lock(10, &[1]), lock(20, &[0])];
        let found = find(&tasks, &locks);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].tasks, [0, 1]);
        assert_eq!(found[0].via, [mutex(10), mutex(20)]);
        assert!(!found[0].is_certain);
    }

    #[test]
    fn a_task_that_waits_for_its_own_lock() {
        let found = find(&[task(1, &[(mutex(10), true)])], &[lock(10, &[0])]);
        assert_eq!(found[0].tasks, [0]);
    }

    #[test]
    fn no_cycle_without_certainty() {
        let waits = |only| [task(1, &[(mutex(10), only)]), task(2, &[(WaitTarget::Task(1), true)])];
        assert_eq!(find(&waits(true), &[lock(10, &[1])]).len(), 1);
        // A timeout, two possible holders, no holder, two waits.
        assert!(find(&waits(false), &[lock(10, &[1])]).is_empty());
        assert!(find(&waits(true), &[lock(10, &[1, 0])]).is_empty());
        assert!(find(&waits(true), &[]).is_empty());
        let both = [
            task(1, &[(mutex(10), true), (WaitTarget::Task(2), true)]),
            task(2, &[(WaitTarget::Task(1), true)]),
        ];
        assert!(find(&both, &[lock(10, &[1])]).is_empty());
        // A chain without a cycle.
        assert!(find(&[task(1, &[(WaitTarget::Task(2), true)]), task(2, &[])], &[]).is_empty());
    }
}
