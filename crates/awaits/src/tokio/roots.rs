//! The futures of `block_on`: local variables on the stacks of threads.

use super::Process;
use crate::held::{self, Holdings};
use crate::values::Value;
use crate::walk::Walker;
use stackglass_profile::task_dump::{AwaitPoint, DumpedTask, TaskDump, TaskState};
use stackglass_symbols::layouts::{LocalPlace, is_coroutine};
use std::collections::HashSet;

/// Adds them. A thread has one at most: the outermost.
pub(super) fn add(
    process: &Process<'_>,
    walker: &Walker<'_>,
    dump: &mut TaskDump,
    held: &mut Vec<(usize, Holdings)>,
) {
    for (thread, frames) in process.locals.iter().enumerate() {
        let mut seen = HashSet::new();
        let mut root = None;
        for local in frames.iter().rev().flatten() {
            let Some(future) = future_of(walker, local.type_id, &local.place) else { continue };
            if !seen.insert(future) {
                continue;
            }
            let walked = walker.walk(future);
            if walked.stack.iter().any(|frame| matches!(frame.point, AwaitPoint::Await(_))) {
                root = Some((future, walked));
                break;
            }
        }
        let Some((future, walked)) = root else { continue };
        held.push((dump.tasks.len(), held::holdings(walker, future)));
        walker.wrapped.borrow_mut().claim(walker.values, dump.tasks.len(), future, &walked.wrapped);
        let name = walked.stack.first().map_or_else(|| "".into(), |frame| frame.function.clone());
        dump.tasks.push(DumpedTask {
            state: TaskState::BlockOn(process.tids.get(thread).copied().unwrap_or(0)),
            name,
            stack: walked.stack,
            waits: walked.waits,
            ..DumpedTask::default()
        });
    }
}

/// The coroutine that a local variable is or leads to.
fn future_of(
    walker: &Walker<'_>,
    type_id: stackglass_symbols::layouts::TypeId,
    place: &LocalPlace,
) -> Option<Value> {
    let values = walker.values;
    let name = &values.layout(type_id).name;
    match place {
        LocalPlace::Memory(address) => {
            let mut value = Value { type_id, address: *address };
            for _ in 0..4 {
                let name = &values.layout(value.type_id).name;
                if is_coroutine(name) {
                    return Some(value);
                }
                if !name.starts_with("core::pin::Pin<") && !name.starts_with("&mut ") {
                    return None;
                }
                value = values.target(value)?;
            }
            None
        }
        LocalPlace::Bytes(bytes) if name.starts_with("core::pin::Pin<&mut ") || name.starts_with("&mut ") => {
            let address = u64::from_le_bytes(*bytes.first_chunk::<8>()?);
            let target = values.pointed_type(type_id)?;
            is_coroutine(&values.layout(target).name).then_some(Value { type_id: target, address })
        }
        LocalPlace::Bytes(_) => None,
    }
}
