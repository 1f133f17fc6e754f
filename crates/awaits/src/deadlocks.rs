//! Tasks that wait for each other.
//!
//! A task goes on when what it waits for happens: the end of a task, a lock that its holder gives back, a value from the task that has
//! the sender of a oneshot channel, or room from the one that has a channel's receiver. With `join!` it needs all of these, with
//! `select!` one ([`Needs`]). Timers, input, and all that is not understood may happen at any time.
//!
//! So first all that can go on is found, and what can go on because of it, until nothing changes. The other tasks never go on: the
//! cycles among them are deadlocks. A lock is given back when the future that holds it can go on ([`HoldingBranches`]), or a future around that.
//! If it is not known which future of a task holds it, any of them may. A deadlock is certain only if no future of the holder can go
//! on, and if the guard is in one of them: elsewhere, code that goes on may reach it by another pointer.

mod progress;

use crate::holding_branch::HoldingBranches;
use crate::needs::Needs;
use foldhash::{HashMap, HashMapExt};
use progress::Progress;
use stackglass_profile::task_dump::{Deadlock, DumpedTask, Lock, WaitTarget};
use std::collections::VecDeque;

/// Most needs that are followed, in all.
const MOST_STEPS: u32 = 20_000_000;

/// A need of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Need {
    /// The task that it waits for.
    of: usize,
    via: WaitTarget,
}

/// The cycles among tasks. Each task is in one at most. Those that are certain come first.
pub(crate) fn find(
    tasks: &[DumpedTask],
    needs: &HashMap<usize, Needs>,
    locks: &[Lock],
    branches: &HoldingBranches,
) -> Vec<Deadlock> {
    let mut is_taken = vec![false; tasks.len()];
    let mut found = Vec::new();
    let mut left = MOST_STEPS;
    for is_certain in [true, false] {
        let needs = Progress::new(tasks, needs, locks, branches, is_certain).unmet();
        let groups = groups(&needs);
        for start in 0..tasks.len() {
            let is_in = |task: usize| groups[task] == groups[start] && !is_taken[task];
            if is_taken[start] || needs[start].is_empty() {
                continue;
            }
            if let Some(cycle) = shortest(&needs, start, &mut left, &is_in) {
                cycle.iter().for_each(|(task, _)| is_taken[*task] = true);
                found.push(Deadlock {
                    tasks: cycle.iter().map(|(task, _)| *task).collect(),
                    via: cycle.iter().map(|(_, need)| need.via).collect(),
                    is_certain,
                });
            }
        }
    }
    found
}

/// For each task a number: those with the same number need each other, directly or through others.
///
/// This is Tarjan's algorithm for strongly connected components, without recursion.
fn groups(needs: &[Vec<Need>]) -> Vec<usize> {
    const NONE: usize = usize::MAX;
    let (mut order, mut lowest, mut group) =
        (vec![NONE; needs.len()], vec![NONE; needs.len()], vec![NONE; needs.len()]);
    let (mut count, mut open) = (0, Vec::new());
    for start in 0..needs.len() {
        if order[start] != NONE {
            continue;
        }
        let mut path = vec![(start, 0)];
        while let Some((task, next)) = path.last_mut() {
            let task = *task;
            if *next == 0 {
                (order[task], lowest[task]) = (count, count);
                count += 1;
                open.push(task);
            }
            let need = needs[task].get(*next);
            *next += 1;
            match need {
                Some(need) if order[need.of] == NONE => path.push((need.of, 0)),
                Some(need) if group[need.of] == NONE => lowest[task] = lowest[task].min(order[need.of]),
                Some(_) => {}
                None => {
                    path.pop();
                    if let Some((user, _)) = path.last() {
                        lowest[*user] = lowest[*user].min(lowest[task]);
                    }
                    if lowest[task] == order[task] {
                        while let Some(member) = open.pop() {
                            group[member] = task;
                            if member == task {
                                break;
                            }
                        }
                    }
                }
            }
        }
    }
    group
}

/// The shortest way from a task back to itself: each task with its need.
fn shortest(
    needs: &[Vec<Need>],
    start: usize,
    left: &mut u32,
    is_in: &dyn Fn(usize) -> bool,
) -> Option<Vec<(usize, Need)>> {
    let mut reached_by: HashMap<usize, (usize, Need)> = HashMap::new();
    let mut open = VecDeque::from([start]);
    while let Some(task) = open.pop_front() {
        for need in needs[task].iter().filter(|need| is_in(need.of)) {
            *left = left.checked_sub(1)?;
            if reached_by.contains_key(&need.of) {
                continue;
            }
            reached_by.insert(need.of, (task, *need));
            if need.of != start {
                open.push_back(need.of);
                continue;
            }
            let mut cycle = Vec::new();
            let mut at = start;
            while let Some((user, need)) = reached_by.get(&at) {
                cycle.push((*user, *need));
                at = *user;
                if at == start {
                    break;
                }
            }
            cycle.reverse();
            return Some(cycle);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::needs::{Content, Kind, NodeId};
    use stackglass_profile::task_dump::{Holder, SharedKind, TaskState};

    /// Tasks with ids from 1 on, and what each of them needs: futures with the future that waits for them.
    struct Case(Vec<DumpedTask>, HashMap<usize, Needs>);

    impl Case {
        fn new(tasks: &[&[(NodeId, Kind)]]) -> Case {
            let mut case = Case(Vec::new(), HashMap::new());
            for (index, futures) in tasks.iter().enumerate() {
                let mut needs = Needs::new();
                for (parent, kind) in *futures {
                    needs.add(*parent, *kind, Content::Nothing);
                }
                case.0.push(DumpedTask { id: index as u64 + 1, ..DumpedTask::default() });
                case.1.insert(index, needs);
            }
            case
        }

        fn find(&self, locks: &[Lock]) -> Vec<Deadlock> {
            find(&self.0, &self.1, locks, &HoldingBranches::default())
        }

        /// The tasks of each deadlock, with branches of holders: lock, task, future.
        fn found(&self, locks: &[Lock], branches: &[(u64, usize, NodeId)]) -> Vec<(Vec<usize>, bool)> {
            let branches = branches.iter().map(|(lock, task, at)| ((*lock, *task), *at)).collect();
            let found = find(&self.0, &self.1, locks, &branches).into_iter();
            found.map(|deadlock| (deadlock.tasks, deadlock.is_certain)).collect()
        }
    }

    fn shared(kind: SharedKind, address: u64, permits: u64) -> Kind {
        Kind::Shared { kind, address, permits, assigned: 0 }
    }

    fn mutex(address: u64) -> Kind {
        shared(SharedKind::Mutex, address, 1)
    }

    fn lock(kind: SharedKind, address: u64, holders: &[(usize, bool, u64)]) -> Lock {
        let holder = |(task, is_certain, permits): &(usize, bool, u64)| Holder {
            task: *task,
            is_described: true,
            is_certain: *is_certain,
            permits: *permits,
            ..Holder::default()
        };
        let holders = holders.iter().map(holder).collect();
        Lock { kind, address, holders, waiters: Vec::new(), arrived: None, ends: None }
    }

    fn held(address: u64, task: usize) -> Lock {
        lock(SharedKind::Mutex, address, &[(task, true, 1)])
    }

    use Kind::{All, Any, Open, Task, Try};

    #[test]
    fn two_locks_in_opposite_order() {
        let case = Case::new(&[&[(0, mutex(10))], &[(0, mutex(20))], &[(0, mutex(10))]]);
        let found = case.find(&[held(10, 1), held(20, 0)]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].tasks, [0, 1]);
        let target = |address| WaitTarget::Shared { kind: SharedKind::Mutex, address };
        assert_eq!(found[0].via, [target(10), target(20)]);
        assert!(found[0].is_certain);
        // A guard behind a pointer.
        let mut behind = [held(10, 1), held(20, 0)];
        behind[1].holders[0].is_described = false;
        assert_eq!(case.found(&behind, &[]), [(vec![0, 1], false)]);
        let unsure = [held(10, 1), lock(SharedKind::Mutex, 20, &[(0, false, 0)])];
        assert_eq!(case.found(&unsure, &[]), [(vec![0, 1], false)]);
    }

    #[test]
    fn a_task_that_waits_for_its_own_lock() {
        let mut case = Case::new(&[&[(0, mutex(10))]]);
        assert_eq!(case.found(&[held(10, 0)], &[]), [(vec![0], true)]);
        // Its permit has come meanwhile.
        case.0[0].state = TaskState::Ready;
        assert!(case.find(&[held(10, 0)]).is_empty());
        let met = Kind::Shared { kind: SharedKind::Mutex, address: 10, permits: 1, assigned: 1 };
        assert!(Case::new(&[&[(0, met)]]).find(&[held(10, 0)]).is_empty());
    }

    #[test]
    fn no_cycle_without_a_need() {
        let timeout = Case::new(&[&[(0, Open), (1, mutex(10))], &[(0, Task(1))]]);
        assert!(timeout.find(&[held(10, 1)]).is_empty());
        let case = Case::new(&[&[(0, mutex(10))], &[(0, Task(1))]]);
        assert_eq!(case.find(&[held(10, 1)]).len(), 1);
        // Two possible holders, no holder, a chain without a cycle, a task of which nothing is known.
        let two = [lock(SharedKind::Mutex, 10, &[(1, false, 0), (0, false, 0)])];
        assert!(case.find(&two).is_empty());
        assert!(case.find(&[]).is_empty());
        assert!(Case::new(&[&[(0, Task(2))], &[]]).find(&[]).is_empty());
        let mut unknown = Case::new(&[&[(0, mutex(10))], &[(0, Task(1))]]);
        unknown.1.remove(&1);
        assert!(unknown.find(&[held(10, 1)]).is_empty());
    }

    #[test]
    fn all_branches_are_needed() {
        let case = Case::new(&[&[(0, All), (1, Task(3)), (1, Task(2))], &[(0, Task(1))], &[(0, Open)]]);
        assert_eq!(case.found(&[], &[]), [(vec![0, 1], true)]);
        // Another branch may fail.
        let case = Case::new(&[&[(0, Try), (1, Task(3)), (1, Task(2))], &[(0, Task(1))], &[(0, Open)]]);
        assert_eq!(case.found(&[], &[]), [(vec![0, 1], false)]);
        // All others wait as well.
        let case = Case::new(&[&[(0, Try), (1, Task(3)), (1, Task(2))], &[(0, Task(1))], &[(0, Task(1))]]);
        assert_eq!(case.found(&[], &[]), [(vec![0, 2], true)]);
    }

    #[test]
    fn one_of_several_ways_is_enough() {
        let case = |third: Kind| {
            Case::new(&[&[(0, Any), (1, Task(2)), (1, Task(3))], &[(0, Task(1))], &[(0, third)]])
        };
        assert!(case(Open).find(&[]).is_empty());
        assert_eq!(case(Task(1)).found(&[], &[]), [(vec![0, 1], true)]);
        // The third task waits for a lock that nobody in the cycle has.
        assert!(case(mutex(10)).find(&[lock(SharedKind::Mutex, 10, &[])]).is_empty());
        // What a branch that may be left waits for is not needed.
        let case =
            Case::new(&[&[(0, All), (1, Task(1)), (1, Any), (3, Task(2)), (3, Open)], &[(0, Task(1))]]);
        assert_eq!(case.found(&[], &[]), [(vec![0], true)]);
    }

    #[test]
    fn what_a_branch_holds_it_may_give_back() {
        // 1: join!(sleeps, waits for 2). 2: waits for a lock of 1.
        let case = Case::new(&[&[(0, All), (1, All), (1, All), (2, Open), (3, Task(2))], &[(0, mutex(10))]]);
        let locks = [held(10, 0)];
        assert!(case.find(&locks).is_empty());
        assert!(case.found(&locks, &[(10, 0, 2)]).is_empty());
        // The function around the branches holds it, or the branch that waits. The other branch may reach what they hold.
        for holder in [0, 1, 3, 5] {
            assert_eq!(case.found(&locks, &[(10, 0, holder)]), [(vec![0, 1], false)], "{holder}");
        }
        // A future around the branch that holds it may drop the branch.
        let case = Case::new(&[&[(0, Any), (1, All), (1, Open), (2, Task(2))], &[(0, mutex(10))]]);
        assert!(case.found(&locks, &[(10, 0, 4)]).is_empty());
    }

    #[test]
    fn branches_of_one_task_against_each_other() {
        let branches: &[(NodeId, Kind)] = &[(0, All), (1, All), (1, All), (2, mutex(10)), (3, mutex(20))];
        let locks = [held(10, 0), held(20, 0)];
        let holding = [(10, 0, 3), (20, 0, 2)];
        let case = Case::new(&[branches]);
        assert_eq!(case.found(&locks, &holding), [(vec![0], true)]);
        assert_eq!(case.found(&locks, &[]), [(vec![0], true)]);
        // Beside them, a third branch goes on. It holds none of the locks, but may reach what the others hold.
        let with_third = [branches, &[(1, Open)]].concat();
        let case = Case::new(&[&with_third]);
        assert_eq!(case.found(&locks, &holding), [(vec![0], false)]);
        assert!(case.find(&locks).is_empty());
        // All are given up after a time.
        let case = Case::new(&[&[(0, Any), (1, All), (1, Open), (2, mutex(10)), (2, mutex(20))]]);
        assert!(case.found(&locks, &[(10, 0, 5), (20, 0, 4)]).is_empty());
    }

    #[test]
    fn readers_wait_for_writers_only() {
        let found = |permits, of_holder| {
            let case = Case::new(&[&[(0, shared(SharedKind::RwLock, 10, permits))], &[(0, Task(1))]]);
            case.find(&[lock(SharedKind::RwLock, 10, &[(1, true, of_holder)])]).len()
        };
        assert_eq!([found(8, 1), found(1, 8), found(1, 1)], [1, 1, 0]);
    }

    /// A reader waits again for a lock that it has, behind a writer.
    #[test]
    fn a_reader_behind_a_writer() {
        let reader = shared(SharedKind::RwLock, 10, 1);
        let writer = Kind::Shared { kind: SharedKind::RwLock, address: 10, permits: 8, assigned: 7 };
        let locks = [lock(SharedKind::RwLock, 10, &[(0, true, 1)])];
        let case = Case::new(&[&[(0, reader)], &[(0, writer)]]);
        assert_eq!(case.found(&locks, &[]), [(vec![0, 1], true)]);
        // The writer gives up after a time, or waits for another reader.
        let case = Case::new(&[&[(0, reader)], &[(0, Open), (1, writer)]]);
        assert!(case.find(&locks).is_empty());
        let case = Case::new(&[&[(0, reader)], &[(0, writer)], &[(0, Open)]]);
        assert!(case.find(&[lock(SharedKind::RwLock, 10, &[(2, true, 1)])]).is_empty());
    }

    #[test]
    fn ends_of_channels() {
        for kind in [SharedKind::FullChannel, SharedKind::Oneshot, SharedKind::Semaphore, SharedKind::Notify]
        {
            let case = Case::new(&[&[(0, shared(kind, 10, 0))], &[(0, Task(1))]]);
            let found = case.find(&[lock(kind, 10, &[(1, true, 1)])]);
            // Others may add permits.
            let is_certain = found.first().map(|deadlock| deadlock.is_certain);
            let expected = match kind {
                SharedKind::FullChannel | SharedKind::Oneshot => Some(true),
                SharedKind::Semaphore => Some(false),
                _ => None,
            };
            assert_eq!(is_certain, expected, "{kind:?}");
            assert!(case.find(&[lock(kind, 10, &[(1, false, 1)])]).is_empty());
        }
    }

    #[test]
    fn long_cycles_and_many_needs() {
        let count = 50_000;
        let all: Vec<[(NodeId, Kind); 1]> = (0..count).map(|id| [(0, Task(id + 2))]).collect();
        let mut all: Vec<&[(NodeId, Kind)]> = all.iter().map(|futures| &futures[..]).collect();
        assert!(Case::new(&all).find(&[]).is_empty());
        all[count as usize - 1] = &[(0, All), (1, Task(1)), (1, Task(7))];
        let found = Case::new(&all).find(&[]);
        assert_eq!((found.len(), found[0].tasks.len()), (1, count as usize));
    }
}
