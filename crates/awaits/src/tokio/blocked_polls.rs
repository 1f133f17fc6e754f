//! Tasks whose thread waits in the middle of a poll, or in a function of `spawn_blocking`: for a lock of `std::sync`, or for a channel.
//!
//! The kernel says that the thread waits for a word, and the function that it is in says what for. The word of a lock is part of it. A
//! channel is what the function's own `self` leads to, as its word is one of the thread.
//!
//! A function of `spawn_blocking` has its ends of channels in the variables of its thread. They may be moved away already, so it has
//! them probably.

use super::polling::Poll;
use crate::ends::{self, End};
use crate::found::Found;
use crate::holdings::{Holdings, TaskHoldings};
use crate::needs::Needs;
use crate::process::Process;
use crate::values::Value;
use crate::walker::Walker;
use crate::{lock_guards, names};
use stackglass_layouts::{KnownFunctions, Local, LocalPlace};
use stackglass_process_view::stacks::StackFrame;
use stackglass_profile::runtimes::{BLOCKING_CHANNELS, SHARED_BY_ENDS};
use stackglass_profile::task_dump::{SharedKind, TaskState, WaitTarget};
use std::ops::Range;

/// Adds what such tasks wait for, and the ends that they have. `words` are those that threads wait for, by kernel id.
pub(super) fn add(
    process: &Process<'_>,
    walker: &Walker<'_>,
    frames: &[Vec<StackFrame>],
    (polls, words): (&[Poll], &[(u32, u64)]),
    found: &mut Found,
) {
    add_ends(process, walker, polls, found);
    if words.is_empty() {
        return;
    }
    let contended = functions(process, |known| &known.contended);
    let channels = functions(process, |known| &known.channels);
    for poll in polls {
        let word = process.tids.get(poll.thread).and_then(|tid| words.iter().find(|(of, _)| of == tid));
        let Some((_, word)) = word else { continue };
        let inner = &frames[poll.thread][..poll.frame];
        let target = match inner.iter().find_map(|frame| within(&contended, frame)) {
            Some(true) => Some((SharedKind::BlockingMutex, *word)),
            Some(false) => Some((SharedKind::BlockingRwLock, *word)),
            // Optimized code may have lost the `self` of an inner function.
            None => inner.iter().enumerate().find_map(|(at, frame)| {
                let receives = within(&channels, frame)?;
                let kind = if receives { SharedKind::EmptyChannel } else { SharedKind::FullChannel };
                Some((kind, channel(walker, process.locals.get(poll.thread)?.get(at)?)?))
            }),
        };
        if let (Some(task), Some((kind, address))) = (found.dump.tasks.get_mut(poll.task), target) {
            task.waits.push(WaitTarget::Shared { kind, address });
        }
    }
}

/// Adds the ends that functions of `spawn_blocking` have.
fn add_ends(process: &Process<'_>, walker: &Walker<'_>, polls: &[Poll], found: &mut Found) {
    let Found { dump, held, .. } = found;
    let is_function =
        |task: usize| dump.tasks.get(task).is_some_and(|task| task.state == TaskState::Blocking);
    for Poll { task, thread, frame, .. } in polls.iter().filter(|poll| is_function(poll.task)) {
        let Some(locals) = process.locals.get(*thread) else { continue };
        let mut holdings = Holdings::default();
        for local in locals.iter().take(*frame).flatten() {
            let LocalPlace::Memory(address) = local.place else { continue };
            let ends = lock_guards::holdings(walker, Value { type_id: local.type_id, address }).ends;
            holdings.ends.extend(ends.into_iter().map(|end| End { count: None, ..end }));
        }
        if !holdings.ends.is_empty() {
            held.push(TaskHoldings { task: *task, holdings, drop: None, needs: Needs::new() });
        }
    }
}

/// The channel in whose functions a frame is, by the `self` of one of them: one of the ends, or what they share.
fn channel(walker: &Walker<'_>, locals: &[Local]) -> Option<u64> {
    let values = walker.values;
    let of_self = |own: &Local| {
        let target = match &own.place {
            LocalPlace::Memory(address) => {
                values.target(Value { type_id: own.type_id, address: *address })?
            }
            LocalPlace::Bytes(bytes) => {
                let address = u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?);
                Value { type_id: values.pointed_type(own.type_id)?, address }
            }
        };
        let name = values.name(target);
        match ends::role(name) {
            Some(_) => Some(values.target(target)?.address),
            None => is_channel(names::without_arguments(name)).then_some(target.address),
        }
    };
    // Functions that are inlined have a `self` as well, of other types.
    locals.iter().filter(|local| &*local.name == "self").find_map(of_self)
}

/// Whether a type is what the ends of a channel share.
fn is_channel(path: &str) -> bool {
    BLOCKING_CHANNELS.iter().any(|begin| path.starts_with(begin))
        && SHARED_BY_ENDS.iter().any(|end| path.ends_with(end))
}

fn within(functions: &[(Range<u64>, bool)], frame: &StackFrame) -> Option<bool> {
    functions.iter().find(|(range, _)| range.contains(&frame.lookup)).map(|(_, kind)| *kind)
}

/// Known functions, by their addresses in the process.
fn functions(
    process: &Process<'_>,
    of: impl Fn(&KnownFunctions) -> &Vec<(Range<u64>, bool)>,
) -> Vec<(Range<u64>, bool)> {
    let modules = process.modules.iter().enumerate();
    let of_module = modules.filter_map(|(number, module)| {
        let known = of(process.layouts.known_functions(number)?);
        let place = |(range, kind): &(Range<u64>, bool)| {
            (range.start.wrapping_add(module.bias())..range.end.wrapping_add(module.bias()), *kind)
        };
        Some(known.iter().map(place).collect::<Vec<_>>())
    });
    of_module.flatten().collect()
}
