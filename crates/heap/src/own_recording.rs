//! A recording that a process makes of itself: the allocator of the crate `stackglass` counts, into private memory.

use crate::blocks::Granule;
use crate::draw::Sampling;
use crate::global_alloc::{self, Passing};
use crate::recorder::{self, Memory};
use crate::{clear, records};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*};
use stackglass_host::stream_memory::Refused;
use stackglass_host::{agent, system};
use stackglass_wire::ALLOCATIONS_SYMBOL;
use stackglass_wire::heap::HeapTables;

/// Why a process cannot record its allocations.
#[derive(Clone, Copy, Debug)]
pub enum NotRecorded {
    /// Its allocator is not an [`Alloc`](crate::Alloc).
    OtherAllocator,
    /// The preload library records them.
    Delegated,
    /// The kernel refused memory.
    Refused(Refused),
}

/// What a recording keeps.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Keeping {
    /// Which allocations.
    pub sampling: Sampling,
    /// Most bytes of single records; 0 for none.
    pub record_bytes: u64,
}

static HAS_FORK_HANDLER: AtomicBool = AtomicBool::new(false);
/// Everything was forgotten: the next recording does not continue an earlier one.
static FORGOTTEN: AtomicBool = AtomicBool::new(false);
/// Number of the last sampling, and the sampling.
static NUMBER: AtomicU32 = AtomicU32::new(0);
static KIND: AtomicU32 = AtomicU32::new(0);
static PARAMETER: AtomicU64 = AtomicU64::new(0);

/// Begins a recording, or continues the one that was [ended](end). Not for two threads at once, as all functions here.
///
/// # Errors
/// [`NotRecorded`] says why it cannot begin.
pub fn begin(keeping: Keeping) -> Result<HeapTables, NotRecorded> {
    if is_delegated() {
        return Err(NotRecorded::Delegated);
    }
    let granule = global_alloc::probe().ok_or(NotRecorded::OtherAllocator)?;
    let tables = prepare(granule).map_err(NotRecorded::Refused)?;
    let (kind, parameter) = keeping.sampling.numbers();
    let is_new = FORGOTTEN.swap(false, Relaxed) || recorder::session() == 0;
    if is_new || KIND.load(Relaxed) != kind as u32 || PARAMETER.load(Relaxed) != parameter {
        NUMBER.fetch_add(1, Relaxed);
        KIND.store(kind as u32, Relaxed);
        PARAMETER.store(parameter, Relaxed);
    }
    let number = NUMBER.load(Relaxed);
    records::want(keeping.record_bytes);
    match is_new {
        true => recorder::start(keeping.sampling, number),
        false => recorder::resume(keeping.sampling, number),
    }
    tables.page().end_ns.store(0, Relaxed);
    global_alloc::pass(Passing::All);
    Ok(tables)
}

/// Ends it. When this returns, no thread is inside the recorder. Frees stay followed, so that what is alive stays true.
pub fn end() {
    if let Some(tables) = recorder::tables() {
        global_alloc::pass(Passing::Frees);
        recorder::stop();
        tables.page().end_ns.store(now(), Relaxed);
    }
}

/// Forgets everything that was recorded. A recording must have been [ended](end) before.
pub fn forget() {
    if recorder::is_prepared() {
        global_alloc::pass(Passing::Nothing);
        recorder::stop();
        clear::clear();
        FORGOTTEN.store(true, Relaxed);
    }
}

/// Whether the preload library records the allocations of this process, or is ready to.
pub fn is_delegated() -> bool {
    agent::is_here(ALLOCATIONS_SYMBOL)
}

/// CLOCK_MONOTONIC, ns.
pub fn now() -> u64 {
    system::now()
}

fn prepare(granule: Granule) -> Result<HeapTables, Refused> {
    if !HAS_FORK_HANDLER.swap(true, AcqRel) {
        // SAFETY: registers a function that stays in memory: the program allocates with this code.
        let error = unsafe { libc::pthread_atfork(None, None, Some(after_fork)) };
        if error != 0 {
            HAS_FORK_HANDLER.store(false, Release);
            return Err(Refused { step: "a handler for fork", errno: error });
        }
    }
    recorder::prepare(Memory::Private, granule)
}

/// In a forked child: nothing is recorded before it begins a recording of its own.
extern "C" fn after_fork() {
    global_alloc::after_fork();
    recorder::after_fork();
}
