//! Who has a lock of Rust: the thread with a guard of it.
//!
//! The code that would drop what a frame has tells whether it has a guard (`cleanups`). Where that is not known, a guard in a variable
//! says so: debug information describes variables that were moved away as well, as by `drop(guard)`, so such a holder is only probable.
//! A thread that waits for a condition variable has given back the lock whose guard it was given.

use super::cleanups::{self, Cleanups, Held};
use super::lock_functions;
use super::lock_state::LockState;
use crate::sleepers::Sleeper;
use crate::{core_image, named_frames};
use stackglass_attach::frozen::FrozenProcess;
use stackglass_awaits::{Process, VariableGuard};
use stackglass_layouts::{Layouts, Shape, TypeId, Wanted};
use stackglass_process_view::core_image::CoreImage;
use stackglass_process_view::modules::is_glibc;
use stackglass_process_view::pages::Pages;
use stackglass_process_view::stacks::StackFrame;
use stackglass_process_view::{ProcessView, Threads};
use stackglass_profile::Frame;
use stackglass_profile::frame::file_name;
use stackglass_profile::runtimes::parking_lot;
use stackglass_profile::task_dump::SharedKind;
use stackglass_profile::thread_waits::{HolderId, LockKind, ThreadHolder, ThreadTarget, ThreadWait};
use stackglass_symbols::Options;
use std::collections::HashMap;

/// Bytes of a lock for readers and writers.
const RW_LOCK_BYTES: u64 = 8;

/// A lock whose holder is known by its guard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Guarded {
    pub kind: LockKind,
    /// The thread waits for a word of its own, in a queue of parking_lot.
    pub is_parked: bool,
    /// The word of the lock's state, or that one.
    pub address: u64,
}

/// Adds the holders to waits.
pub(super) fn add_holders(
    pid: u32,
    sleepers: &[Sleeper],
    waits: Vec<(&mut ThreadWait, Guarded)>,
    options: &Options,
) {
    let threads = sleepers.iter().map(|sleeper| sleeper.thread.clone()).collect();
    let Ok(process) = FrozenProcess::of_sleepers(pid, threads) else { return };
    let image = core_image::from_frozen(&process);
    let view = ProcessView::open(&image);
    let files = view.files();
    let Threads { frames, tids, .. } = view.threads();
    let (layouts, locals) = view.layouts_and_locals(&files, options, &frames, Wanted::Coroutines);
    let read = Process {
        image: &image,
        modules: &view.modules,
        layouts: &layouts,
        locals: &locals,
        tids: &tids,
        wrapped: &[],
    };
    let guards = stackglass_awaits::guards_of_variables(&read);
    // Without its type, the address of a lock of parking_lot is not known, and that of the word says nothing.
    let address = |guarded: &Guarded| match guarded.is_parked {
        true => key(&layouts, guarded.address).and_then(|key| image.word(key)).map(|key| key & !1),
        false => Some(guarded.address),
    };
    let mut locks: Vec<LockState> = Vec::new();
    let mut waiting: Vec<(&mut ThreadWait, usize)> = Vec::new();
    for (wait, guarded) in waits {
        let Some(address) = address(&guarded) else { continue };
        wait.what = ThreadTarget::Lock { kind: guarded.kind, address };
        let lock = LockState { kind: guarded.kind, is_of_parking_lot: guarded.is_parked, address };
        let known = locks.iter().position(|other| *other == lock);
        waiting.push((wait, known.unwrap_or(locks.len())));
        if known.is_none() {
            locks.push(lock);
        }
    }
    let pages = Pages::new(&image);
    let cleanups = cleanups::of(&pages, &layouts, &view.modules, &frames, &locks);
    let is_holding = |thread: &usize| {
        guards.iter().any(|guard| guard.thread == *thread)
            || cleanups.held.iter().any(|held| held.thread == *thread)
    };
    let with_guards: Vec<usize> = (0..tids.len()).filter(is_holding).collect();
    let lookups: Vec<Vec<u64>> = with_guards
        .iter()
        .map(|thread| frames[*thread].iter().map(|frame: &StackFrame| frame.lookup).collect())
        .collect();
    let named = named_frames::of(&lookups, &view.modules, &files, options);
    let by_tid: HashMap<u32, &Sleeper> =
        sleepers.iter().map(|sleeper| (sleeper.thread.tid, sleeper)).collect();
    let mut holding: Vec<Holding<'_>> = Vec::new();
    for (thread, named) in with_guards.into_iter().zip(&named) {
        let Some(sleeper) = by_tid.get(&tids[thread]) else { continue };
        let given = given_back(&image, &layouts, sleeper, named);
        let of_thread =
            OfThread { thread, named, guards: &guards, cleanups: &cleanups, locks: &locks, given };
        let found = of_thread.holds().into_iter();
        holding.extend(found.map(|(lock, at, is_certain)| Holding { sleeper, lock, at, is_certain }));
    }
    let all_waiting = |lock: usize| -> Vec<u32> {
        waiting.iter().filter(|(_, other)| *other == lock).map(|(wait, _)| wait.tid).collect()
    };
    let all_waiting: Vec<Vec<u32>> = (0..locks.len()).map(all_waiting).collect();
    for (wait, lock) in waiting {
        // Nobody has a lock that is free: the thread is about to wake.
        let Some(word) = pages.word(locks[lock].word()).filter(|word| !locks[lock].is_free(*word)) else {
            continue;
        };
        let found = holding.iter().filter(|holding| holding.lock == lock && holding.sleeper.is_still(pid));
        wait.holders = among(found.collect(), locks[lock].count(word), &all_waiting[lock]);
    }
}

/// A thread that has a lock, or probably has it.
struct Holding<'a> {
    sleeper: &'a Sleeper,
    /// Index of the lock.
    lock: usize,
    at: Option<Frame>,
    is_certain: bool,
}

/// The holders of a lock for which a thread waits, of which so many can have it. `all_waiting` are all threads that wait for it.
fn among(mut found: Vec<&Holding<'_>>, count: u64, all_waiting: &[u32]) -> Vec<ThreadHolder> {
    let certain = found.iter().filter(|holding| holding.is_certain).count() as u64;
    if certain >= count {
        found.retain(|holding| holding.is_certain);
    }
    let are_too_many = certain > count;
    let holder = |holding: &Holding<'_>| ThreadHolder {
        who: HolderId::Thread(holding.sleeper.thread.tid),
        name: holding.sleeper.thread.name.as_str().into(),
        at: holding.at.clone(),
        is_certain: holding.is_certain && !are_too_many,
    };
    let mut holders: Vec<ThreadHolder> = found.into_iter().map(holder).collect();
    // A thread that has given the lock back, and waits for it again, still has the variable.
    let is_other = |holder: &ThreadHolder| all_waiting.iter().all(|tid| holder.who != HolderId::Thread(*tid));
    if holders.iter().any(is_other) {
        holders.retain(|holder| holder.is_certain || is_other(holder));
    }
    holders
}

/// What a thread that waits for a condition variable has given back.
enum Given {
    /// It does not wait for one.
    Nothing,
    /// What its frames up to this one would give back, which the condition variable was given by value.
    Frames(usize),
    /// The lock at one of these addresses.
    Lock([u64; 2]),
    /// It is not known which lock.
    Any,
}

/// What a thread with these frames has given to a condition variable.
fn given_back(image: &CoreImage, layouts: &Layouts, sleeper: &Sleeper, named: &[Vec<Frame>]) -> Given {
    let waits = |frames: &Vec<Frame>| frames.iter().any(lock_functions::gives_back);
    let Some(waiting) = named.iter().rposition(waits) else { return Given::Nothing };
    let of_std = named[waiting].iter().all(|frame| !frame.func.starts_with("parking_lot"));
    if of_std {
        // The caller may have the rest of the function that was given the guard, without a name.
        let is_inner = named[waiting].last().is_some_and(|frame| frame.func.starts_with("std::sys"));
        return Given::Frames(waiting + usize::from(is_inner));
    }
    // It was given a reference to the guard. A condition variable of parking_lot has the address of the lock (`src/condvar.rs`), and
    // the thread that of the condition variable. When it is woken, it may wait for the lock itself.
    let key = super::word(sleeper).and_then(|word| image.word(key(layouts, word)?));
    match key.and_then(|key| Some([key, image.word(key)?])) {
        Some(addresses) => Given::Lock(addresses),
        None => Given::Any,
    }
}

/// A thread, and what is known of it.
struct OfThread<'a> {
    thread: usize,
    named: &'a [Vec<Frame>],
    guards: &'a [VariableGuard],
    cleanups: &'a Cleanups,
    locks: &'a [LockState],
    given: Given,
}

impl OfThread<'_> {
    /// The locks that it has, where, and whether that is certain. Each lock once.
    fn holds(&self) -> Vec<(usize, Option<Frame>, bool)> {
        let mut found: Vec<(usize, Option<Frame>, bool)> = Vec::new();
        let held = |held: &&Held| {
            held.thread == self.thread
                && !self.is_given(held.lock)
                && (held.calls_rust || self.calls_rust(held.frame))
        };
        for held in self.cleanups.held.iter().filter(held) {
            match found.iter_mut().find(|(lock, ..)| *lock == held.lock) {
                Some((.., is_certain)) => *is_certain |= held.is_certain,
                None => found.push((held.lock, self.place(held.frame), held.is_certain)),
            }
        }
        let of_thread = self.guards.iter().copied().filter(|guard| guard.thread == self.thread).collect();
        for guard in held_by_variables(of_thread, self.named) {
            let lock = self.locks.iter().position(|lock| is_of_lock(&guard, lock));
            if let Some(lock) = lock.filter(|lock| found.iter().all(|(other, ..)| other != lock))
                && !self.cleanups.lent.contains(&(self.thread, lock))
                && !self.drops_nothing_else(guard.frame)
            {
                found.push((lock, self.place(guard.frame), false));
            }
        }
        found
    }

    /// Whether the thread has given a lock back, although a frame would do that again.
    fn is_given(&self, lock: usize) -> bool {
        if self.cleanups.lent.contains(&(self.thread, lock)) {
            return true;
        }
        match self.given {
            Given::Nothing => false,
            Given::Frames(last) => self
                .cleanups
                .held
                .iter()
                .any(|held| (held.thread, held.lock) == (self.thread, lock) && held.frame <= last),
            Given::Lock(addresses) => addresses.contains(&self.locks[lock].address),
            Given::Any => true,
        }
    }

    /// Whether all is known that a frame would drop. A function of C cannot unwind, so that the table need not name its calls.
    fn drops_nothing_else(&self, frame: usize) -> bool {
        self.cleanups.known.contains(&(self.thread, frame))
            || self.cleanups.empty.contains(&(self.thread, frame)) && self.calls_rust(frame)
    }

    fn calls_rust(&self, frame: usize) -> bool {
        let callee = frame.checked_sub(1).and_then(|callee| self.named.get(callee)?.last());
        callee.is_some_and(|callee| callee.func.contains("::"))
    }

    /// The innermost frame of the program's own code that is in a frame or around it.
    fn place(&self, frame: usize) -> Option<Frame> {
        let around: Vec<Frame> = self.named.get(frame..)?.iter().flatten().cloned().collect();
        // A thread without code of its own begins in the C library.
        lock_functions::caller(&around).filter(|frame| !is_glibc(file_name(&frame.module))).cloned()
    }
}

fn is_of_lock(guard: &VariableGuard, lock: &LockState) -> bool {
    match lock.kind {
        LockKind::Mutex => guard.kind == SharedKind::BlockingMutex && guard.address == lock.address,
        _ => {
            guard.kind == SharedKind::BlockingRwLock
                && (guard.address..guard.address.saturating_add(RW_LOCK_BYTES)).contains(&lock.address)
        }
    }
}

/// The guards of a thread without those that it has given to a condition variable.
fn held_by_variables(guards: Vec<VariableGuard>, named: &[Vec<Frame>]) -> Vec<VariableGuard> {
    let waits = |frames: &Vec<Frame>| frames.iter().any(lock_functions::gives_back);
    let Some(waiting) = named.iter().rposition(waits) else { return guards };
    let given: Vec<u64> =
        guards.iter().filter(|guard| guard.frame <= waiting).map(|guard| guard.address).collect();
    match given.is_empty() {
        // Any of them may be the one.
        true => Vec::new(),
        false => guards.into_iter().filter(|guard| !given.contains(&guard.address)).collect(),
    }
}

/// Where a thread of parking_lot that waits for this word has the address of its lock.
fn key(layouts: &Layouts, word: u64) -> Option<u64> {
    let data = layouts.by_name(parking_lot::THREAD_DATA)?;
    let field = |type_id: TypeId, name: &str| {
        let Shape::Struct(fields) = &layouts.get(type_id).shape else { return None };
        fields.iter().find(|field| &*field.name == name).map(|field| (field.offset, field.type_id))
    };
    let (parker, parker_type) = field(data, parking_lot::WORD[0])?;
    let (futex, _) = field(parker_type, parking_lot::WORD[1])?;
    word.checked_sub(parker + futex)?.checked_add(field(data, parking_lot::KEY)?.0)
}
