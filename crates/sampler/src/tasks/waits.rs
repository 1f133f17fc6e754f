//! Questions for the await stacks of waiting tasks: the sampler's thread asks, and a thread of the crate answers.
//!
//! A tick that finds a task waiting puts a question into a ring, and wakes the answering thread. The question has the number of
//! the wait ([`TaskEntry::wait_of`]). The future may be read while [`Wait::future`] gives the same result: then it has not changed.
//!
//! The ring has one writer and one reader. If it is full, the wait gets no question, and so no stack.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};
use stackglass_host::system;
use stackglass_host::task::{self, Polled, TaskEntry};

/// Questions that may be open.
const ROOM: u64 = 4096;

/// A question for the await stack of a task that waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wait {
    /// Number of the question, from 1. The sample has it, too.
    pub number: u64,
    /// The task.
    pub task: u64,
    /// Number of its entry.
    entry: u32,
    /// Number of its wait.
    pub sequence: u64,
}

impl Wait {
    /// Address of the task's future and of its vtable, while the task is still in the same wait. Both are 0 before its first poll.
    pub fn future(&self) -> Option<(u64, u64)> {
        let entry = task::pool()?.entry(self.entry)?;
        let future = entry.future();
        (entry.wait_of(self.task) == Some(self.sequence)).then_some(future)
    }
}

/// A question, in words of its own.
struct Slot {
    task: AtomicU64,
    entry: AtomicU32,
    sequence: AtomicU64,
}

static SLOTS: [Slot; ROOM as usize] =
    [const { Slot { task: AtomicU64::new(0), entry: AtomicU32::new(0), sequence: AtomicU64::new(0) } };
        ROOM as usize];
/// Number of the last question.
static ASKED: AtomicU64 = AtomicU64::new(0);
/// Number of the last question that was taken.
static TAKEN: AtomicU64 = AtomicU64::new(0);
/// A thread answers.
static IS_ANSWERED: AtomicU32 = AtomicU32::new(0);
/// Changes with each question; the answering thread sleeps on it.
static CALLS: AtomicU32 = AtomicU32::new(0);

/// From now on, this thread answers questions, or nobody does.
pub fn answer(on: bool) {
    TAKEN.store(ASKED.load(Acquire), Release);
    IS_ANSWERED.store(on.into(), Release);
}

/// The next question. Sleeps until `until`, CLOCK_MONOTONIC ns, if there is none. For the answering thread.
pub fn next(until: u64) -> Option<Wait> {
    let calls = CALLS.load(Acquire);
    if TAKEN.load(Relaxed) == ASKED.load(Acquire) {
        system::sleep_until(&CALLS, calls, until);
    }
    let number = TAKEN.load(Relaxed) + 1;
    if number > ASKED.load(Acquire) {
        return None;
    }
    let slot = &SLOTS[(number % ROOM) as usize];
    let wait = Wait {
        number,
        task: slot.task.load(Relaxed),
        entry: slot.entry.load(Relaxed),
        sequence: slot.sequence.load(Relaxed),
    };
    TAKEN.store(number, Release);
    Some(wait)
}

/// Wakes the answering thread.
pub fn wake() {
    CALLS.fetch_add(1, Release);
    system::wake(&CALLS);
}

/// Asks for the stack of a task that waits. Returns the number of the question; `None` if nobody will answer. For the sampler.
pub(crate) fn ask(entry: &TaskEntry, polled: Polled) -> Option<u64> {
    if IS_ANSWERED.load(Acquire) == 0 {
        return None;
    }
    let sequence = entry.wait_of(polled.task)?;
    let number = ASKED.load(Relaxed) + 1;
    if number > TAKEN.load(Acquire) + ROOM {
        return None;
    }
    let slot = &SLOTS[(number % ROOM) as usize];
    slot.task.store(polled.task, Relaxed);
    slot.entry.store(polled.entry, Relaxed);
    slot.sequence.store(sequence, Relaxed);
    ASKED.store(number, Release);
    wake();
    Some(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackglass_host::task::Task;

    #[test]
    fn questions_come_in_order_and_only_while_they_are_answered() {
        let task = Task::new("waits", "f.rs", 7);
        let pool = task::pool().unwrap();
        let number = (1..=pool.entries_used())
            .find(|number| pool.entry(*number).is_some_and(|entry| entry.id() == task.id()))
            .unwrap();
        let (entry, polled) = (pool.entry(number).unwrap(), Polled { task: task.id(), entry: number });
        assert_eq!(ask(entry, polled), None, "nobody answers");
        answer(true);
        let first = ask(entry, polled).unwrap();
        let second = ask(entry, polled).unwrap();
        assert_eq!(second, first + 1);
        let wait = next(0).unwrap();
        assert_eq!((wait.number, wait.task), (first, task.id()));
        assert_eq!(wait.future(), Some((0, 0)));
        drop(task.poll());
        assert_eq!(wait.future(), None, "it waits for something else");
        assert_eq!(next(0).map(|wait| wait.number), Some(second));
        assert_eq!(next(0), None);
        // A full ring refuses.
        let asked = (0..=ROOM).filter(|_| ask(entry, polled).is_some()).count();
        assert_eq!(asked as u64, ROOM);
        // During a poll there is nothing to ask.
        answer(true);
        let polling = task.poll();
        assert_eq!(ask(entry, polled), None);
        drop(polling);
        answer(false);
        assert_eq!(ask(entry, polled), None);
    }
}
