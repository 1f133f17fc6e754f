//! Who has a lock of Rust: the thread with a guard of it in a variable.
//!
//! Debug information describes variables that were moved away as well, as by `drop(guard)`. So a holder is only probable. A thread that
//! waits for a condition variable has given back the lock whose guard it was given.

use super::lock_functions;
use crate::sleepers::Sleeper;
use crate::{core_image, named_frames};
use stackglass_attach::frozen::FrozenProcess;
use stackglass_awaits::{Process, VariableGuard};
use stackglass_layouts::{Layouts, Shape, TypeId, Wanted};
use stackglass_process_view::stacks::StackFrame;
use stackglass_process_view::{ProcessView, Threads};
use stackglass_profile::Frame;
use stackglass_profile::runtimes::parking_lot;
use stackglass_profile::task_dump::SharedKind;
use stackglass_profile::thread_waits::{HolderId, LockKind, ThreadHolder, ThreadTarget, ThreadWait};
use stackglass_symbols::Options;

/// Bytes of a lock for readers and writers: those wait for words of their own.
const RW_LOCK_BYTES: u64 = 8;

/// A lock whose holder is known by its guard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Guarded {
    pub kind: LockKind,
    /// The thread waits for a word of its own, in a queue of parking_lot.
    pub is_parked: bool,
    /// The word that it waits for.
    pub word: u64,
}

/// Adds the probable holders to waits.
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
    let with_guards: Vec<usize> =
        (0..tids.len()).filter(|thread| guards.iter().any(|guard| guard.thread == *thread)).collect();
    let lookups: Vec<Vec<u64>> = with_guards
        .iter()
        .map(|thread| frames[*thread].iter().map(|frame: &StackFrame| frame.lookup).collect())
        .collect();
    let named = named_frames::of(&lookups, &view.modules, &files, options);
    let mut holding: Vec<(&Sleeper, VariableGuard, Option<Frame>)> = Vec::new();
    for (thread, named) in with_guards.into_iter().zip(&named) {
        let of_thread: Vec<VariableGuard> =
            guards.iter().copied().filter(|guard| guard.thread == thread).collect();
        let Some(sleeper) = sleepers.iter().find(|sleeper| sleeper.thread.tid == tids[thread]) else {
            continue;
        };
        for guard in held(&of_thread, named) {
            let at = named.get(guard.frame).and_then(|frames| frames.last()).cloned();
            holding.push((sleeper, guard, at));
        }
    }
    for (wait, guarded) in waits {
        let address = match guarded.is_parked {
            true => key(&layouts, guarded.word).and_then(|key| image.word(key)).map(|key| key & !1),
            false => Some(guarded.word),
        };
        // Without its type, the address of the lock is not known, and that of the word says nothing.
        let Some(address) = address else { continue };
        wait.what = ThreadTarget::Lock { kind: guarded.kind, address };
        let is_of_lock = |guard: &VariableGuard| match guarded.kind {
            LockKind::Mutex => guard.kind == SharedKind::BlockingMutex && guard.address == address,
            _ => {
                guard.kind == SharedKind::BlockingRwLock
                    && (guard.address..guard.address.saturating_add(RW_LOCK_BYTES)).contains(&address)
            }
        };
        let mut holders: Vec<ThreadHolder> = Vec::new();
        for (sleeper, _, at) in holding.iter().filter(|(_, guard, _)| is_of_lock(guard)) {
            let who = HolderId::Thread(sleeper.thread.tid);
            if sleeper.is_still(pid) && !holders.iter().any(|holder| holder.who == who) {
                let name = sleeper.thread.name.as_str().into();
                holders.push(ThreadHolder { who, name, at: at.clone(), is_certain: false });
            }
        }
        // A thread that has given the lock back, and waits for it again, still has the variable.
        let is_other = |holder: &ThreadHolder| holder.who != HolderId::Thread(wait.tid);
        if holders.iter().any(is_other) {
            holders.retain(is_other);
        }
        wait.holders = holders;
    }
}

/// The guards of a thread without those that it has given to a condition variable.
fn held(guards: &[VariableGuard], named: &[Vec<Frame>]) -> Vec<VariableGuard> {
    let waits = |frames: &Vec<Frame>| frames.iter().any(lock_functions::gives_back);
    let Some(waiting) = named.iter().rposition(waits) else { return guards.to_vec() };
    let given: Vec<u64> =
        guards.iter().filter(|guard| guard.frame <= waiting).map(|guard| guard.address).collect();
    match given.is_empty() {
        // Any of them may be the one.
        true => Vec::new(),
        false => guards.iter().copied().filter(|guard| !given.contains(&guard.address)).collect(),
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
