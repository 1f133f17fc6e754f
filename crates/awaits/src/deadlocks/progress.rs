//! Which tasks can go on: those that need nothing, those that need only what others give when they go on, and so on.
//!
//! What is left when nothing changes any more never goes on.

use super::Need;
use crate::holding_branch::HoldingBranches;
use crate::needs::{Kind, Needs, NodeId};
use foldhash::{HashMap, HashMapExt};
use stackglass_profile::task_dump::{DumpedTask, Holder, Lock, SharedKind, TaskState, WaitTarget};

/// A lock in the hands of a task.
struct Hold {
    task: usize,
    is_released: bool,
    /// The futures that wait for it.
    waiters: Vec<usize>,
}

/// The search for all that can go on. Futures of all tasks are numbered one after the other.
pub(super) struct Progress<'s> {
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

impl<'s> Progress<'s> {
    pub fn new(
        tasks: &'s [DumpedTask],
        needs: &'s HashMap<usize, Needs>,
        locks: &'s [Lock],
        branches: &HoldingBranches,
        is_certain: bool,
    ) -> Progress<'s> {
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
        let mut search = Progress {
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
        search.connect(locks, branches);
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
    fn connect(&mut self, locks: &[Lock], branches: &HoldingBranches) {
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
                    kind if kind.is_met() => self.goes_on(number),
                    Kind::All | Kind::Try | Kind::Any if self.missing[number] == 0 => self.goes_on(number),
                    Kind::All | Kind::Try | Kind::Any => {}
                    Kind::Task(of) => match by_id.get(&of) {
                        Some(of) => self.for_end.entry(self.first[*of]).or_default().push(number),
                        None => self.goes_on(number),
                    },
                    Kind::Shared { address, permits, .. } => {
                        let lock = by_address.get(&address);
                        let blockers = lock.map(|lock| blockers(lock, permits, self.is_certain));
                        // A guard may have been moved to where other branches of the task find it: what is certain needs all
                        // of them to wait.
                        let is_certain = self.is_certain;
                        let branch = |task| branches.get(&(address, task)).copied().filter(|_| !is_certain);
                        let of_lock = |holder: &Holder| (holder.task, branch(holder.task));
                        let blockers = blockers.into_iter().flatten().map(of_lock);
                        let before = partial.get(&address).into_iter().flatten();
                        let before = before.filter(|before| **before != (task, id));
                        let before = before.map(|(task, id)| (*task, Some(*id)));
                        for (holder, branch) in blockers.chain(before) {
                            let hold = *holds
                                .entry((address, holder, branch))
                                .or_insert_with(|| self.hold(holder, branch));
                            self.holds[hold].waiters.push(number);
                            self.blockers.entry(number).or_default().push(hold);
                            self.missing[number] += 1;
                        }
                        // Whichever of them goes on may send a message, or give enough permits back.
                        if lock.is_some_and(|lock| is_one_enough(lock.kind)) {
                            self.missing[number] = self.missing[number].min(1);
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

    /// Adds what a task holds, in a branch if that is known.
    fn hold(&mut self, task: usize, branch: Option<NodeId>) -> usize {
        let hold = self.holds.len();
        self.holds.push(Hold { task, is_released: false, waiters: Vec::new() });
        let nodes = self.needs[task].map_or(&[][..], |needs| &needs.nodes);
        match branch.filter(|branch| *branch < nodes.len()) {
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
    pub fn unmet(&self) -> Vec<Vec<Need>> {
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
                        let holds: Vec<usize> = holds.map(|hold| hold.task).collect();
                        // Of several holders, the others are of more interest.
                        let is_of = |of: &usize| *of != task || !is_one_enough(kind) || holds.len() == 1;
                        found.extend(holds.iter().copied().filter(is_of).map(|of| Need { of, via }));
                    }
                    _ => {}
                }
            }
            found
        };
        (0..self.tasks.len()).map(of_task).collect()
    }
}

/// Whether a wait ends as soon as one of the holders goes on.
fn is_one_enough(kind: SharedKind) -> bool {
    matches!(kind, SharedKind::Semaphore | SharedKind::EmptyChannel)
}

/// The holders without which a wait does not end.
fn blockers(lock: &Lock, permits: u64, is_certain: bool) -> Vec<&Holder> {
    let certain = lock.holders.iter().filter(|holder| holder.is_certain);
    // A guard that is not in a future itself is behind a pointer, and there may be others to it, such as a `Weak`.
    let is_sure = |holder: &&Holder| holder.is_described || !is_certain;
    match (lock.kind, &lock.holders[..]) {
        // A word with the address of a mutex may be no guard.
        (SharedKind::Mutex, [holder])
            if holder.is_certain && is_sure(&holder) || holder.is_described && !is_certain =>
        {
            vec![holder]
        }
        // A writer waits for all others, a reader for a writer.
        (SharedKind::RwLock, _) => {
            certain.filter(is_sure).filter(|holder| holder.permits > 1 || permits > 1).collect()
        }
        (SharedKind::FullChannel | SharedKind::Oneshot, [holder])
            if !holder.is_shared && lock.ends.is_none_or(|ends| ends == 1) =>
        {
            certain.collect()
        }
        (SharedKind::OtherMutex, [_]) => certain.filter(is_sure).collect(),
        // Others may add permits, or make a sender of a weak one.
        (SharedKind::Semaphore, _) if !is_certain => certain.collect(),
        (SharedKind::EmptyChannel, holders)
            if !is_certain
                && lock.ends == Some(holders.len() as u64)
                && holders.iter().all(|holder| holder.is_certain && !holder.is_shared) =>
        {
            certain.collect()
        }
        // Others may notify.
        _ => Vec::new(),
    }
}
