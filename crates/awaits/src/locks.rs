//! What tasks hold and wait for, together.
//!
//! A described guard may be gone, and a guard may be where no description leads. So the code that would drop a task decides
//! ([`Drops`]): what it gives back, the task holds. Where this code cannot be followed, the description counts, and the holder is
//! not certain. A mutex with a free permit has no holder.

use crate::ends::{self, Role};
use crate::holding_branch::{self, HoldingBranches};
use crate::holdings::{Held, TaskHoldings};
use crate::values::Values;
use foldhash::{HashMap, HashMapExt};
use stackglass_drop_code::{Dropped, Drops, Watched};
use stackglass_layouts::{Layouts, Shape, TypeId};
use stackglass_profile::runtimes::{is_generic, tokio};
use stackglass_profile::task_dump::{DumpedTask, Holder, Lock, SharedKind, TaskState, WaitTarget};
use std::collections::BTreeMap;

/// Most tasks that are searched for what a lock's description does not show.
const MOST_SEARCHED: usize = 2000;
/// Bits of a semaphore's word below the number of free permits (`batch_semaphore.rs`).
const PERMIT_SHIFT: u32 = 1;
/// Bit of the state of a oneshot channel: its sender is gone (`oneshot.rs`).
const VALUE_SENT: u64 = 0b10;

/// Where an `Arc` has the number of its `Weak`s, and its value (`alloc/src/sync.rs`).
const ARC_WEAK: u64 = 8;
const ARC_DATA: u64 = 16;

/// Bit of the state of a mutex of another library: it is locked (`async-lock/src/mutex.rs`, `futures-util/src/lock/mutex.rs`).
const LOCKED: u64 = 1;

/// Locks and channels with their holders and waiters, and which futures of the holders have them.
pub(crate) fn find(
    values: &Values<'_>,
    drops: &Drops<'_>,
    tasks: &[DumpedTask],
    held: &[TaskHoldings],
) -> (Vec<Lock>, HoldingBranches) {
    let mut locks = waited_for(tasks);
    described(&mut locks, tasks, held, &mutex_offsets(values.layouts));
    let (counts, waiting) = ends_of(values, &mut locks, held);
    let offset = permits_offset(values.layouts);
    for lock in locks.values_mut().filter(|lock| lock.kind == SharedKind::Mutex) {
        let permits = offset.and_then(|offset| values.pages.word(lock.address.checked_add(offset)?));
        if permits.is_some_and(|permits| permits >> PERMIT_SHIFT > 0) {
            lock.holders.clear();
        }
    }
    let mut certainty = Certainty::new(values, drops, &locks, held, (counts, &waiting));
    certainty.apply(&mut locks, tasks);
    certainty.leave_out_those_without(values, &mut locks, &waiting);
    let branches = certainty.holding_branches(values, &locks);
    (locks.into_values().collect(), branches)
}

fn waited_for(tasks: &[DumpedTask]) -> BTreeMap<u64, Lock> {
    let mut found: BTreeMap<u64, Lock> = BTreeMap::new();
    for (index, task) in tasks.iter().enumerate() {
        for target in &task.waits {
            let WaitTarget::Shared { kind, address } = *target else { continue };
            let new = || Lock {
                kind,
                address,
                holders: Vec::new(),
                waiters: Vec::new(),
                arrived: None,
                ends: None,
            };
            let lock = found.entry(address).or_insert_with(new);
            if lock.waiters.last() != Some(&index) {
                lock.waiters.push(index);
            }
        }
    }
    found
}

/// Adds the holders that descriptions show.
fn described(
    locks: &mut BTreeMap<u64, Lock>,
    tasks: &[DumpedTask],
    held: &[TaskHoldings],
    mutex_offsets: &[u64],
) {
    for TaskHoldings { task, holdings, .. } in held {
        for Held { kind, address, line, .. } in &holdings.guards {
            let Some(lock) = locks.get_mut(address) else { continue };
            // The guard knows best what it is of. Channels have permits of their own.
            if lock.kind != SharedKind::FullChannel {
                lock.kind = *kind;
                add(
                    lock,
                    Holder { task: *task, line: line.clone(), is_described: true, ..Holder::default() },
                );
            }
        }
    }
    // A guard has the address of the mutex, in which the semaphore is.
    let mut without_holder: HashMap<u64, u64> = HashMap::new();
    for lock in locks.values().filter(|lock| lock.kind == SharedKind::Mutex && lock.holders.is_empty()) {
        let mutexes = mutex_offsets.iter().filter_map(|offset| lock.address.checked_sub(*offset));
        without_holder.extend(mutexes.map(|mutex| (mutex, lock.address)));
    }
    for TaskHoldings { task, holdings, .. } in held {
        for (word, line) in &holdings.hidden {
            let lock = without_holder.get(word).and_then(|address| locks.get_mut(address));
            let Some(lock) = lock.filter(|lock| !lock.waiters.contains(task)) else { continue };
            debug_assert!(*task < tasks.len());
            add(lock, Holder { task: *task, line: line.clone(), ..Holder::default() });
        }
    }
}

/// Adds the tasks that have the other ends of what is waited for. Returns the counts of these ends, with their values, by lock and
/// task; those of tasks that wait for a notification or at a barrier, and have it as well, apart.
fn ends_of(values: &Values<'_>, locks: &mut BTreeMap<u64, Lock>, held: &[TaskHoldings]) -> (Counts, Counts) {
    let (mut counts, mut waiting) = (Counts::new(), Counts::new());
    for lock in locks.values_mut().filter(|lock| lock.kind == SharedKind::Barrier) {
        lock.arrived = ends::arrived(values, lock.address);
    }
    for TaskHoldings { task, holdings, .. } in held {
        for end in &holdings.ends {
            for (address, lock) in locks.range_mut(end.block.clone()) {
                let Some(role) = ends::other(lock.kind) else { continue };
                let is_waiter = lock.waiters.contains(task);
                if role != end.role {
                    lock.ends = lock.ends.or(end.others.filter(|_| is_waiter));
                    continue;
                }
                let count = end.count.and_then(|count| Some((count, values.pages.word(count)?)));
                if role == Role::Shared && is_waiter {
                    waiting.extend(count.map(|count| ((*address, *task), count)));
                    continue;
                }
                if let Some(count) = count {
                    counts.insert((*address, *task), count);
                }
                let line = end.line.clone();
                let is_shared = end.is_shared;
                let holder = Holder { task: *task, line, is_described: true, is_shared, ..Holder::default() };
                add(lock, holder);
            }
        }
    }
    (counts, waiting)
}

fn add(lock: &mut Lock, holder: Holder) {
    if !lock.holders.iter().any(|known| known.task == holder.task) {
        lock.holders.push(holder);
    }
}

/// Addresses and values of counts of ends, by lock and task.
type Counts = HashMap<(u64, usize), (u64, u64)>;

/// What the drops of tasks give back.
struct Certainty<'c, 'a> {
    drops: &'c Drops<'a>,
    held: &'c [TaskHoldings],
    /// Index in `held` by task.
    by_task: HashMap<usize, usize>,
    watched: Watched,
    /// The word of a oneshot channel's state by the channel's address.
    states: HashMap<u64, u64>,
    counts: Counts,
    dropped: HashMap<usize, Option<Dropped>>,
}

impl<'c, 'a> Certainty<'c, 'a> {
    fn new(
        values: &Values<'_>,
        drops: &'c Drops<'a>,
        locks: &BTreeMap<u64, Lock>,
        held: &'c [TaskHoldings],
        (counts, waiting): (Counts, &Counts),
    ) -> Certainty<'c, 'a> {
        let mut watched = Watched::default();
        watched.words.extend(counts.values().chain(waiting.values()).map(|(count, _)| *count));
        let mut states = HashMap::new();
        let of_oneshots = held.iter().flat_map(|holdings| &holdings.holdings.ends);
        let of_oneshots: HashMap<u64, u64> =
            of_oneshots.filter_map(|end| Some((end.block.start, end.state?))).collect();
        for lock in locks.values() {
            match lock.kind {
                SharedKind::Oneshot => {
                    let Some(state) = of_oneshots.get(&lock.address).copied() else { continue };
                    if values.pages.word(state).is_some_and(|now| now & VALUE_SENT == 0) {
                        states.insert(lock.address, state);
                        watched.words.insert(state);
                        watched.words.insert(lock.address);
                    }
                }
                SharedKind::Notify | SharedKind::EmptyChannel | SharedKind::Watch | SharedKind::Barrier => {}
                SharedKind::OtherMutex | SharedKind::BlockingMutex | SharedKind::BlockingRwLock => {
                    watched.words.insert(lock.address);
                }
                SharedKind::Mutex | SharedKind::RwLock | SharedKind::Semaphore | SharedKind::FullChannel => {
                    watched.semaphores.insert(lock.address);
                }
            }
        }
        let by_task = held.iter().enumerate().map(|(index, holdings)| (holdings.task, index)).collect();
        Certainty { drops, held, by_task, watched, states, counts, dropped: HashMap::new() }
    }

    /// The drop of a task, if its code is known.
    fn dropped(&mut self, task: usize) -> Option<&Dropped> {
        let Certainty { drops, held, by_task, watched, dropped, .. } = self;
        let find = || {
            let (function, address) = held[*by_task.get(&task)?].drop?;
            Some(drops.of(function, address, watched))
        };
        dropped.entry(task).or_insert_with(find).as_ref()
    }

    /// Whether a task certainly holds a lock, or certainly does not.
    fn holds(&mut self, task: usize, lock: &Lock) -> Option<bool> {
        let state = self.states.get(&lock.address).copied();
        let partial = self.partial(task, lock);
        let count = self.counts.get(&(lock.address, task)).copied();
        let is_waiter = lock.waiters.contains(&task);
        let dropped = self.dropped(task)?;
        let by_count = count.and_then(|(count, before)| match dropped.changes(count)? {
            Some(after) => (after < before).then_some(true),
            None => Some(false),
        });
        match lock.kind {
            _ if by_count == Some(true) => Some(true),
            // The receiver goes first, so that the sender sets nothing. With both, nothing is left.
            SharedKind::Oneshot if is_waiter => match dropped.changes(lock.address) {
                Some(Some(0)) => Some(true),
                Some(_) => Some(false),
                None => None,
            },
            SharedKind::EmptyChannel | SharedKind::Watch | SharedKind::Barrier | SharedKind::Notify => {
                by_count
            }
            SharedKind::FullChannel if count.is_some() => by_count,
            _ => holds(dropped, lock, state, partial),
        }
    }

    /// Permits of a lock with which a task waits for the others.
    fn partial(&self, task: usize, lock: &Lock) -> u64 {
        let needs = self.by_task.get(&task).map(|index| &self.held[*index].needs);
        let partial = needs.into_iter().flat_map(|needs| &needs.nodes).filter_map(|node| node.kind.partial());
        let of_lock = partial.filter(|(address, _)| *address == lock.address);
        of_lock.fold(0, |sum, (_, permits)| sum.saturating_add(permits))
    }

    /// The futures of tasks with branches that certainly hold something.
    fn holding_branches(&self, values: &Values<'_>, locks: &BTreeMap<u64, Lock>) -> HoldingBranches {
        let mut found = HoldingBranches::default();
        for lock in locks.values() {
            let state = self.states.get(&lock.address).copied();
            for holder in lock.holders.iter().filter(|holder| holder.is_certain) {
                let of_holder = self.by_task.get(&holder.task).map(|index| &self.held[*index]);
                let Some(TaskHoldings { needs, drop: Some((function, address)), holdings, .. }) = of_holder
                else {
                    continue;
                };
                let guards = holdings.guards.iter().filter(|held| held.address == lock.address);
                let guards: Vec<u64> = guards.map(|held| held.guard).collect();
                if !needs.may_be_stuck() {
                    continue;
                }
                let partial = self.partial(holder.task, lock);
                let branch = holding_branch::find(values, needs, &guards, &mut |patches| {
                    let dropped = self.drops.of_changed(*function, *address, &self.watched, patches);
                    holds(&dropped, lock, state, partial) == Some(true)
                });
                found.extend(branch.map(|branch| ((lock.address, holder.task), branch)));
            }
        }
        found
    }

    /// Number of permits of a lock that the drop of a task gives back.
    fn permits(&mut self, task: usize, lock: &Lock) -> u64 {
        let partial = self.partial(task, lock);
        self.dropped(task).map_or(0, |dropped| dropped.permits(lock.address).saturating_sub(partial))
    }

    fn apply(&mut self, locks: &mut BTreeMap<u64, Lock>, tasks: &[DumpedTask]) {
        for lock in locks.values_mut() {
            let mut holders = std::mem::take(&mut lock.holders);
            holders.retain_mut(|holder| {
                let holds = self.holds(holder.task, lock);
                holder.is_certain = holds == Some(true);
                holder.permits = self.permits(holder.task, lock);
                holds != Some(false)
            });
            lock.holders = holders;
            // A permit may have been given to a waiter that was not polled since.
            let woken = lock.waiters.iter().filter(|task| tasks[**task].state == TaskState::Ready);
            for task in woken.copied().collect::<Vec<_>>() {
                if !lock.holders.iter().any(|holder| holder.is_certain)
                    && self.holds(task, lock) == Some(true)
                {
                    lock.holders.retain(|holder| holder.task != task);
                    lock.holders.push(Holder {
                        task,
                        is_certain: true,
                        permits: self.permits(task, lock),
                        ..Holder::default()
                    });
                }
            }
        }
        self.search(locks);
        // A mutex has one holder, a channel one receiver.
        let of_one = [
            SharedKind::Mutex,
            SharedKind::OtherMutex,
            SharedKind::BlockingMutex,
            SharedKind::FullChannel,
            SharedKind::Oneshot,
        ];
        let has_one =
            |lock: &&mut Lock| of_one.contains(&lock.kind) && lock.ends.is_none_or(|ends| ends == 1);
        for lock in locks.values_mut().filter(has_one) {
            match lock.holders.iter().filter(|holder| holder.is_certain).count() {
                0 => {}
                1 => lock.holders.retain(|holder| holder.is_certain),
                // This cannot be.
                _ => lock.holders.iter_mut().for_each(|holder| holder.is_certain = false),
            }
        }
    }

    /// If the tasks that certainly have a notification or a barrier are all of its owners, nothing else has it: other variables were
    /// moved away. `waiting` are the counts of tasks that wait for it.
    fn leave_out_those_without(
        &mut self,
        values: &Values<'_>,
        locks: &mut BTreeMap<u64, Lock>,
        waiting: &Counts,
    ) {
        let is_shared = |lock: &&mut Lock| matches!(lock.kind, SharedKind::Notify | SharedKind::Barrier);
        for lock in locks.values_mut().filter(is_shared) {
            // Only the count of an `Arc` of this alone is that of its owners. A `Weak` can make more of them.
            let Some(count) = lock.address.checked_sub(ARC_DATA) else { continue };
            let word = |at: u64| values.pages.word(at);
            let (Some(strong), Some(1)) = (word(count), word(count + ARC_WEAK)) else { continue };
            let of_lock = |(of, task): &(u64, usize), (at, _): &(u64, u64)| {
                (*of == lock.address && *at == count).then_some(*task)
            };
            let tasks = self.counts.iter().chain(waiting).filter_map(|(of, at)| of_lock(of, at));
            let tasks: Vec<usize> = tasks.collect();
            let given_back = tasks.into_iter().filter_map(|task| {
                let after = self.dropped(task)?.changes(count)??;
                strong.checked_sub(after)
            });
            if given_back.sum::<u64>() == strong {
                lock.holders.retain(|holder| holder.is_certain);
                lock.ends = Some(lock.holders.len() as u64);
            }
        }
    }

    /// Looks for holders of locks that have none for certain, among all tasks. The other ends of channels that no task's variables
    /// have are looked for among tasks that cannot go on, and among receivers, which may have them in their queues.
    fn search(&mut self, locks: &mut BTreeMap<u64, Lock>) {
        let is_open = |lock: &Lock| !lock.holders.iter().any(|holder| holder.is_certain);
        let (held, by_task) = (self.held, &self.by_task);
        let may_be_stuck = |task: usize| by_task.get(&task).is_some_and(|at| held[*at].needs.may_be_stuck());
        // What is in the queue of a channel belongs to its receiver.
        let has_queue = |task: usize| {
            let of_task = by_task.get(&task).map(|at| &held[*at].holdings.ends);
            of_task.into_iter().flatten().any(|end| end.role == Role::Receiver && !end.is_shared)
        };
        let is_other_end = |lock: &Lock| matches!(lock.kind, SharedKind::FullChannel | SharedKind::Oneshot);
        let is_counted = |lock: &Lock| {
            use SharedKind::{Barrier, EmptyChannel, Notify, Watch};
            matches!(lock.kind, Notify | EmptyChannel | Watch | Barrier)
        };
        let open = locks.values().filter(|lock| !is_counted(lock) && is_open(lock));
        let (mut ends, mut others) = (false, false);
        open.for_each(|lock| if is_other_end(lock) { ends = true } else { others = true });
        let by_state: HashMap<u64, u64> = self.states.iter().map(|(lock, state)| (*state, *lock)).collect();
        let searched: Vec<usize> = self
            .held
            .iter()
            .map(|holdings| holdings.task)
            .filter(|task| others || ends && (may_be_stuck(*task) || has_queue(*task)))
            .take(MOST_SEARCHED)
            .collect();
        for task in searched {
            let Some(dropped) = self.dropped(task) else { continue };
            for address in dropped.addresses().collect::<Vec<_>>() {
                let address = by_state.get(&address).copied().unwrap_or(address);
                let has_several =
                    |lock: &Lock| matches!(lock.kind, SharedKind::RwLock | SharedKind::Semaphore);
                let lock = locks.get_mut(&address).filter(|lock| is_open(lock) || has_several(lock));
                let Some(lock) = lock else { continue };
                if !lock.holders.iter().any(|holder| holder.task == task)
                    && self.holds(task, lock) == Some(true)
                {
                    let permits = self.permits(task, lock);
                    lock.holders.push(Holder { task, is_certain: true, permits, ..Holder::default() });
                }
            }
        }
    }
}

/// Whether the drop of a task says that it holds something. `state` is the word of a oneshot channel's state, `partial` the number
/// of permits with which it waits for others.
fn holds(dropped: &Dropped, lock: &Lock, state: Option<u64>, partial: u64) -> Option<bool> {
    match lock.kind {
        SharedKind::Mutex | SharedKind::RwLock | SharedKind::Semaphore => {
            dropped.gives_back(lock.address, partial)
        }
        SharedKind::FullChannel => dropped.closes(lock.address),
        SharedKind::Oneshot => dropped.sets(state?, VALUE_SENT),
        SharedKind::OtherMutex | SharedKind::BlockingMutex => match dropped.changes(lock.address)? {
            Some(after) => (after & LOCKED == 0).then_some(true),
            None => Some(false),
        },
        SharedKind::BlockingRwLock => dropped.changes(lock.address).map(|after| after.is_some()),
        SharedKind::Notify | SharedKind::EmptyChannel | SharedKind::Watch | SharedKind::Barrier => None,
    }
}

/// Where mutexes have their semaphore: one offset for each type of protected data at most.
fn mutex_offsets(layouts: &Layouts) -> Vec<u64> {
    let mut offsets = Vec::new();
    for number in 0..layouts.len() {
        let layout = layouts.get(TypeId(number as u32));
        if is_generic(&layout.name, tokio::MUTEX)
            && let Some(offset) = offset(layouts, TypeId(number as u32), "s")
            && !offsets.contains(&offset)
        {
            offsets.push(offset);
        }
    }
    offsets
}

/// Where a semaphore has the number of its free permits.
fn permits_offset(layouts: &Layouts) -> Option<u64> {
    offset(layouts, layouts.by_name(tokio::SEMAPHORE)?, "permits")
}

fn field(layouts: &Layouts, type_id: TypeId, name: &str) -> Option<(u64, TypeId)> {
    let Shape::Struct(fields) = &layouts.get(type_id).shape else { return None };
    fields.iter().find(|field| &*field.name == name).map(|field| (field.offset, field.type_id))
}

fn offset(layouts: &Layouts, type_id: TypeId, name: &str) -> Option<u64> {
    field(layouts, type_id, name).map(|(offset, _)| offset)
}
