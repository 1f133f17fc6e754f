//! Which async task each thread polls: this copy's access to the process's [`TaskPool`].
//!
//! A program that uses the crate holds a [`Polling`] during each poll, sampled or not. It costs one access to a thread-local
//! and some stores. A thread takes a cell of the pool at its first poll and releases it when it ends.
//! Under `stackglass record` the process may have two copies of this code. Both then use the pool of the preload library
//! ([`TASKS_SYMBOL`]), because its sampler is the one that runs.
//!
//! The pool is wiped in a forked child. The child's thread then finds that its cell is no longer its own, and takes another.

use crate::{agent, system};
use core::cell::Cell;
use core::ffi::c_void;
use core::pin::Pin;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering::*, compiler_fence};
use core::task::{Context, Poll};
use stackglass_wire::TASKS_SYMBOL;
use stackglass_wire::task::Previous;
pub use stackglass_wire::task::{Polled, TaskCell, TaskEntry, TaskPool, TaskText};

static POOL: AtomicPtr<TaskPool> = AtomicPtr::new(core::ptr::null_mut());
static LAST_ID: AtomicU64 = AtomicU64::new(0);

/// The pool of this process, if there is one.
#[inline]
pub fn pool() -> Option<&'static TaskPool> {
    // SAFETY: null, or a mapping that is never unmapped and made of atomics.
    unsafe { POOL.load(Acquire).as_ref() }
}

/// The pool of this process: the preload library's, or a new one. `None` without memory.
pub fn pool_or_new() -> Option<&'static TaskPool> {
    pool().or_else(|| install(agents().or_else(map)?))
}

/// As [`pool_or_new`], for the preload library itself.
pub fn own_pool() -> Option<&'static TaskPool> {
    pool().or_else(|| install(map()?))
}

fn install(new: *mut TaskPool) -> Option<&'static TaskPool> {
    // If two threads make a pool at once, one pool stays unused.
    let _ = POOL.compare_exchange(core::ptr::null_mut(), new, AcqRel, Acquire);
    let pool = pool()?;
    pool.set_mark();
    Some(pool)
}

fn map() -> Option<*mut TaskPool> {
    let at = system::map_private(size_of::<TaskPool>());
    if at.is_null() {
        return None;
    }
    // SAFETY: advice on the mapping just made. Where it is refused (Linux before 4.14) nothing is sampled either.
    unsafe { libc::madvise(at.cast(), size_of::<TaskPool>(), libc::MADV_WIPEONFORK) };
    Some(at.cast())
}

/// The preload library's pool, if the library is in this process.
fn agents() -> Option<*mut TaskPool> {
    let agent = agent::symbol(TASKS_SYMBOL)?;
    // SAFETY: the symbol is a function of this type, and gives null or a pool of the version that its name says.
    let agent: extern "C" fn() -> *mut c_void = unsafe { core::mem::transmute(agent) };
    let pool: *mut TaskPool = agent().cast();
    (!pool.is_null()).then_some(pool)
}

/// A task's name, if this run of the sampler has not pushed it. To be called while the task is polled.
#[inline]
pub fn unsent_text(polled: Polled) -> Option<TaskText> {
    if polled.task == 0 {
        return None;
    }
    let pool = pool()?;
    pool.entry(polled.entry)?.unsent_text(polled.task, pool.run())
}

/// A task as its owner holds it: its id and its entry in the table. Dropping it removes the entry.
#[derive(Debug)]
pub struct Task {
    id: u64,
    entry: Option<&'static TaskEntry>,
    /// Number of the entry, 0 for none.
    number: u32,
    /// Odd while the task is polled. It lies beside the future, so that a copy of the process has both of the same moment. It is
    /// read from outside only.
    sequence: AtomicU32,
}

impl Task {
    /// A new task with this name, created at this place.
    pub fn new(name: &str, file: &str, line: u32) -> Task {
        let id = LAST_ID.fetch_add(1, Relaxed) + 1;
        let text = TaskText::new(name, file, line);
        let now = pool_or_new().filter(|pool| pool.is_timed()).map_or(0, |_| system::now());
        let number = pool().map_or(0, |pool| pool.register(id, &text, now));
        let entry = pool().and_then(|pool| pool.entry(number));
        Task { id, entry, number, sequence: AtomicU32::new(0) }
    }

    /// The task's future is about to be dropped: it must not be read any more. Only the thread that drops it may call this.
    #[inline]
    pub fn close(&self) {
        self.sequence.store(self.sequence.load(Relaxed) | 1, Relaxed);
        compiler_fence(SeqCst);
        if let Some(entry) = self.own_entry() {
            entry.close();
        }
    }

    /// The task's entry. In a forked child it may be that of another task.
    #[inline(always)]
    fn own_entry(&self) -> Option<&'static TaskEntry> {
        self.entry.filter(|entry| entry.id() == self.id)
    }

    /// Its id, unique in this process and never 0.
    pub fn id(&self) -> u64 {
        self.id
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if let Some(pool) = pool() {
            pool.unregister(self.id, self.number);
        }
    }
}

/// This thread's cell.
#[derive(Clone, Copy)]
struct Own {
    cell: &'static TaskCell,
    /// Its number, 0 for none.
    number: u32,
    /// The kernel id that the cell must hold.
    owner: u32,
}

static UNOWNED: TaskCell = TaskCell::unowned();
/// A kernel id that no thread has, so that the first check fails.
const NO_THREAD: u32 = u32::MAX;

thread_local! {
    // Without a destructor: a poll then pays no check for one, and the cell is valid until the thread has ended.
    static OWN: Cell<Own> = const { Cell::new(Own { cell: &UNOWNED, number: 0, owner: NO_THREAD }) };
    static LEAVER: Leaver = const { Leaver };
}

/// Releases the cell when the thread ends.
struct Leaver;

impl Drop for Leaver {
    fn drop(&mut self) {
        let own = OWN.get();
        // Polls in destructors that run later are not recorded.
        OWN.set(Own { cell: &UNOWNED, number: 0, owner: 0 });
        if own.number != 0 && own.cell.owner() == own.owner {
            own.cell.release();
        }
    }
}

/// A poll in progress. When it is dropped, the thread again polls what it polled before.
#[must_use = "the poll ends when this is dropped"]
pub struct Polling<'a> {
    task: &'a Task,
    begun: Begun,
}

/// The start of a poll, for [`Task::end`] on the same thread.
#[derive(Clone, Copy)]
pub struct Begun {
    own: Own,
    before: Previous,
}

impl Task {
    /// This thread polls the task until the result is dropped.
    #[inline(always)]
    pub fn poll(&self) -> Polling<'_> {
        Polling { task: self, begun: self.begin() }
    }

    /// Polls the task's future. Its address and type can be read from outside from now on.
    #[inline(always)]
    pub fn poll_future<F: Future>(&self, future: Pin<&mut F>, context: &mut Context<'_>) -> Poll<F::Output> {
        let _polling = self.poll();
        self.locate(&*future);
        future.poll(context)
    }

    /// Says where the future is, and by its vtable what it is.
    #[inline(always)]
    fn locate<F: Future>(&self, future: &F) {
        let Some(entry) = self.own_entry() else { return };
        let dynamic: *const dyn Future<Output = F::Output> = future;
        // SAFETY: the pointer to a trait object consists of two pointers, to the value and to the vtable. The words are only
        // read by others, which take them for what they may be.
        let [address, vtable] =
            unsafe { core::mem::transmute::<*const dyn Future<Output = F::Output>, [*const (); 2]>(dynamic) };
        entry.set_future(address.addr() as u64, vtable.addr() as u64);
    }

    /// This thread begins to poll the task. Polls must [end](Task::end) in the reverse order.
    #[inline(always)]
    pub fn begin(&self) -> Begun {
        let mut own = OWN.get();
        if own.cell.owner() != own.owner {
            claim();
            own = OWN.get();
        }
        let before = own.cell.enter(self.id, self.number);
        self.sequence.store(self.sequence.load(Relaxed) | 1, Relaxed);
        compiler_fence(SeqCst);
        if let Some(entry) = self.own_entry() {
            entry.begin(own.number);
        }
        Begun { own, before }
    }

    /// This thread ends a poll of the task.
    #[inline(always)]
    pub fn end(&self, begun: Begun) {
        if let Some(entry) = self.own_entry() {
            if pool().is_some_and(TaskPool::is_timed) {
                entry.set_since(system::now());
            }
            entry.end();
        }
        // All that the poll wrote precedes it.
        compiler_fence(SeqCst);
        self.sequence.store((self.sequence.load(Relaxed) | 1).wrapping_add(1), Relaxed);
        // In a child that was forked meanwhile the cell belongs to the parent.
        if begun.own.cell.owner() == begun.own.owner {
            begun.own.cell.leave(begun.before);
        }
    }
}

impl Drop for Polling<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.task.end(self.begun);
    }
}

#[cold]
#[inline(never)]
fn claim() {
    let owner = system::thread_id();
    let claimed = pool_or_new().and_then(|pool| pool.claim(owner));
    let own = match claimed {
        // A thread whose destructors have run could not release a cell.
        Some((cell, number)) if LEAVER.try_with(|_| ()).is_ok() => Own { cell, number, owner },
        Some((cell, _)) => {
            cell.release();
            Own { cell: &UNOWNED, number: 0, owner: 0 }
        }
        None => Own { cell: &UNOWNED, number: 0, owner: 0 },
    };
    OWN.set(own);
}
