//! Tasks that wait for each other.
//!
//! A task goes on when what it waits for happens: the end of a task, a lock that its holder gives back, a value from the task that has
//! the sender of a oneshot channel, or room from the one that has a channel's receiver. With `join!` it needs all of these, with
//! `select!` one ([`Needs`]). Timers, input, and all that is not understood may happen at any time.
//!
//! So first all that can go on is found, and what can go on because of it, until nothing changes. The other tasks never go on: the
//! cycles among them are deadlocks. A lock is given back when the future that holds it can go on ([`Places`]), or a future around that.
//! If it is not known which future of a task holds it, any of them may.

use crate::needs::{Kind, Needs, NodeId};
use crate::places::Places;
use foldhash::{HashMap, HashMapExt};
use stackglass_profile::task_dump::{Deadlock, DumpedTask, Holder, Lock, SharedKind, TaskState, WaitTarget};
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
    places: &Places,
) -> Vec<Deadlock> {
    let mut is_taken = vec![false; tasks.len()];
    let mut found = Vec::new();
    let mut left = MOST_STEPS;
    for is_certain in [true, false] {
        let needs = Search::new(tasks, needs, locks, places, is_certain).unmet();
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

/// A lock in the hands of a task.
struct Hold {
    task: usize,
    is_released: bool,
    /// The futures that wait for it.
    waiters: Vec<usize>,
}

/// The search for all that can go on. Futures of all tasks are numbered one after the other.
struct Search<'s> {
    tasks: &'s [DumpedTask],
    needs: Vec<Option<&'s Needs>>,
    /// The number of each task's first future.
    first: Vec<usize>,
    /// The task of each future.
    task_of: Vec<usize>,
    can_go_on: Vec<bool>,
    /// How many parts of each future are still needed.
    missing: Vec<usize>,
    /// The futures that wait for the end of a task, by the number of its first future.
    for_end: HashMap<usize, Vec<usize>>,
    holds: Vec<Hold>,
    /// What a future releases when it goes on, by its number.
    released_by: HashMap<usize, Vec<usize>>,
    /// What each future of a task releases, by the task.
    released_by_any: HashMap<usize, Vec<usize>>,
    /// For each future that waits for something shared: who holds it.
    blockers: HashMap<usize, Vec<usize>>,
    /// Futures that can go on, of which those that wait for them do not know yet.
    open: Vec<usize>,
    /// Whether what probably is counts: holders that are not certain, and branches of `try_join!` that do not fail.
    is_certain: bool,
}

impl<'s> Search<'s> {
    fn new(
        tasks: &'s [DumpedTask],
        needs: &'s HashMap<usize, Needs>,
        locks: &'s [Lock],
        places: &Places,
        is_certain: bool,
    ) -> Search<'s> {
        let (mut first, mut task_of, mut of_task) = (Vec::new(), Vec::new(), Vec::new());
        for (index, task) in tasks.iter().enumerate() {
            first.push(task_of.len());
            // A task that was woken goes on.
            let waits = matches!(task.state, TaskState::Waiting | TaskState::BlockOn(_));
            let known = needs.get(&index).filter(|needs| waits && !needs.nodes.is_empty());
            task_of.extend(std::iter::repeat_n(index, known.map_or(1, |needs| needs.nodes.len())));
            of_task.push(known);
        }
        let count = task_of.len();
        let mut search = Search {
            tasks,
            needs: of_task,
            first,
            task_of,
            can_go_on: vec![false; count],
            missing: vec![0; count],
            for_end: HashMap::new(),
            holds: Vec::new(),
            released_by: HashMap::new(),
            released_by_any: HashMap::new(),
            blockers: HashMap::new(),
            open: Vec::new(),
            is_certain,
        };
        search.count_parts();
        search.connect(locks, places);
        search.spread();
        search
    }

    fn count_parts(&mut self) {
        for (task, needs) in self.needs.iter().enumerate() {
            for node in needs.iter().flat_map(|needs| needs.nodes.iter().skip(1)) {
                self.missing[self.first[task] + node.parent] += 1;
            }
        }
        for (task, needs) in self.needs.iter().enumerate() {
            for (id, node) in needs.iter().flat_map(|needs| needs.nodes.iter().enumerate()) {
                let missing = &mut self.missing[self.first[task] + id];
                let is_one_enough = match node.kind {
                    Kind::Any => true,
                    // The branch that can go on may fail.
                    Kind::Try => self.is_certain,
                    _ => false,
                };
                *missing = if is_one_enough { (*missing).min(1) } else { *missing };
            }
        }
    }

    /// Notes what each future waits for. Those that wait for nothing can go on.
    fn connect(&mut self, locks: &[Lock], places: &Places) {
        let numbered = self.tasks.iter().enumerate().filter(|(_, task)| task.id != 0);
        let by_id: HashMap<u64, usize> = numbered.map(|(index, task)| (task.id, index)).collect();
        let by_address: HashMap<u64, &Lock> = locks.iter().map(|lock| (lock.address, lock)).collect();
        let partial = self.partial();
        let mut holds: HashMap<(u64, usize, Option<NodeId>), usize> = HashMap::new();
        for task in 0..self.tasks.len() {
            let first = self.first[task];
            let Some(needs) = self.needs[task] else {
                self.goes_on(first);
                continue;
            };
            for (id, node) in needs.nodes.iter().enumerate() {
                let number = first + id;
                match node.kind {
                    Kind::Open => self.goes_on(number),
                    Kind::All | Kind::Try | Kind::Any if self.missing[number] == 0 => self.goes_on(number),
                    Kind::All | Kind::Try | Kind::Any => {}
                    Kind::Task(of) => match by_id.get(&of) {
                        Some(of) => self.for_end.entry(self.first[*of]).or_default().push(number),
                        None => self.goes_on(number),
                    },
                    Kind::Shared { address, permits, .. } => {
                        let lock = by_address.get(&address);
                        let blockers = lock.map(|lock| blockers(lock, permits, self.is_certain));
                        let of_lock =
                            |holder: &Holder| (holder.task, places.get(&(address, holder.task)).copied());
                        let blockers = blockers.into_iter().flatten().map(of_lock);
                        let before = partial.get(&address).into_iter().flatten();
                        let before = before.filter(|before| **before != (task, id));
                        let before = before.map(|(task, id)| (*task, Some(*id)));
                        for (holder, place) in blockers.chain(before) {
                            let hold = *holds
                                .entry((address, holder, place))
                                .or_insert_with(|| self.hold(holder, place));
                            self.holds[hold].waiters.push(number);
                            self.blockers.entry(number).or_default().push(hold);
                            self.missing[number] += 1;
                        }
                        if self.missing[number] == 0 {
                            self.goes_on(number);
                        }
                    }
                }
            }
        }
    }

    /// By the address of a lock: tasks and their futures that have some of the permits for which they wait. Nobody behind them in
    /// the lock's queue gets any before them.
    fn partial(&self) -> HashMap<u64, Vec<(usize, NodeId)>> {
        let mut found: HashMap<u64, Vec<(usize, NodeId)>> = HashMap::new();
        for (task, needs) in self.needs.iter().enumerate() {
            for (id, node) in needs.iter().flat_map(|needs| needs.nodes.iter().enumerate()) {
                if let (Some((address, _)), Kind::Shared { kind: SharedKind::RwLock, .. }) =
                    (node.kind.partial(), node.kind)
                {
                    found.entry(address).or_default().push((task, id));
                }
            }
        }
        found
    }

    /// Adds what a task holds, at a place if that is known.
    fn hold(&mut self, task: usize, place: Option<NodeId>) -> usize {
        let hold = self.holds.len();
        self.holds.push(Hold { task, is_released: false, waiters: Vec::new() });
        let nodes = self.needs[task].map_or(&[][..], |needs| &needs.nodes);
        match place.filter(|place| *place < nodes.len()) {
            // It is released by each future around it as well.
            Some(mut at) => loop {
                self.released_by.entry(self.first[task] + at).or_default().push(hold);
                if at == Needs::ROOT {
                    break;
                }
                at = nodes[at].parent;
            },
            None => self.released_by_any.entry(task).or_default().push(hold),
        }
        hold
    }

    fn goes_on(&mut self, number: usize) {
        if !std::mem::replace(&mut self.can_go_on[number], true) {
            self.open.push(number);
        }
    }

    /// Something that a future needs has happened.
    fn is_met(&mut self, number: usize) {
        self.missing[number] = self.missing[number].saturating_sub(1);
        if self.missing[number] == 0 {
            self.goes_on(number);
        }
    }

    fn spread(&mut self) {
        while let Some(number) = self.open.pop() {
            let task = self.task_of[number];
            let first = self.first[task];
            if number == first {
                self.for_end
                    .remove(&number)
                    .unwrap_or_default()
                    .into_iter()
                    .for_each(|one| self.goes_on(one));
            } else if let Some(needs) = self.needs[task] {
                self.is_met(first + needs.nodes[number - first].parent);
            }
            let released = self.released_by.remove(&number).unwrap_or_default();
            let by_any = self.released_by_any.remove(&task).unwrap_or_default();
            for hold in released.into_iter().chain(by_any) {
                if !std::mem::replace(&mut self.holds[hold].is_released, true) {
                    let waiters = std::mem::take(&mut self.holds[hold].waiters);
                    waiters.into_iter().for_each(|waiter| self.is_met(waiter));
                }
            }
        }
    }

    /// What each task that never goes on needs.
    fn unmet(&self) -> Vec<Vec<Need>> {
        let numbered = self.tasks.iter().enumerate().filter(|(_, task)| task.id != 0);
        let by_id: HashMap<u64, usize> = numbered.map(|(index, task)| (task.id, index)).collect();
        let of_task = |task: usize| {
            let mut found = Vec::new();
            let first = self.first[task];
            let Some(needs) = self.needs[task].filter(|_| !self.can_go_on[first]) else { return found };
            // Futures in one that can go on are not needed.
            let mut is_needed = vec![true; needs.nodes.len()];
            for (id, node) in needs.nodes.iter().enumerate() {
                is_needed[id] = is_needed[node.parent] && !self.can_go_on[first + id];
                match node.kind {
                    _ if !is_needed[id] => {}
                    Kind::Task(id) => {
                        let via = WaitTarget::Task(id);
                        found.extend(by_id.get(&id).map(|of| Need { of: *of, via }));
                    }
                    Kind::Shared { kind, address, .. } => {
                        let via = WaitTarget::Shared { kind, address };
                        let holds = self.blockers.get(&(first + id)).into_iter().flatten();
                        let holds = holds.map(|hold| &self.holds[*hold]).filter(|hold| !hold.is_released);
                        found.extend(holds.map(|hold| Need { of: hold.task, via }));
                    }
                    _ => {}
                }
            }
            found
        };
        (0..self.tasks.len()).map(of_task).collect()
    }
}

/// The holders without which a wait does not end.
fn blockers(lock: &Lock, permits: u64, is_certain: bool) -> Vec<&Holder> {
    let certain = lock.holders.iter().filter(|holder| holder.is_certain);
    match (lock.kind, &lock.holders[..]) {
        // A word with the address of a mutex may be no guard.
        (SharedKind::Mutex, [holder]) if holder.is_certain || holder.is_described && !is_certain => {
            vec![holder]
        }
        // A writer waits for all others, a reader for a writer.
        (SharedKind::RwLock, _) => certain.filter(|holder| holder.permits > 1 || permits > 1).collect(),
        (SharedKind::FullChannel | SharedKind::Oneshot, [_]) => certain.collect(),
        // Others may add permits to a semaphore or notify.
        _ => Vec::new(),
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
    use crate::needs::Content;

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
            find(&self.0, &self.1, locks, &Places::default())
        }

        /// The tasks of each deadlock, with places of holders: lock, task, future.
        fn found(&self, locks: &[Lock], places: &[(u64, usize, NodeId)]) -> Vec<(Vec<usize>, bool)> {
            let places = places.iter().map(|(lock, task, at)| ((*lock, *task), *at)).collect();
            let found = find(&self.0, &self.1, locks, &places).into_iter();
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
        Lock { kind, address, holders: holders.iter().map(holder).collect(), waiters: Vec::new() }
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
        assert_eq!(case.found(&[], &[]), [(vec![0, 1], true)]);
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
        // The function around the branches holds it, or the branch that waits.
        for holder in [0, 1, 3, 5] {
            assert_eq!(case.found(&locks, &[(10, 0, holder)]), [(vec![0, 1], true)], "{holder}");
        }
        // A future around the branch that holds it may drop the branch.
        let case = Case::new(&[&[(0, Any), (1, All), (1, Open), (2, Task(2))], &[(0, mutex(10))]]);
        assert!(case.found(&locks, &[(10, 0, 4)]).is_empty());
    }

    #[test]
    fn branches_of_one_task_against_each_other() {
        let branches: &[(NodeId, Kind)] = &[(0, All), (1, All), (1, All), (2, mutex(10)), (3, mutex(20))];
        let locks = [held(10, 0), held(20, 0)];
        let places = [(10, 0, 3), (20, 0, 2)];
        let case = Case::new(&[branches]);
        assert_eq!(case.found(&locks, &places), [(vec![0], true)]);
        assert_eq!(case.found(&locks, &[]), [(vec![0], true)]);
        // Beside them, a third branch goes on. It holds none of the locks.
        let with_third = [branches, &[(1, Open)]].concat();
        let case = Case::new(&[&with_third]);
        assert_eq!(case.found(&locks, &places), [(vec![0], true)]);
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
            let is_one = matches!(kind, SharedKind::FullChannel | SharedKind::Oneshot);
            assert_eq!(found.len(), usize::from(is_one), "{kind:?}");
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
