//! Which threads of a process wait for which others.
//!
//! Only threads that sleep are read, where they stand: nothing is stopped or copied. The kernel tells the word or the file that a
//! thread waits for (`calls`), the names of its frames what that word belongs to (`lock_functions`), and the lock itself which thread
//! has it (`glibc`). Locks of Rust do not know their owner: a guard is looked for in all threads that sleep (`guards`).
//! Locks of files are in a list of the kernel (`file_locks`).
//!
//! A thread that has run meanwhile is left out. So the waits of all others are of one moment.

mod calls;
mod cleanups;
mod file_locks;
mod glibc;
mod guards;
mod lock_functions;
mod lock_state;

use crate::sleepers::Sleeper;
use crate::{core_image, named_frames};
use calls::Blocking;
use lock_functions::Waited;
use stackglass_attach::frozen::FrozenProcess;
use stackglass_process_view::core_image::CoreImage;
use stackglass_process_view::{ProcessView, Threads};
use stackglass_procfs::status::namespace_pids;
use stackglass_procfs::{process, threads};
use stackglass_profile::Frame;
use stackglass_profile::thread_waits::{
    HolderId, LockKind, ThreadHolder, ThreadTarget, ThreadWait, ThreadWaits,
};
use stackglass_symbols::Options;
use std::collections::HashMap;

/// Most threads that are read.
const MOST: usize = 10_000;
/// Most frames of a thread that are named.
const MOST_FRAMES: usize = 64;

/// The waits of the threads of a process for locks, files and the ends of threads. None, if its memory may not be read.
pub fn read(pid: u32, options: &Options) -> ThreadWaits {
    let sleepers: Vec<Sleeper> = process::program_threads(pid)
        .into_iter()
        .take(MOST)
        .filter_map(|tid| Sleeper::read(pid, tid))
        .collect();
    let mut waits = ThreadWaits::default();
    if sleepers.iter().any(|sleeper| Blocking::of(sleeper).is_some()) {
        waits.waits = of_sleepers(pid, &sleepers, options).unwrap_or_default();
    }
    waits.waits.sort_by_key(|wait| wait.tid);
    waits.find_deadlocks();
    waits
}

/// The address of the word that a thread waits for in futex(2).
pub(crate) fn word(sleeper: &Sleeper) -> Option<u64> {
    match Blocking::of(sleeper)? {
        Blocking::Futex(futex) => Some(futex.address),
        Blocking::File { .. } => None,
    }
}

fn of_sleepers(pid: u32, sleepers: &[Sleeper], options: &Options) -> Option<Vec<ThreadWait>> {
    let blocked: Vec<(&Sleeper, Blocking)> =
        sleepers.iter().filter_map(|sleeper| Some((sleeper, Blocking::of(sleeper)?))).collect();
    let threads = blocked.iter().map(|(sleeper, _)| sleeper.thread.clone()).collect();
    let process = FrozenProcess::of_sleepers(pid, threads).ok()?;
    let image = core_image::from_frozen(&process);
    let view = ProcessView::open(&image);
    let files = view.files();
    let Threads { frames, tids, .. } = view.threads();
    let lookups: Vec<Vec<u64>> = frames
        .iter()
        .map(|frames| frames.iter().take(MOST_FRAMES).map(|frame| frame.lookup).collect())
        .collect();
    let named: Vec<Vec<Frame>> = named_frames::of(&lookups, &view.modules, &files, options)
        .into_iter()
        .map(|frames| frames.into_iter().flatten().collect())
        .collect();
    let stacks: HashMap<u32, &[Frame]> = tids.iter().copied().zip(named.iter().map(Vec::as_slice)).collect();
    let reader = Reader { pid, image: &image, stacks, ids: OwnIds::read(pid) };
    let mut found: Vec<_> =
        blocked.iter().filter_map(|(sleeper, call)| Some((*sleeper, reader.wait(sleeper, *call)?))).collect();
    let by_guards = found.iter_mut().filter_map(|(_, found)| Some((&mut found.wait, found.guarded?)));
    let by_guards: Vec<_> = by_guards.collect();
    if !by_guards.is_empty() {
        guards::add_holders(pid, sleepers, by_guards, options);
    }
    let still = found.into_iter().filter(|(sleeper, _)| sleeper.is_still(pid));
    Some(still.map(|(_, found)| found.wait).collect())
}

/// A wait.
struct Found {
    wait: ThreadWait,
    /// It is for a lock whose holder is known by its guard.
    guarded: Option<guards::Guarded>,
}

/// Thread ids by those in the process's own namespace of pids, which are in its memory.
struct OwnIds(HashMap<u32, u32>);

impl OwnIds {
    fn read(pid: u32) -> OwnIds {
        let own = |tid: u32| (namespace_pids(tid).last().copied().unwrap_or(tid), tid);
        OwnIds(threads::list(pid).into_iter().map(own).collect())
    }
}

/// What is known of the process.
struct Reader<'a> {
    pid: u32,
    image: &'a CoreImage,
    /// The frames of threads that may wait for others, innermost first.
    stacks: HashMap<u32, &'a [Frame]>,
    ids: OwnIds,
}

impl Reader<'_> {
    /// What a thread waits for, if the other side is known.
    fn wait(&self, sleeper: &Sleeper, call: Blocking) -> Option<Found> {
        let tid = sleeper.thread.tid;
        let stack = self.stacks.get(&tid).copied().unwrap_or_default();
        let mut guarded = None;
        let (what, holders, has_timeout) = match call {
            Blocking::Futex(futex) => {
                let waited = lock_functions::waited(stack)?;
                let (target, holder) = match waited {
                    Waited::Mutex => self.lock(LockKind::Pthread, glibc::mutex(self.image, &futex)?),
                    Waited::RwLock => self.lock(LockKind::PthreadRwLock, glibc::rwlock(self.image, &futex)?),
                    Waited::Join => {
                        // The word of a thread that has ended is 0.
                        let joined = glibc::joined(self.image, &futex)?;
                        (ThreadTarget::End, Some(self.thread(*self.ids.0.get(&joined)?)))
                    }
                    Waited::Guarded { kind, is_parked, behind } => {
                        let address = futex.address.checked_sub(behind)?;
                        guarded = Some(guards::Guarded { kind, is_parked, address });
                        (ThreadTarget::Lock { kind, address }, None)
                    }
                };
                (target, holder.into_iter().collect(), futex.has_timeout)
            }
            Blocking::File { descriptor, kind } => {
                let (path, owner) = file_locks::owner(self.pid, descriptor, kind)?;
                let name = threads::name(owner, owner).unwrap_or_default().into();
                let who = HolderId::Process(owner);
                (
                    ThreadTarget::File { path },
                    vec![ThreadHolder { who, name, at: None, is_certain: true }],
                    false,
                )
            }
        };
        let at = lock_functions::caller(stack).cloned();
        let name = sleeper.thread.name.as_str().into();
        Some(Found { wait: ThreadWait { tid, name, what, at, has_timeout, holders }, guarded })
    }

    /// A lock, and the thread with this id in it.
    fn lock(&self, kind: LockKind, lock: glibc::Lock) -> (ThreadTarget, Option<ThreadHolder>) {
        let holder = lock.owner.map(|owner| match self.ids.0.get(&owner) {
            Some(tid) => self.thread(*tid),
            None => {
                ThreadHolder { who: HolderId::GoneThread(owner), name: "".into(), at: None, is_certain: true }
            }
        });
        (ThreadTarget::Lock { kind, address: lock.address }, holder)
    }

    fn thread(&self, tid: u32) -> ThreadHolder {
        let name = threads::name(self.pid, tid).unwrap_or_default().into();
        ThreadHolder { who: HolderId::Thread(tid), name, at: None, is_certain: true }
    }
}
