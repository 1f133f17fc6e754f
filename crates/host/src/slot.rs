//! One slot for each thread, with what the handler must know of the thread that it interrupts.
//!
//! Slots lie in one dense array, so that a signal can name its thread by a small number. Only the sampler assigns
//! slots. The handler reads the bounds of the stack, and the cell in which the thread writes its task.

use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering::*};
use stackglass_wire::task::{Polled, TaskCell};

/// Most threads tracked at a time.
pub const CAPACITY: usize = 32 * 1024;

/// Index of a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlotIndex(pub u16);

/// What sampler and handler share about one thread.
#[repr(C, align(64))]
pub struct Slot {
    /// Kernel id; 0 while the slot is free.
    pub tid: AtomicU32,
    /// The stack grows as it is used: more of it lies below `stack_low`.
    grows: AtomicU32,
    /// Lowest address of the stack that may be read with plain loads, 0 if none is known.
    stack_low: AtomicU64,
    /// End of the addresses that may be read with plain loads.
    stack_high: AtomicU64,
    /// The cell in which the thread writes which async task it polls; null if it has none.
    cell: AtomicPtr<TaskCell>,
}

impl Slot {
    /// The part of the stack around `sp` that may be read with plain loads, if it is known.
    #[inline]
    pub fn stack_around(&self, sp: u64) -> Option<(u64, u64)> {
        // The low bound is cleared first and written last, so bounds read between two equal low bounds belong together.
        let low = self.stack_low.load(Acquire);
        let high = self.stack_high.load(Acquire);
        (low != 0 && low <= sp && sp < high && self.stack_low.load(Acquire) == low).then_some((low, high))
    }

    /// Whether the stack of [`stack_around`](Slot::stack_around) grows as it is used.
    #[inline]
    pub fn stack_grows(&self) -> bool {
        self.grows.load(Relaxed) != 0
    }

    /// Stores the bounds of the stack, and whether it grows; for the sampler only.
    pub fn set_stack(&self, low: u64, high: u64, grows: bool) {
        self.stack_low.store(0, Release);
        self.grows.store(u32::from(grows), Relaxed);
        self.stack_high.store(high, Release);
        self.stack_low.store(low, Release);
    }

    /// Assigns the slot to thread `tid` (0 frees it), with nothing known yet.
    pub fn assign(&self, tid: u32) {
        self.set_stack(0, 0, false);
        self.cell.store(core::ptr::null_mut(), Relaxed);
        self.tid.store(tid, Release);
    }

    /// Sets the cell in which the thread writes its task; for the sampler only.
    pub fn set_cell(&self, cell: &'static TaskCell) {
        self.cell.store((cell as *const TaskCell).cast_mut(), Release);
    }

    /// The async task that this thread polls.
    #[inline]
    pub fn polled(&self) -> Polled {
        // SAFETY: null, or from the reference given to `set_cell`.
        match unsafe { self.cell.load(Acquire).as_ref() } {
            Some(cell) => cell.polled_by(self.tid.load(Relaxed)),
            None => Polled { task: 0, entry: 0 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_hold_only_for_stack_pointers_inside() {
        // SAFETY: a slot is made of atomics, for which zero is a value.
        let slot: Slot = unsafe { core::mem::zeroed() };
        assert_eq!(slot.stack_around(0x1000), None);
        slot.set_stack(0x1000, 0x2000, false);
        assert_eq!(slot.stack_around(0x1000), Some((0x1000, 0x2000)));
        assert_eq!(slot.stack_around(0x0fff), None);
        assert_eq!(slot.stack_around(0x2000), None);
        slot.assign(5);
        assert_eq!(slot.stack_around(0x1800), None);
    }
}
