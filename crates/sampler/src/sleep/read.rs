//! The stack of a sleeping thread: read from outside if that is possible, else taken by a signal, once per location.

use crate::parts::Parts;
use crate::signals::send;
use crate::sleep::reader::{ReadStack, SleepStack};
use stackglass_host::SlotIndex;
use stackglass_proc_text::Sleep;
use stackglass_unwind::walk::Cut;
use stackglass_wire::Counter;

/// The stack of a sleeping thread.
pub(crate) enum SleepingStack {
    /// The thread woke up.
    None,
    /// Only a signal shows it, and the thread may be signalled.
    NeedsSignal,
    /// `parts.sleep` has the frames.
    Read(ReadStack),
}

/// Reads the stack of a thread whose clock showed `cpu` before it was found asleep.
pub(crate) fn read(parts: &mut Parts, index: SlotIndex, now: u64, cpu: u64, sleep: Sleep) -> SleepingStack {
    let header = parts.threads.get(index).header;
    let stack = match parts.sleep.read(index, header.tid, parts.shared.tid, cpu, sleep.place) {
        SleepStack::WokeUp => return SleepingStack::None,
        SleepStack::Partial(_)
            if send::may_signal_sleeper(parts, index, now, sleep.call)
                && !parts.sleep.was_tried(header.number.0, sleep.place) =>
        {
            return SleepingStack::NeedsSignal;
        }
        SleepStack::Cached(stack) => {
            parts.shared.count(Counter::StacksRecognised);
            stack
        }
        SleepStack::Read(stack) | SleepStack::Partial(stack) => {
            parts.shared.count(Counter::StacksAsleep);
            stack
        }
    };
    if stack.cut != 0 {
        parts.shared.count(Counter::Cut);
        parts.due.modules |= stack.cut == Cut::NoModule as u8;
    }
    SleepingStack::Read(stack)
}
