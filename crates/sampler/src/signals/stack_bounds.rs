//! Which part of a thread's stack the handler may read with plain loads.

use stackglass_host::mailbox::SampleHeader;
use stackglass_host::{Slot, is_first_stack};
use stackglass_unwind::mapping;

/// Stores the bounds of the stack that the handler found missing.
pub(crate) fn update(slot: &Slot, header: &SampleHeader) {
    if header.bounds_missing
        && let Some(stack) = stack_around(header.sp, header.thread_pointer)
    {
        slot.set_stack(stack.low, stack.high, stack.grows);
    }
}

struct StackBounds {
    low: u64,
    high: u64,
    grows: bool,
}

/// The part of the stack around `sp` that stays mapped for as long as the thread runs on it. On a stack made by the C library
/// it ends at the thread pointer, because the thread's control block lies above the stack. On the main thread's stack, which
/// grows, it ends with the mapping. `None` on any other stack, whose mapping may be shared with memory that goes away.
fn stack_around(sp: u64, thread_pointer: u64) -> Option<StackBounds> {
    let map = mapping::holding(sp).filter(|m| m.readable && m.writable)?;
    if sp < thread_pointer && thread_pointer < map.end {
        return Some(StackBounds { low: map.start, high: thread_pointer, grows: false });
    }
    is_first_stack(map.start, map.end).then_some(StackBounds { low: map.start, high: map.end, grows: true })
}
