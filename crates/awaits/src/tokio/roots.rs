//! The futures of `block_on`: local variables on the stacks of threads.

use super::cells::Cells;
use crate::found::Found;
use crate::process::Process;
use crate::values::Value;
use crate::walk::Walked;
use crate::walker::Walker;
use stackglass_layouts::{LocalPlace, is_coroutine};
use stackglass_profile::task_dump::{AwaitFrame, AwaitPoint, DumpedTask, TaskState};
use std::collections::HashSet;

/// The future of a `block_on`.
pub(super) struct Root {
    /// Index of the thread.
    pub thread: usize,
    /// Index of the frame that has it as a variable.
    pub frame: usize,
    pub future: Value,
}

/// Finds them. A thread has one at most: the outermost that is not in a task with one of these headers. A thread that polls a task may
/// have its future as a variable, too.
pub(super) fn find(
    process: &Process<'_>,
    walker: &Walker<'_>,
    cells: &Cells<'_>,
    headers: &[u64],
) -> Vec<(Root, Walked)> {
    let mut roots = Vec::new();
    for (thread, frames) in process.locals.iter().enumerate() {
        let mut seen = HashSet::new();
        let locals = frames.iter().enumerate().rev();
        let locals = locals.flat_map(|(frame, locals)| locals.iter().map(move |local| (frame, local)));
        for (frame, local) in locals {
            let Some(future) = future_of(walker, local.type_id, &local.place) else { continue };
            if !seen.insert(future) || cells.hold(walker.values, headers, future.address) {
                continue;
            }
            let walked = walker.walk(future);
            if walked.stack.iter().any(is_suspended) {
                roots.push((Root { thread, frame, future }, walked));
                break;
            }
        }
    }
    roots
}

/// Adds them.
pub(super) fn add(
    process: &Process<'_>,
    walker: &Walker<'_>,
    (cells, headers): (&Cells<'_>, &[u64]),
    found: &mut Found,
) {
    for (root, mut walked) in find(process, walker, cells, headers) {
        found.hold(walker, root.future, None, std::mem::take(&mut walked.needs));
        found.claim(walker.values, root.future, &walked.wrapped);
        let tid = process.tids.get(root.thread).copied().unwrap_or(0);
        found.dump.tasks.push(task(tid, walked));
    }
}

/// Whether a future waits.
pub(super) fn is_suspended(frame: &AwaitFrame) -> bool {
    matches!(frame.point, AwaitPoint::Await(_))
}

/// The task of a `block_on` on a thread.
pub(super) fn task(tid: u32, walked: Walked) -> DumpedTask {
    let name = walked.stack.first().map_or_else(|| "".into(), |frame| frame.function.clone());
    DumpedTask {
        state: TaskState::BlockOn(tid),
        name,
        stack: walked.stack,
        waits: walked.waits,
        fires_at: walked.fires_at,
        ..DumpedTask::default()
    }
}

/// The coroutine that a local variable is or leads to.
fn future_of(walker: &Walker<'_>, type_id: stackglass_layouts::TypeId, place: &LocalPlace) -> Option<Value> {
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
