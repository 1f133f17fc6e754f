//! Asked polls: each waiting task is woken once, and that poll is traced. So the stack of a waiting task is known without types.
//!
//! A future that waits clones the waker that it is polled with, inside its innermost `poll`. In an asked poll this is a
//! tracing waker (`trace`): the native stack at the clone is the chain of futures. The clone itself is one of the executor's
//! waker. So nothing of ours outlives the poll, and wakes, drops and forks need no care. The tracing waker differs from all
//! others, so `will_wake` does not keep a future from cloning it.
//!
//! To be woken, a task keeps a clone of its waker ([`keep_wakers`]), which costs a comparison for each poll. By default it is off.
//! A question clones the waker under a spin lock of the task's slot; the polling thread takes the lock only to replace the
//! waker. Slots are in a mapping that is never unmapped, and wiped in a forked child.

mod trace;

use super::{Task, TaskPool, pool, pool_or_new};
use crate::{UNWINDER, system};
use core::mem::ManuallyDrop;
use core::ops::Range;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering::*};
use core::task::{RawWakerVTable, Waker};
use stackglass_wire::task::{ENTRIES, TaskText};
use std::collections::HashMap;
use std::time::{Duration, Instant};
pub use trace::{Stack, Tracing};

/// Not zero: polls keep wakers, and look whether they are asked.
static ON: AtomicU32 = AtomicU32::new(0);
static SLOTS: AtomicPtr<Slots> = AtomicPtr::new(core::ptr::null_mut());
/// Time between two looks at what was answered.
const LOOK: Duration = Duration::from_micros(500);

/// All zeros is empty, which is what a forked child sees.
#[repr(C)]
struct Slots {
    /// Number of the question that is open, 0 for none.
    open: AtomicU32,
    _line: [AtomicU32; 15],
    slots: [Slot; ENTRIES],
}

/// What asking needs of the task with the same number in the pool.
#[repr(C, align(32))]
struct Slot {
    /// 1 while a thread uses the waker.
    lock: AtomicU32,
    /// The question that the next poll answers, 0 for none.
    asked: AtomicU32,
    /// The task that keeps the waker.
    owner: AtomicU64,
    /// The waker's parts; without a vtable there is none.
    data: AtomicPtr<()>,
    vtable: AtomicPtr<RawWakerVTable>,
}

fn slots() -> Option<&'static Slots> {
    // SAFETY: null, or a mapping that is never unmapped and made of atomics.
    unsafe { SLOTS.load(Acquire).as_ref() }
}

/// From now on each task keeps a clone of the waker of its last poll. False without memory.
pub fn keep_wakers() -> bool {
    if pool_or_new().is_none() {
        return false;
    }
    if slots().is_none() {
        let at = system::map_private(size_of::<Slots>());
        if at.is_null() {
            return false;
        }
        // SAFETY: advice on the mapping just made.
        if unsafe { libc::madvise(at.cast(), size_of::<Slots>(), libc::MADV_WIPEONFORK) } != 0 {
            // A child could not be told apart. The mapping stays unused.
            return false;
        }
        // If two threads make slots at once, one mapping stays unused.
        let _ = SLOTS.compare_exchange(core::ptr::null_mut(), at.cast(), AcqRel, Acquire);
    }
    ON.store(1, Release);
    true
}

/// Whether tasks keep wakers. Polls must call `Task::begin_asked` then.
#[inline(always)]
pub fn keeps_wakers() -> bool {
    ON.load(Relaxed) != 0
}

/// Holds the lock of a slot.
struct Locked<'a>(&'a Slot);

impl Slot {
    fn lock(&self) -> Locked<'_> {
        // The holder only clones a waker, or exchanges two words.
        while self.lock.compare_exchange_weak(0, 1, Acquire, Relaxed).is_err() {
            std::thread::yield_now();
        }
        Locked(self)
    }
}

impl Locked<'_> {
    /// The waker, which stays in the slot.
    fn waker(&self) -> Option<ManuallyDrop<Waker>> {
        let (data, vtable) = (self.0.data.load(Relaxed), self.0.vtable.load(Relaxed));
        // SAFETY: the parts of a waker that was put here whole, and was not taken away. Vtables live for ever.
        unsafe { vtable.as_ref().map(|vtable| ManuallyDrop::new(Waker::new(data, vtable))) }
    }

    /// Puts another waker here, and returns the one before.
    fn replace(&self, waker: Option<Waker>, owner: u64) -> Option<Waker> {
        let before = self.waker().map(ManuallyDrop::into_inner);
        let (data, vtable) = match waker.map(ManuallyDrop::new) {
            Some(waker) => (waker.data().cast_mut(), core::ptr::from_ref(waker.vtable()).cast_mut()),
            None => (core::ptr::null_mut(), core::ptr::null_mut()),
        };
        self.0.owner.store(owner, Relaxed);
        self.0.data.store(data, Relaxed);
        self.0.vtable.store(vtable, Relaxed);
        before
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        self.0.lock.store(0, Release);
    }
}

impl Task {
    /// The task's slot, if the task is in the table.
    #[inline]
    fn slot(&self) -> Option<&'static Slot> {
        // In a forked child the entry may be that of another task.
        self.entry.filter(|entry| entry.id() == self.id)?;
        slots()?.slots.get((self.number as usize).wrapping_sub(1))
    }

    /// Keeps the waker. If the task is asked, puts the beginning of a trace into `tracing`, whose waker is to be polled with.
    ///
    /// `tracing` must be a local variable of the function that polls: stacks are traced up to it. If it gets a value, that value
    /// must be dropped or ended before `waker` ends.
    #[inline(never)]
    pub(super) fn begin_asked(&self, waker: &Waker, tracing: &mut Option<Tracing>) {
        let Some(slot) = self.slot() else { return };
        // The task around may be traced as well. Its tracing waker must not be kept.
        let real = trace::real(waker);
        // Nobody else changes the waker now, because this thread polls the task.
        let is_same = core::ptr::eq(slot.vtable.load(Relaxed), real.vtable())
            && core::ptr::eq(slot.data.load(Relaxed), real.data());
        if !is_same {
            let new = real.clone();
            let before = slot.lock().replace(Some(new), self.id);
            drop(before);
        }
        if slot.asked.load(Relaxed) == 0 {
            return;
        }
        let question = slot.asked.swap(0, AcqRel);
        if question == 0 || slots().is_none_or(|slots| slots.open.load(Acquire) != question) {
            return;
        }
        let limit = core::ptr::from_ref(tracing).addr() as u64;
        *tracing = Some(Tracing::begin(self.id, question, waker, limit));
    }

    /// Drops the waker that the task has kept.
    #[inline]
    pub(super) fn forget_waker(&self) {
        if keeps_wakers()
            && let Some(slot) = self.slot()
        {
            let before = {
                let locked = slot.lock();
                slot.asked.store(0, Relaxed);
                locked.replace(None, 0)
            };
            drop(before);
        }
    }
}

/// What a task said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Said {
    /// It was polled and still waits. The stacks are those of its waker's clones.
    Waits(Vec<Stack>),
    /// It has ended meanwhile.
    Ended,
    /// It keeps no waker: it was not polled since wakers are kept.
    NoWaker,
    /// It was not polled in time.
    NotPolled,
    /// It was polled all the time, or it asks: by the thread with this kernel id.
    Polled(u32),
}

/// A task that was asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// Its id.
    pub id: u64,
    /// Number of its entry.
    pub entry: u32,
    /// Its name.
    pub name: String,
    /// Where it was created; line 0 if that is not known.
    pub created: (String, u32),
    /// What it said.
    pub said: Said,
}

/// Why no task was asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotAsked {
    /// Wakers are not kept.
    Off,
    /// Another thread asks.
    Busy,
    /// There is no memory.
    NoMemory,
}

/// Asks all tasks, and waits for their answers until `limit` has passed.
///
/// Each waiting task is woken once. The thread must not be one that all tasks need to be polled.
///
/// # Errors
/// [`NotAsked`].
pub fn ask(limit: Duration) -> Result<Vec<Answer>, NotAsked> {
    static LAST: AtomicU32 = AtomicU32::new(0);
    let (Some(pool), Some(slots)) = (pool().filter(|_| keeps_wakers()), slots()) else {
        return Err(NotAsked::Off);
    };
    UNWINDER.refresh().map_err(|_| NotAsked::NoMemory)?;
    let question = LAST.fetch_add(1, Relaxed).wrapping_add(1).max(1);
    let begun = Instant::now();
    while slots.open.compare_exchange(0, question, AcqRel, Relaxed).is_err() {
        if begun.elapsed() > limit {
            return Err(NotAsked::Busy);
        }
        std::thread::sleep(LOOK);
    }
    // Late answers to an earlier question.
    drop(trace::take());
    let mut answers = request(pool, slots, question);
    wait(pool, &mut answers, question, begun + limit);
    // A task that has not answered is not traced later.
    for answer in answers.iter().filter(|answer| matches!(answer.said, Said::NotPolled | Said::Polled(_))) {
        let slot = &slots.slots[answer.entry as usize - 1];
        let _ = slot.asked.compare_exchange(question, 0, AcqRel, Relaxed);
    }
    slots.open.store(0, Release);
    Ok(answers)
}

/// Wakes all tasks that have a waker.
fn request(pool: &TaskPool, slots: &Slots, question: u32) -> Vec<Answer> {
    let own = system::thread_id();
    let mut answers = Vec::new();
    for number in 1..=pool.entries_used() {
        let Some(entry) = pool.entry(number) else { break };
        let id = entry.id();
        if id == 0 {
            continue;
        }
        let Some(text) = entry.text(id) else { continue };
        let (name, file) = texts(&text);
        let mut answer = Answer { id, entry: number, name, created: (file, text.line), said: Said::NoWaker };
        if pool.owner_of(entry) == Some(own) {
            answer.said = Said::Polled(own);
        } else {
            let slot = &slots.slots[number as usize - 1];
            let waker = {
                let locked = slot.lock();
                let waker = locked.waker().filter(|_| slot.owner.load(Relaxed) == id);
                if waker.is_some() {
                    slot.asked.store(question, Release);
                }
                waker.map(|waker| Waker::clone(&waker))
            };
            if let Some(waker) = waker {
                answer.said = Said::NotPolled;
                waker.wake();
            }
        }
        answers.push(answer);
    }
    answers
}

/// Name and path of a text.
fn texts(text: &TaskText) -> (String, String) {
    let bytes: Vec<u8> = text.words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let name = usize::from(text.name_len).min(bytes.len());
    let file = (name + usize::from(text.file_len)).min(bytes.len());
    let string = |bytes| String::from_utf8_lossy(bytes).into_owned();
    (string(&bytes[..name]), string(&bytes[name..file]))
}

/// A program or library of this process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoadedModule {
    /// Its addresses.
    pub range: Range<u64>,
    /// Address in memory minus address in the file.
    pub bias: u64,
    /// The linker's build id.
    pub build_id: Vec<u8>,
    /// Its path. The loader gives the main program none.
    pub path: Vec<u8>,
}

/// The modules in which stacks are.
pub fn modules() -> Vec<LoadedModule> {
    let Some(list) = UNWINDER.modules() else { return Vec::new() };
    let module = |module: &stackglass_unwind::Module| LoadedModule {
        range: module.range(),
        bias: module.bias(),
        build_id: module.build_id().to_vec(),
        path: list.path(module).to_vec(),
    };
    list.iter().map(module).collect()
}

/// Collects answers until all are there, or the time is over.
fn wait(pool: &TaskPool, answers: &mut [Answer], question: u32, until: Instant) {
    let is_open = |answer: &Answer| answer.said == Said::NotPolled;
    let mut open: HashMap<u64, usize> = answers
        .iter()
        .enumerate()
        .filter(|(_, answer)| is_open(answer))
        .map(|(at, answer)| (answer.id, at))
        .collect();
    while !open.is_empty() {
        for trace in trace::take().into_iter().filter(|trace| trace.question() == question) {
            if let Some(at) = open.remove(&trace.id()) {
                answers[at].said = trace.said();
            }
        }
        let is_over = Instant::now() >= until;
        open.retain(|_, at| {
            let answer = &mut answers[*at];
            match pool.entry(answer.entry).filter(|entry| entry.id() == answer.id) {
                None => answer.said = Said::Ended,
                Some(entry) if is_over => {
                    if let Some(tid) = pool.owner_of(entry) {
                        answer.said = Said::Polled(tid);
                    }
                }
                Some(_) => {}
            }
            is_open(answer)
        });
        if is_over {
            return;
        }
        if !open.is_empty() {
            std::thread::sleep(LOOK);
        }
    }
}

#[cfg(test)]
mod tests;
