//! The memory of each thread that allocates, found through its one word of thread-local storage.
//!
//! Threads have no destructor here, since the C library frees memory of a thread after the last one has run. Instead, a new thread
//! takes over the slot of a thread that has ended, which the kernel tells by its id.

use crate::commit::THREAD_REGION;
use crate::counters::Counters;
use crate::draw::Countdown;
use crate::nodes::NearNodes;
use crate::records::Log;
use crate::{peak, thread_pointer};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering::*};
use stackglass_host::{confined, system, task};
use stackglass_unwind::StackCache;
use stackglass_wire::heap::blocks::Reallocation;
use stackglass_wire::heap::{HeapTables, MAX_THREADS, ThreadEntry};
use stackglass_wire::task::{TaskCell, TaskPool};

/// Frames that are at most this far apart are on the same stack.
const SAME_STACK: usize = 1 << 20;
/// In [`Slot::last`]: none.
pub const NO_BLOCK: usize = !0;
/// Most slots at a time.
const SLOTS: usize = MAX_THREADS;
/// From this many threads on, a thread that takes over a slot shares the number of the thread before it.
const OWN_NUMBERS: u32 = 8192;
/// Slots that a new thread checks for one to take over.
const CHECKS: usize = 4;

/// The word of a thread that has no slot and gets none. While its slot is being made, the word is an address in the frame of
/// [`make`], plus one.
const NONE: usize = 1;

/// A thread's memory. All zeros is a new one.
#[repr(C)]
pub struct Slot {
    /// The block that it is reallocating. The first field: readers find it at the slot's address.
    pub reallocation: Reallocation,
    /// The thread's id.
    tid: AtomicU32,
    /// Its number in the table of threads.
    pub number: u32,
    /// An address in the stack frame of the recorder while it runs on this thread, else 0.
    pub busy: AtomicUsize,
    /// Change of live bytes that is not in the shared sum yet.
    pub pending: i64,
    /// The complement of the address of the last recorded block, and the countdown's position then. An address would look like a
    /// pointer that holds the block, in a heap snapshot.
    pub last: usize,
    /// See `last`.
    pub last_position: i64,
    /// Until the next recorded allocation.
    pub countdown: Countdown,
    /// Number of the recording in which the countdown alone decides what is left out, 0 for none.
    pub draws_for: u32,
    /// Its counters.
    pub counters: Counters,
    /// Number of the recording for which the countdown was drawn.
    pub session: u32,
    /// The pool's count of claimed cells when `task_cell` was searched.
    task_claims: u32,
    /// The cell in which this thread's polls of async tasks are noted.
    task_cell: Option<&'static TaskCell>,
    /// Nodes that it used lately.
    pub near: NearNodes,
    /// Its records.
    pub log: Log,
    /// Its last walk.
    pub cache: StackCache,
}

impl Slot {
    /// Makes a slot usable again in which any change may have been interrupted.
    #[cold]
    pub fn recover(&mut self) {
        self.counters.recover();
        self.near.forget();
        self.cache.forget();
    }

    /// The async task that this thread polls, 0 for none.
    #[inline(always)]
    pub fn task(&mut self) -> u64 {
        match task::pool() {
            Some(pool) => self.task_in(pool),
            None => 0,
        }
    }

    #[cold]
    fn task_in(&mut self, pool: &'static TaskPool) -> u64 {
        let tid = self.tid.load(Relaxed);
        if self.task_claims != pool.claims() {
            self.task_claims = pool.claims();
            self.task_cell = pool.cells().iter().find(|cell| cell.owner() == tid);
        }
        if self.counters.are_many() {
            return 0;
        }
        self.task_cell.map_or(0, |cell| cell.polled_by(tid).task)
    }
}

static ALL: [AtomicPtr<Slot>; SLOTS] = [const { AtomicPtr::new(core::ptr::null_mut()) }; SLOTS];
static COUNT: AtomicU32 = AtomicU32::new(0);
static NEXT_CHECK: AtomicU32 = AtomicU32::new(0);

/// For readers of this process: the addresses of the list of slots and of their number.
pub fn place() -> (u64, u64) {
    const { assert!(core::mem::offset_of!(Slot, reallocation) == 0) };
    ((&raw const ALL).addr() as u64, (&raw const COUNT).addr() as u64)
}

/// The slot of the calling thread, if it has one.
#[inline(always)]
pub fn current() -> Option<*mut Slot> {
    let word = thread_pointer::get();
    is_slot(word).then_some(word as *mut Slot)
}

#[inline(always)]
fn is_slot(word: usize) -> bool {
    word > NONE && word & 1 == 0
}

/// The slot of the calling thread, made now if it has none. `None` without memory, or while it is being made.
#[inline(always)]
pub fn current_or_new(tables: &HeapTables) -> Option<*mut Slot> {
    match thread_pointer::get() {
        word if is_slot(word) => Some(word as *mut Slot),
        NONE => None,
        word => make(tables, word),
    }
}

/// Whether the function with an address in `frame` has been left, seen from a function with an address in `here`. It has not if the
/// caller is a signal handler that interrupted it. Nor is that known without a system call.
pub fn has_left(frame: usize, here: usize) -> bool {
    !confined::is_confined()
        && (frame..frame.saturating_add(SAME_STACK)).contains(&here)
        && !is_on_alternate_stack()
}

fn is_on_alternate_stack() -> bool {
    let errno = system::errno();
    // SAFETY: all zeros is a value; the kernel fills it.
    let flags = unsafe {
        let mut stack: libc::stack_t = core::mem::zeroed();
        let none: *const libc::stack_t = core::ptr::null();
        libc::syscall(libc::SYS_sigaltstack, none, &raw mut stack);
        stack.ss_flags
    };
    system::set_errno(errno);
    flags & libc::SS_ONSTACK != 0
}

/// Takes the calling thread's slot away, so that nothing it allocates is recorded and no system call is made for it. Returns
/// what [`restore`] needs.
pub fn leave() -> usize {
    let word = thread_pointer::get();
    thread_pointer::set(NONE);
    word
}

/// Gives the calling thread its slot back.
pub fn restore(word: usize) {
    thread_pointer::set(word);
}

/// Whether the recorder runs on the calling thread: it was interrupted by a signal handler.
pub fn is_busy() -> bool {
    // SAFETY: the slot of this thread.
    current().is_some_and(|slot| unsafe { &(*slot).busy }.load(Relaxed) != 0)
}

/// In a forked child: the slots are copies, which are left.
pub fn after_fork() {
    thread_pointer::set(0);
    for place in &ALL[..(COUNT.swap(0, AcqRel) as usize).min(SLOTS)] {
        place.store(core::ptr::null_mut(), Release);
    }
}

#[cold]
#[inline(never)]
fn make(tables: &HeapTables, word: usize) -> Option<*mut Slot> {
    let marker = 0u8;
    let here = (&raw const marker).addr();
    // What a signal handler allocates while the slot is being made has no slot. If it has jumped out of here, that frame is
    // below or the same.
    let is_being_made = word != 0 && !has_left(word & !1, here);
    if confined::is_confined() || is_being_made {
        return None;
    }
    let _calls = confined::calls()?;
    thread_pointer::set(here | 1);
    let errno = system::errno();
    let slot = take_over(tables).or_else(|| add(tables));
    system::set_errno(errno);
    thread_pointer::set(slot.map_or(NONE, |slot| slot.addr()));
    slot
}

/// A slot whose thread has ended.
fn take_over(tables: &HeapTables) -> Option<*mut Slot> {
    let count = COUNT.load(Acquire).min(SLOTS as u32);
    let own = system::thread_id();
    for _ in 0..CHECKS.min(count as usize) {
        let index = NEXT_CHECK.fetch_add(1, Relaxed) % count;
        let slot = ALL[index as usize].load(Acquire);
        if slot.is_null() {
            continue;
        }
        // SAFETY: slots are never unmapped; the id is atomic.
        let tid = unsafe { &(*slot).tid };
        let was = tid.load(Acquire);
        if (was != own && system::is_thread(was)) || tid.compare_exchange(was, own, AcqRel, Relaxed).is_err()
        {
            continue;
        }
        // SAFETY: its thread has ended, and no other thread can take it over now.
        let fields = unsafe { &mut *slot };
        fields.busy.store(0, Relaxed);
        fields.reallocation.not_address.store(0, Relaxed);
        fields.last = NO_BLOCK;
        (fields.session, fields.draws_for) = (0, 0);
        fields.task_claims = 0;
        fields.task_cell = None;
        if tables.page().threads.load(Relaxed) < OWN_NUMBERS
            && let Some(number) = register(tables, own)
        {
            fields.number = number;
            fields.counters.forget();
        }
        if !fields.counters.begin(tables, fields.number) {
            tid.store(u32::MAX, Release);
            return None;
        }
        return Some(slot);
    }
    None
}

/// A new slot.
fn add(tables: &HeapTables) -> Option<*mut Slot> {
    if COUNT.load(Relaxed) as usize >= SLOTS {
        return None;
    }
    let slot: *mut Slot = system::map_private(size_of::<Slot>()).cast();
    if slot.is_null() {
        return None;
    }
    // Forked children get a copy: those of a raw clone reach it before they know what they are.
    // SAFETY: advice on the mapping just made; all zeros is a slot, which this thread alone knows.
    let fields = unsafe {
        libc::madvise(slot.cast(), size_of::<Slot>(), libc::MADV_NOHUGEPAGE);
        &mut *slot
    };
    let tid = system::thread_id();
    fields.tid.store(tid, Relaxed);
    let number = register(tables, tid);
    let ready = number.is_some_and(|number| {
        fields.number = number;
        fields.counters.begin(tables, number)
    });
    let place = if ready { COUNT.fetch_add(1, AcqRel) as usize } else { SLOTS };
    if place >= SLOTS {
        // SAFETY: nothing refers to it.
        unsafe { system::munmap(slot.cast(), size_of::<Slot>()) };
        return None;
    }
    ALL[place].store(slot, Release);
    peak::thread_added(tables);
    Some(slot)
}

/// A number for a thread.
fn register(tables: &HeapTables, tid: u32) -> Option<u32> {
    let reserved = tables.page().threads.fetch_update(AcqRel, Acquire, |number| {
        let end = number as usize + 2;
        let fits = end <= MAX_THREADS && THREAD_REGION.reserve(tables, end * size_of::<ThreadEntry>());
        fits.then_some(number + 1)
    });
    let number = reserved.ok()? + 1;
    let entry = tables.thread(number);
    entry.tid.store(tid, Relaxed);
    entry.first_ns.store(system::now(), Release);
    Some(number)
}

/// Calls `each` with every slot. Other threads may use theirs meanwhile.
pub fn for_each(each: &mut dyn FnMut(*mut Slot)) {
    for place in &ALL[..(COUNT.load(Acquire) as usize).min(SLOTS)] {
        let slot = place.load(Acquire);
        if !slot.is_null() {
            each(slot);
        }
    }
}

/// Waits until no thread is inside the recorder, or until the clock is at `until`. New calls must have been turned off before.
pub fn wait_for_all(until: u64) {
    let own = current().map_or(0, |slot| slot.addr());
    for place in &ALL[..(COUNT.load(Acquire) as usize).min(SLOTS)] {
        let slot = place.load(Acquire);
        if slot.is_null() || slot.addr() == own {
            continue;
        }
        // SAFETY: slots are never unmapped; both fields are atomic.
        let (busy, tid) = unsafe { (&(*slot).busy, &(*slot).tid) };
        while busy.load(Acquire) != 0 && system::is_thread(tid.load(Relaxed)) && system::now() < until {
            // SAFETY: no arguments.
            unsafe { libc::sched_yield() };
        }
    }
}
