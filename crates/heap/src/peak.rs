//! Live bytes of the process and their peak.
//!
//! A thread adds its changes to the shared sum when they exceed a limit, so that most allocations write nothing shared. The limits
//! of all threads together are a thousandth of the peak. Each new peak has a number. A counter that changes for the first time after a
//! peak saves its value first (see `counters`): so the state at the last peak is known in the end, without a copy of all
//! counters at each of them.

use core::sync::atomic::{AtomicI64, AtomicU32, Ordering::*};
use stackglass_host::system;
use stackglass_wire::heap::HeapTables;

/// Changes up to this many bytes stay with the thread.
static LIMIT: AtomicI64 = AtomicI64::new(0);
/// The limits of all threads together, as a part of the peak.
const PART: i64 = 1024;

/// Threads that have a limit.
static THREADS: AtomicU32 = AtomicU32::new(1);

/// There is another thread: each one's limit is a smaller part of the peak.
pub fn thread_added(tables: &HeapTables) {
    THREADS.fetch_add(1, Relaxed);
    set_limit(tables.page().peak_bytes().load(Relaxed));
}

fn set_limit(peak: i64) {
    LIMIT.store(peak / PART / i64::from(THREADS.load(Relaxed).max(1)), Relaxed);
}

/// Adds a change to a thread's own sum, and that to the shared one if it is large enough.
#[inline(always)]
pub fn add(tables: &HeapTables, pending: &mut i64, change: i64) {
    *pending += change;
    if pending.unsigned_abs() > LIMIT.load(Relaxed) as u64 {
        flush(tables, core::mem::take(pending));
    }
}

/// Adds a change to the shared sum.
#[cold]
#[inline(never)]
pub fn flush(tables: &HeapTables, change: i64) {
    let page = tables.page();
    let live = page.live_bytes().fetch_add(change, AcqRel) + change;
    if change > 0 && live > page.peak_bytes().load(Relaxed) {
        page.peak_bytes().fetch_max(live, AcqRel);
        page.peak_at_ns().store(system::now(), Relaxed);
        page.peak_number().fetch_add(1, AcqRel);
        set_limit(live);
    }
}

/// Forgets the sum and the peak.
pub fn clear(tables: &HeapTables) {
    let page = tables.page();
    page.live_bytes().store(0, Relaxed);
    page.peak_bytes().store(0, Relaxed);
    page.peak_number().store(0, Relaxed);
    LIMIT.store(0, Relaxed);
}

/// In a forked child.
pub fn after_fork() {
    LIMIT.store(0, Relaxed);
    THREADS.store(1, Relaxed);
}
