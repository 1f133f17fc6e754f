//! Tasks that wait for each other.
//!
//! A task needs another if it awaits its `JoinHandle`, a lock of which the other has a guard, a oneshot channel of which it has the
//! sender, or room in a channel of which it has the receiver. Waits with a timeout, and branches of which one is enough, need
//! nothing.
//!
//! A task with several branches ends after all of them. But what it holds may be given back by a branch that does not wait for
//! the cycle. So a holder counts only if it has no branches.

use foldhash::{HashMap, HashMapExt};
use stackglass_profile::task_dump::{
    AwaitFrame, Deadlock, DumpedTask, Holder, Lock, SharedKind, TaskState, Wait, WaitTarget,
};
use std::collections::VecDeque;

/// Most needs that are followed, in all.
const MOST_STEPS: u32 = 20_000_000;

/// A need of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Need {
    /// The task that it waits for.
    of: usize,
    via: WaitTarget,
    is_certain: bool,
}

/// The cycles among tasks. Each task is in one at most. Those that are certain come first.
pub fn find(tasks: &[DumpedTask], locks: &[Lock]) -> Vec<Deadlock> {
    let all = needs(tasks, locks);
    let mut is_taken = vec![false; tasks.len()];
    let mut found = Vec::new();
    let mut left = MOST_STEPS;
    for only_certain in [true, false] {
        let usable = |needs: &Vec<Need>| {
            needs.iter().filter(|need| need.is_certain || !only_certain).copied().collect::<Vec<_>>()
        };
        let needs: Vec<Vec<Need>> = all.iter().map(usable).collect();
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
                    is_certain: only_certain,
                });
            }
        }
    }
    found
}

/// What each task needs.
fn needs(tasks: &[DumpedTask], locks: &[Lock]) -> Vec<Vec<Need>> {
    let numbered = tasks.iter().enumerate().filter(|(_, task)| task.id != 0);
    let by_id: HashMap<u64, usize> = numbered.map(|(index, task)| (task.id, index)).collect();
    let by_address: HashMap<u64, &Lock> = locks.iter().map(|lock| (lock.address, lock)).collect();
    let of_wait = |wait: &Wait| -> Option<Need> {
        let is_needed = wait.is_needed;
        let (of, is_certain) = match wait.target {
            WaitTarget::Task(id) => (*by_id.get(&id)?, true),
            WaitTarget::Shared { address, .. } => {
                let lock = by_address.get(&address)?;
                let holder = blocker(lock, wait)?;
                if !is_linear(&tasks[holder.task].stack) {
                    return None;
                }
                (holder.task, holder.is_certain)
            }
        };
        let need = Need { of, via: wait.target, is_certain: is_certain && !wait.unless_fails };
        is_needed.then_some(need)
    };
    let of_task = |task: &DumpedTask| match task.state {
        TaskState::Waiting | TaskState::BlockOn(_) => task.waits.iter().filter_map(of_wait).collect(),
        // A task that was woken goes on.
        _ => Vec::new(),
    };
    tasks.iter().map(of_task).collect()
}

/// The holder without which a wait does not end, if there is one.
fn blocker<'l>(lock: &'l Lock, wait: &Wait) -> Option<&'l Holder> {
    match (lock.kind, &lock.holders[..]) {
        // A word with the address of a mutex may be no guard.
        (SharedKind::Mutex, [holder]) => {
            Some(holder).filter(|holder| holder.is_described || holder.is_certain)
        }
        // A writer waits for all others, a reader for a writer.
        (SharedKind::RwLock, holders) => {
            holders.iter().find(|holder| holder.is_certain && (holder.permits > 1 || wait.permits > 1))
        }
        // Others may add permits to a semaphore or notify.
        (SharedKind::FullChannel | SharedKind::Oneshot, [holder]) => {
            Some(holder).filter(|holder| holder.is_certain)
        }
        _ => None,
    }
}

/// Whether a stack has no branches.
fn is_linear(stack: &[AwaitFrame]) -> bool {
    let mut frames = stack;
    loop {
        match frames {
            [] => return true,
            [frame] => frames = &frame.children,
            _ => return false,
        }
    }
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
    use stackglass_profile::task_dump::AwaitPoint;

    fn wait(target: WaitTarget) -> Wait {
        Wait { target, is_needed: true, unless_fails: false, permits: 1 }
    }

    fn task(id: u64, waits: &[Wait]) -> DumpedTask {
        DumpedTask { id, name: "f".into(), waits: waits.to_vec(), ..DumpedTask::default() }
    }

    fn shared(kind: SharedKind, address: u64) -> WaitTarget {
        WaitTarget::Shared { kind, address }
    }

    fn mutex(address: u64) -> Wait {
        wait(shared(SharedKind::Mutex, address))
    }

    fn end(task: u64) -> Wait {
        wait(WaitTarget::Task(task))
    }

    fn lock(kind: SharedKind, address: u64, holders: &[(usize, bool, u64)]) -> Lock {
        let holder = |(task, is_certain, permits): &(usize, bool, u64)| Holder {
            task: *task,
            is_described: true,
            is_certain: *is_certain,
            permits: *permits,
            ..Holder::default()
        };
        Lock { kind, address, holders: holders.iter().map(holder).collect(), waiters: Vec::new() }
    }

    fn held(address: u64, task: usize) -> Lock {
        lock(SharedKind::Mutex, address, &[(task, true, 1)])
    }

    fn with_branches(mut task: DumpedTask) -> DumpedTask {
        let frame = || AwaitFrame { function: "f".into(), point: AwaitPoint::Leaf, children: Vec::new() };
        task.stack = vec![frame(), frame()];
        task
    }

    #[test]
    fn two_locks_in_opposite_order() {
        let tasks = [task(1, &[mutex(10)]), task(2, &[mutex(20)]), task(3, &[mutex(10)])];
        let found = find(&tasks, &[held(10, 1), held(20, 0)]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].tasks, [0, 1]);
        assert_eq!(found[0].via, [mutex(10).target, mutex(20).target]);
        assert!(found[0].is_certain);
        let unsure = [held(10, 1), lock(SharedKind::Mutex, 20, &[(0, false, 0)])];
        let found = find(&tasks, &unsure);
        assert_eq!((found.len(), found[0].is_certain), (1, false));
    }

    #[test]
    fn a_task_that_waits_for_its_own_lock() {
        let found = find(&[task(1, &[mutex(10)])], &[held(10, 0)]);
        assert_eq!(found[0].tasks, [0]);
        // Its permit has come meanwhile.
        let ready = DumpedTask { state: TaskState::Ready, ..task(1, &[mutex(10)]) };
        assert!(find(&[ready], &[held(10, 0)]).is_empty());
    }

    #[test]
    fn no_cycle_without_a_need() {
        let timeout = Wait { is_needed: false, ..mutex(10) };
        assert!(find(&[task(1, &[timeout]), task(2, &[end(1)])], &[held(10, 1)]).is_empty());
        let tasks = [task(1, &[mutex(10)]), task(2, &[end(1)])];
        assert_eq!(find(&tasks, &[held(10, 1)]).len(), 1);
        // Two possible holders, no holder, a chain without a cycle.
        assert!(find(&tasks, &[lock(SharedKind::Mutex, 10, &[(1, false, 0), (0, false, 0)])]).is_empty());
        assert!(find(&tasks, &[]).is_empty());
        assert!(find(&[task(1, &[end(2)]), task(2, &[])], &[]).is_empty());
    }

    #[test]
    fn branches() {
        // All branches are needed for the end of a task.
        let tasks = [with_branches(task(1, &[end(3), end(2)])), task(2, &[end(1)]), task(3, &[])];
        assert_eq!(find(&tasks, &[])[0].tasks, [0, 1]);
        // One branch may give a lock back while another waits.
        let tasks = [with_branches(task(1, &[end(3), end(2)])), task(2, &[mutex(10)]), task(3, &[])];
        assert!(find(&tasks, &[held(10, 0)]).is_empty());
        // Another branch may fail.
        let fails = Wait { unless_fails: true, ..end(2) };
        let found = find(&[with_branches(task(1, &[fails])), task(2, &[end(1)])], &[]);
        assert_eq!((found.len(), found[0].is_certain), (1, false));
    }

    #[test]
    fn readers_wait_for_writers_only() {
        let rw = |permits| Wait { permits, ..wait(shared(SharedKind::RwLock, 10)) };
        let locks = |permits| [lock(SharedKind::RwLock, 10, &[(1, true, permits)])];
        let tasks = |permits| [task(1, &[rw(permits)]), task(2, &[end(1)])];
        assert_eq!(find(&tasks(8), &locks(1)).len(), 1);
        assert_eq!(find(&tasks(1), &locks(8)).len(), 1);
        assert!(find(&tasks(1), &locks(1)).is_empty());
    }

    #[test]
    fn ends_of_channels() {
        for kind in [SharedKind::FullChannel, SharedKind::Oneshot, SharedKind::Semaphore, SharedKind::Notify]
        {
            let tasks = [task(1, &[wait(shared(kind, 10))]), task(2, &[end(1)])];
            let found = find(&tasks, &[lock(kind, 10, &[(1, true, 1)])]);
            let is_one = matches!(kind, SharedKind::FullChannel | SharedKind::Oneshot);
            assert_eq!(found.len(), usize::from(is_one), "{kind:?}");
            assert!(find(&tasks, &[lock(kind, 10, &[(1, false, 1)])]).is_empty());
        }
    }

    #[test]
    fn long_cycles_and_many_needs() {
        let count = 50_000;
        let mut tasks: Vec<DumpedTask> = (0..count).map(|id| task(id + 1, &[end(id + 2)])).collect();
        assert!(find(&tasks, &[]).is_empty());
        tasks[count as usize - 1].waits = vec![end(1), end(7)];
        let found = find(&tasks, &[]);
        assert_eq!((found.len(), found[0].tasks.len()), (1, count as usize));
    }
}
