//! Tasks whose thread waits for a lock of `std::sync` in the middle of a poll.
//!
//! The kernel says for which word the thread waits, and the function that it is in says that the word is one of a lock.

use super::polling::Poll;
use crate::process::Process;
use stackglass_process_view::stacks::StackFrame;
use stackglass_profile::task_dump::{SharedKind, TaskDump, WaitTarget};
use std::ops::Range;

/// Adds what such tasks wait for. `words` are those that threads wait for, by kernel id.
pub(super) fn add(
    process: &Process<'_>,
    frames: &[Vec<StackFrame>],
    polls: &[Poll],
    words: &[(u32, u64)],
    dump: &mut TaskDump,
) {
    if words.is_empty() {
        return;
    }
    let functions = contended(process);
    for poll in polls {
        let word = process.tids.get(poll.thread).and_then(|tid| words.iter().find(|(of, _)| of == tid));
        let Some((_, word)) = word else { continue };
        let inner = &frames[poll.thread][..poll.frame];
        let in_function = |frame: &StackFrame| {
            functions.iter().find(|(range, _)| range.contains(&frame.lookup)).map(|(_, is_mutex)| *is_mutex)
        };
        let Some(is_mutex) = inner.iter().find_map(in_function) else { continue };
        let kind = if is_mutex { SharedKind::BlockingMutex } else { SharedKind::BlockingRwLock };
        if let Some(task) = dump.tasks.get_mut(poll.task) {
            task.waits.push(WaitTarget::Shared { kind, address: *word });
        }
    }
}

/// The functions in which threads wait for locks, and whether it is a mutex.
fn contended(process: &Process<'_>) -> Vec<(Range<u64>, bool)> {
    let modules = process.modules.iter().enumerate();
    let of_module = modules.filter_map(|(number, module)| {
        let known = process.layouts.known_functions(number)?;
        let place = |(range, is_mutex): &(Range<u64>, bool)| {
            (range.start.wrapping_add(module.bias())..range.end.wrapping_add(module.bias()), *is_mutex)
        };
        Some(known.contended.iter().map(place).collect::<Vec<_>>())
    });
    of_module.flatten().collect()
}
