//! The recorder: what hooks and allocators call, and how a recording starts and stops.

use crate::blocks::{self, Block, Granule};
use crate::commit::{self, InFolder, TablesError};
use crate::counters::{self, Key};
use crate::draw::{self, Sampling, Weight};
use crate::slots::{self, Slot};
use crate::{barrier, modules, nodes, peak, records};
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering::*, compiler_fence};
use stackglass_host::stream_memory::Refused;
use stackglass_host::{UNWINDER, confined, fork_guard, system};
use stackglass_unwind::stack_cache::{CachedWalk, Start};
use stackglass_unwind::walk::Cut;
use stackglass_wire::heap::{HEAP_BYTES, HeapTables, is_mapping_class, size_class};

/// What was allocated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Kind {
    /// A block of an allocator.
    Block = 0,
    /// An anonymous mapping of the program itself.
    Mapping = 1,
}

/// Where the tables lie.
#[derive(Clone, Copy)]
pub enum Memory<'a> {
    /// A file of a session folder.
    Session(InFolder<'a>),
    /// Private memory, for a reader in the same process.
    Private,
}

static TABLES: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());
/// Number of the recording, 0 before the first; threads draw a new countdown for each.
static SESSION: AtomicU32 = AtomicU32::new(0);
/// Instead of a number: threads that enter now leave at once.
const STOPPED: u32 = u32::MAX;

/// The tables of this process, if it has some.
#[inline(always)]
pub fn tables() -> Option<HeapTables> {
    let base = TABLES.load(Acquire);
    // SAFETY: null, or the base of tables that are never unmapped.
    (!base.is_null()).then(|| unsafe { HeapTables::at(base) })
}

/// Whether this process has tables.
pub fn is_prepared() -> bool {
    tables().is_some()
}

/// Creates the tables and lists the modules. Nothing is recorded before [`start`]. Not for two threads at once.
///
/// # Errors
/// [`TablesError`] if a file cannot be made, or without memory.
pub fn prepare(memory: Memory<'_>, granule: Granule) -> Result<HeapTables, TablesError> {
    if let Some(tables) = tables() {
        return Ok(tables);
    }
    let no_memory = Refused { step: "getting memory", errno: libc::ENOMEM };
    if !fork_guard::is_sampled() && !fork_guard::arm() {
        return Err(Refused {
            step: "a page that forked children do not get (Linux 4.14)",
            errno: libc::EINVAL,
        });
    }
    let tables = commit::create(match memory {
        Memory::Session(folder) => Some(folder),
        Memory::Private => None,
    })?;
    if !blocks::prepare(granule) || !nodes::prepare(&tables) {
        return Err(no_memory);
    }
    modules::update(&tables);
    let page = tables.page();
    page.pid.store(system::process_id(), Relaxed);
    let (last_leaf, shift) = blocks::place();
    page.last_leaf.store(last_leaf, Relaxed);
    page.granule_shift.store(shift, Relaxed);
    let (slots, count) = slots::place();
    page.reallocations.store(slots, Relaxed);
    page.reallocation_count.store(count, Relaxed);
    let (own_memory, entries) = system::own_memory::place();
    page.own_memory.store(own_memory, Relaxed);
    page.own_memory_entries.store(entries, Relaxed);
    TABLES.store(tables.base(), Release);
    page.publish();
    Ok(tables)
}

/// Begins the recording with this number, which must not be 0. Counts and live blocks of earlier recordings are forgotten.
/// The caller then turns the calls of [`allocated`] on.
pub fn start(sampling: Sampling, number: u32) {
    let Some(tables) = tables() else { return };
    if SESSION.load(Acquire) != 0 {
        // Frees were not seen since then: the live blocks are not known any more.
        blocks::forget();
        counters::clear(&tables);
        peak::clear(&tables);
    }
    tables.page().begin_ns.store(system::now(), Relaxed);
    blocks::set_marked(!sampling.is_every());
    resume(sampling, number);
}

/// As [`start`], after [`stop`]: what was counted stays. Frees must have been counted meanwhile. With another sampling, the
/// number must be another one.
pub fn resume(sampling: Sampling, number: u32) {
    let Some(tables) = tables() else { return };
    draw::set(sampling);
    if sampling.is_every() {
        blocks::set_marked(false);
    }
    let page = tables.page();
    let (kind, parameter) = sampling.numbers();
    page.sampling.store(kind as u32, Relaxed);
    page.parameter.store(parameter, Relaxed);
    SESSION.store(number, Release);
}

/// Number of the recording that was [started](start) last, 0 for none.
#[inline(always)]
pub fn session() -> u32 {
    SESSION.load(Relaxed)
}

/// Ends the recording. When it returns, no other thread is inside the recorder, and none records any more. The caller has
/// turned the calls of [`allocated`] off before. Frees may still be counted.
pub fn stop() {
    SESSION.store(STOPPED, SeqCst);
    // A thread that is about to enter sees the line above, or is seen to be inside.
    barrier::all_threads();
    slots::wait_for_all(u64::MAX);
}

/// How long other threads are waited for before all are confined, ns. One of them may wait for a lock that the caller holds.
const LONGEST_WAIT: u64 = 1_000_000_000;

/// Runs `act`, after which the calling thread may make no system calls (`seccomp`), if it succeeds. Its allocations are counted
/// as lost then, and so are those of threads that begin later. `all`: all threads are confined.
pub fn confine(all: bool, act: impl FnOnce() -> bool) {
    let word = slots::leave();
    let before = confined::set(all);
    if all {
        // As in `stop`. No thread may be about to make a call.
        barrier::all_threads();
        let until = system::now() + LONGEST_WAIT;
        slots::wait_for_all(until);
        confined::wait_for_calls(until);
    }
    if !act() {
        confined::restore(before);
        slots::restore(word);
    }
}

/// The process has reached its end. It must not be confined.
pub fn end() {
    if let Some(tables) = tables().filter(|_| fork_guard::is_sampled()) {
        tables.page().end_ns.store(system::now(), Relaxed);
        tables.page().ended.store(1, Release);
    }
}

/// Modules may have been loaded or unloaded.
pub fn modules_changed() {
    if let Some(tables) = tables().filter(|_| fork_guard::is_sampled())
        && let Some(_calls) = confined::calls()
    {
        // What is allocated meanwhile on this thread finds the update in progress.
        modules::update(&tables);
    }
}

/// In a forked child, before it allocates: the tables and the live blocks were its parent's. It may [`prepare`] its own.
pub fn after_fork() {
    let tables = TABLES.swap(core::ptr::null_mut(), AcqRel);
    // A child of a signal handler may return into the recorder, which then counts once more in its parent's tables.
    let is_unused = !slots::is_busy() && !confined::is_confined();
    if !tables.is_null() && is_unused {
        // SAFETY: this thread, the only one of the child, does not use them.
        unsafe { system::munmap(tables.cast(), HEAP_BYTES) };
    }
    SESSION.store(0, Release);
    blocks::after_fork(is_unused);
    commit::after_fork();
    nodes::after_fork();
    modules::after_fork();
    peak::after_fork();
    slots::after_fork();
    records::after_fork();
}

/// The recorder runs on this thread.
struct Busy(*mut Slot);

impl Busy {
    /// `None` if it runs already: the caller is in a signal handler that interrupted it.
    #[inline(always)]
    fn enter(slot: *mut Slot) -> Option<Busy> {
        let marker = 0u8;
        let here = (&raw const marker).addr();
        // SAFETY: the slot of this thread.
        let busy = unsafe { &(*slot).busy };
        if busy.load(Relaxed) != 0 {
            if !is_abandoned(slot, here) {
                return None;
            }
            // SAFETY: the slot of this thread, and no recorder runs on it.
            unsafe { (*slot).recover() };
        }
        busy.store(here, Relaxed);
        compiler_fence(SeqCst);
        Some(Busy(slot))
    }
}

/// Whether a signal handler has jumped out of the recorder (siglongjmp): its frame is below the caller's, or the same.
#[cold]
fn is_abandoned(slot: *mut Slot, here: usize) -> bool {
    // SAFETY: the slot of this thread.
    let frame = unsafe { (*slot).busy.load(Relaxed) };
    slots::has_left(frame, here)
}

impl Drop for Busy {
    #[inline(always)]
    fn drop(&mut self) {
        compiler_fence(SeqCst);
        // SAFETY: the slot of this thread.
        unsafe { (*self.0).busy.store(0, Release) };
    }
}

/// Whether the next allocation of this thread, of `size` bytes, is left out of a recording: with a rate, most are. Nothing else needs to
/// be done for it. Otherwise [`allocated`] counts it.
#[inline(always)]
pub fn leaves_out(size: usize, session: u32) -> bool {
    slots::current().is_some_and(|slot| {
        // SAFETY: the slot of this thread. A signal handler that interrupts this counts down as well, and either may win.
        let fields = unsafe { &mut *slot };
        fields.draws_for == session && fields.countdown.leaves_out(size as u64)
    })
}

/// Counts a block or mapping that was just allocated, before the program knows it. `at` must not be null.
///
/// # Safety
/// `start` must be the state of a function of the calling thread that has not returned.
#[inline]
pub unsafe fn allocated(at: usize, size: usize, kind: Kind, start: Start) {
    if let Some(slot) = slots::current() {
        // SAFETY: the slot of this thread. A signal handler that interrupts this counts down as well, and either may win.
        let fields = unsafe { &mut *slot };
        if fields.session == SESSION.load(Relaxed) && !fields.countdown.hits(size as u64) {
            return;
        }
    }
    // SAFETY: by the caller.
    unsafe { hit(at, size, kind, start) };
}

/// Records an allocation that the countdown has chosen, or the first one of a thread.
///
/// # Safety
/// As for [`allocated`].
#[inline(never)]
unsafe fn hit(at: usize, size: usize, kind: Kind, start: Start) {
    let Some(tables) = tables() else { return };
    if !fork_guard::is_sampled() {
        return;
    }
    if confined::are_all_confined() {
        return lost(&tables);
    }
    let size = (size as u64).min(blocks::MAX_SIZE);
    let Some(slot) = slots::current_or_new(&tables) else { return lost(&tables) };
    let Some(busy) = Busy::enter(slot) else { return lost(&tables) };
    // SAFETY: the slot of this thread, which no one else uses while it is busy.
    let fields = unsafe { &mut *slot };
    let session = SESSION.load(Relaxed);
    if session == STOPPED {
        return;
    }
    // Once more: who confines all threads waits for those that have entered.
    if confined::are_all_confined() {
        return lost(&tables);
    }
    if fields.session != session {
        fields.session = session;
        fields.draws_for = if draw::leaves_some_out() && blocks::are_apart() { session } else { 0 };
        (fields.pending, fields.last) = (0, slots::NO_BLOCK);
        fields.countdown.begin(system::now() ^ slot.addr() as u64);
        if !fields.countdown.hits(size) {
            return;
        }
    }
    // SAFETY: by the caller.
    unsafe { record(&tables, fields, Allocation { at, size, kind, start }) };
    drop(busy);
}

struct Allocation {
    at: usize,
    size: u64,
    kind: Kind,
    start: Start,
}

/// # Safety
/// As for [`allocated`].
#[inline]
unsafe fn record(tables: &HeapTables, slot: &mut Slot, allocation: Allocation) {
    let Allocation { at, size, kind, start } = allocation;
    // SAFETY: by the caller.
    let (node, is_whole) = unsafe { walk(tables, slot, start) };
    let class = size_class(size) | (kind as u32) << 8;
    let key = Key { node, class, task: slot.task() };
    let counter = slot.counters.find(tables, slot.number, key);
    if counter.is_fallback && kind == Kind::Mapping {
        // The fallback counts blocks.
        return lost(tables);
    }
    if counter.is_fallback || !is_whole {
        tables.page().without_stack().fetch_add(1, Relaxed);
    }
    if !blocks::insert(at, Block { counter: counter.number, size }) {
        return lost(tables);
    }
    let weight = Weight::from_size(size);
    counters::allocated(counter.entry, weight, tables.page().peak_number().load(Acquire));
    if records::wanted() {
        slot.log.push(counter.number, counter.is_fallback, size, at);
    }
    slot.last = !at;
    slot.last_position = slot.countdown.position();
    if kind == Kind::Block {
        peak::add(tables, &mut slot.pending, weight.bytes as i64);
    }
}

/// The node of the caller's stack, and whether memory was left for all of its new frames.
///
/// # Safety
/// As for [`allocated`].
#[inline]
unsafe fn walk(tables: &HeapTables, slot: &mut Slot, start: Start) -> (u32, bool) {
    // SAFETY: by the caller.
    let first = unsafe { walk_once(tables, slot, start) };
    if first.new_frames == 0 || (first.cut.is_none() && first.node & nodes::NOWHERE == 0) {
        return without_marks(first.node);
    }
    if first.cut.is_some() {
        tables.page().cut().fetch_add(1, Relaxed);
    }
    // A library may have been loaded.
    let is_nowhere = first.node & nodes::NOWHERE != 0 || first.cut == Some(Cut::NoModule);
    if !is_nowhere || !modules::update_now_and_then(tables) {
        return without_marks(first.node);
    }
    // SAFETY: by the caller.
    without_marks(unsafe { walk_once(tables, slot, start) }.node)
}

/// # Safety
/// As for [`allocated`].
#[inline]
unsafe fn walk_once(tables: &HeapTables, slot: &mut Slot, start: Start) -> CachedWalk {
    let generation = modules::generation();
    if slot.near.since != generation {
        slot.near.begin(generation);
        // Stacks that could not be followed may be followed now.
        slot.cache.forget();
    }
    let near = &mut slot.near;
    // A frame without a node gets that of its caller, marked, and so do the frames below it: without the mark, they would seem
    // to be called by its caller.
    let mut node = |parent: u32, lookup| {
        if parent & CUT_OFF != 0 {
            return parent;
        }
        match near.intern(tables, parent & !nodes::NOWHERE, lookup, generation) {
            Some(node) => node | parent & nodes::NOWHERE,
            None => parent | CUT_OFF,
        }
    };
    // SAFETY: by the caller; the cache is this thread's.
    unsafe { slot.cache.walk(&UNWINDER, start, &mut node) }
}

/// Marks the node of a stack whose inner frames found no memory.
const CUT_OFF: u32 = 1 << 31;

/// A node's number, and whether it is that of the whole stack.
fn without_marks(node: u32) -> (u32, bool) {
    (node & !(CUT_OFF | nodes::NOWHERE), node & CUT_OFF == 0)
}

#[cold]
fn lost(tables: &HeapTables) {
    tables.page().lost().fetch_add(1, Relaxed);
}

/// Counts the end of a block or mapping, before the allocator knows it. Unknown addresses are ignored.
#[inline]
pub fn freed(at: usize) {
    if blocks::may_have(at) {
        freed_block(at);
    }
}

#[inline]
fn freed_block(at: usize) {
    let Some(tables) = tables() else { return };
    if !fork_guard::is_sampled() {
        return;
    }
    if let Some(block) = blocks::remove(at) {
        count_end(&tables, at, block, true);
    }
}

#[inline]
fn count_end(tables: &HeapTables, at: usize, block: Block, may_be_temporary: bool) {
    let entry = tables.counter(block.counter);
    let weight = Weight::from_size(block.size);
    let peak = tables.page().peak_number().load(Acquire);
    let is_block = !is_mapping_class(entry.class.load(Relaxed));
    let change = if is_block { -(weight.bytes as i64) } else { 0 };
    let busy = slots::current().and_then(Busy::enter);
    let Some(busy) = busy else {
        counters::freed_elsewhere(entry, weight, peak);
        return peak::flush(tables, change);
    };
    // SAFETY: the slot of this thread, which no one else uses while it is busy.
    let slot = unsafe { &mut *busy.0 };
    if entry.thread.load(Relaxed) == slot.number {
        let temporary =
            may_be_temporary && slot.last == !at && slot.last_position == slot.countdown.position();
        counters::freed(entry, weight, peak, temporary);
    } else {
        counters::freed_elsewhere(entry, weight, peak);
    }
    if slot.last == !at {
        slot.last = slots::NO_BLOCK;
    }
    peak::add(tables, &mut slot.pending, change);
}

/// A block that is about to be reallocated. Another thread may get its address as soon as the allocator has freed it. Until this value is
/// dropped, heap snapshots find the block in the thread's slot.
pub struct Ended {
    at: usize,
    block: Option<Block>,
    /// The slot of this thread.
    slot: Option<*mut Slot>,
}

/// Takes a block out before it is reallocated. Then call [`Ended::count`] if it was, or [`reallocation_failed`].
#[inline]
pub fn before_reallocation(at: usize) -> Ended {
    let mut ended = Ended { at, block: None, slot: None };
    if !blocks::may_have(at) || !fork_guard::is_sampled() {
        return ended;
    }
    let Some(tables) = tables() else { return ended };
    let slot = &mut ended.slot;
    ended.block = blocks::remove_after(at, |word| {
        *slot = slots::current_or_new(&tables);
        note_reallocation(*slot, at, word);
    });
    ended
}

/// Notes for heap snapshots which block a thread reallocates.
#[inline(always)]
fn note_reallocation(slot: Option<*mut Slot>, at: usize, word: u64) {
    let Some(slot) = slot else { return };
    // SAFETY: `current_or_new` gave this slot to the calling thread, and no slot that it has given is unmapped. All others only read it,
    // and both words are atomic.
    let noted = unsafe { &(*slot).reallocation };
    // A thread that is stopped in between has a whole note, or none.
    noted.not_address.store(0, Relaxed);
    compiler_fence(SeqCst);
    noted.word.store(word, Relaxed);
    compiler_fence(SeqCst);
    noted.not_address.store(!at as u64, Relaxed);
    compiler_fence(SeqCst);
}

impl Drop for Ended {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            compiler_fence(SeqCst);
            // SAFETY: a value with a pointer does not leave its thread (it is not `Send`), so this is the slot that `current_or_new` gave
            // it, which is never unmapped. The word is atomic.
            unsafe { (*slot).reallocation.not_address.store(0, Relaxed) };
        }
    }
}

impl Ended {
    /// Size of the old block in bytes, if it is known.
    pub fn size(&self) -> Option<usize> {
        self.block.map(|block| block.size as usize)
    }

    /// Counts the end of the old block. `now`: address and size of the new one. [`allocated`] is to be called with it before this value is
    /// dropped.
    #[inline]
    pub fn count(&self, now: Option<(usize, usize)>) {
        let (Some(block), Some(tables)) = (self.block, tables()) else { return };
        if let Some((at, size)) = now {
            let block = Block { size: size as u64, ..block };
            note_reallocation(self.slot, at, blocks::word_of(at, block));
        }
        count_end(&tables, self.at, block, false);
    }
}

/// The reallocation failed: the old block lives on.
pub fn reallocation_failed(ended: Ended) {
    if let Some(block) = ended.block {
        blocks::insert(ended.at, block);
    }
}
