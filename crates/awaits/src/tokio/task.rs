//! One task of tokio, by the address of its header: state, name, await stack, and what it holds.

use super::cells::{Cells, Stage};
use super::untyped;
use crate::found::Found;
use crate::task_names::{name_of, task_name};
use crate::walk::Walked;
use crate::walker::Walker;
use stackglass_profile::runtimes::tokio;
use stackglass_profile::task_dump::{DumpedTask, TaskState};

/// Adds the task with a header at an address, and what it holds, if that is asked for.
pub(super) fn add(
    walker: &Walker<'_>,
    cells: &Cells<'_>,
    header: u64,
    runtime: Option<usize>,
    found: &mut Found,
) {
    let Some(cell) = cells.at(walker.values, header) else {
        found.dump.tasks.extend(untyped::task(walker, cells, header, runtime));
        return;
    };
    let state = cell.state(walker.values);
    let id = cell.id(walker.values).unwrap_or(0);
    let (state, future) = match cell.stage(walker.values) {
        Some(Stage::Running(future)) if !state.is_complete => (
            match (cell.is_blocking, state.is_running, state.is_notified) {
                (true, ..) => TaskState::Blocking,
                (_, true, _) => TaskState::Running,
                (_, _, true) => TaskState::Ready,
                _ => TaskState::Waiting,
            },
            Some(future),
        ),
        // A function that runs was moved out of its cell.
        Some(Stage::Consumed) if cell.is_blocking && !state.is_complete => (TaskState::Blocking, None),
        _ if cell.is_blocking => return,
        _ => (TaskState::Finished, None),
    };
    let type_name = task_name(walker, cell.future_type);
    // A worker of the runtime is such a function, too.
    if cell.is_blocking && type_name.starts_with(tokio::SCHEDULER) {
        return;
    }
    // The state of a future that is polled changes; it is on the stack of its worker.
    let readable = future.filter(|_| matches!(state, TaskState::Waiting | TaskState::Ready));
    let walked = readable.map(|future| walker.walk(future)).unwrap_or_default();
    if let Some(future) = future {
        found.claim(walker.values, future, &walked.wrapped);
    }
    let Walked { stack, waits, needs, fires_at, .. } = walked;
    if let Some(future) = readable.filter(|_| found.with_holdings) {
        let free = walker.headers.free(walker.values, header);
        found.hold(walker, future, free.map(|free| (free, header)), needs);
    }
    let name = future.map_or(type_name, |future| name_of(walker, future, &stack));
    let has_no_waker = state == TaskState::Waiting && runtime.is_some() && cell.has_no_waker(walker.values);
    let header = Some(header);
    found.dump.tasks.push(DumpedTask {
        id,
        runtime,
        state,
        name,
        stack,
        waits,
        has_no_waker,
        header,
        fires_at,
        ..DumpedTask::default()
    });
}
