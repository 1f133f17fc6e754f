//! Forgetting what was counted, for a process that reads its own tables.

use crate::{blocks, counters, peak, recorder, records, slots};
use core::sync::atomic::Ordering::*;

/// Forgets all counts, records and live blocks. Stacks and threads stay. The caller has turned all calls off and called
/// [`stop`](crate::stop).
pub fn clear() {
    let Some(tables) = recorder::tables() else { return };
    blocks::forget();
    counters::clear(&tables);
    slots::for_each(&mut |slot| {
        // SAFETY: slots are never unmapped, and no thread uses one now.
        let slot = unsafe { &mut *slot };
        (slot.pending, slot.last) = (0, 0);
        slot.log.clear();
    });
    let page = tables.page();
    page.lost().store(0, Relaxed);
    page.without_stack().store(0, Relaxed);
    page.peak_at_ns().store(0, Relaxed);
    peak::clear(&tables);
}

/// Calls `each` with all records, thread by thread, and returns how many were lost and the bytes of the others.
pub fn read_records(each: &mut dyn FnMut(records::Record)) -> RecordSums {
    let mut sums = RecordSums { lost: 0, bytes: 0 };
    if let Some(tables) = recorder::tables() {
        slots::for_each(&mut |slot| {
            // SAFETY: slots are never unmapped; this part of a slot is made of atomics.
            let published = unsafe { &(*slot).log.published };
            sums.lost += published.lost();
            sums.bytes += published.read(&tables, each);
        });
    }
    sums
}

/// Sums over all records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordSums {
    /// Allocations that were counted, but whose record found no memory.
    pub lost: u64,
    /// Bytes of the records in memory.
    pub bytes: u64,
}
