//! Tasks whose type is not known, in a program that has types of others.
//!
//! A dependency without debug information may have started such a task, or the linker has merged the functions that poll
//! several types. A runtime's list has it all the same, so it is shown by its id, its state and, sometimes, its function.

use super::cells::{Cells, state_of};
use super::root_names;
use crate::walker::Walker;
use stackglass_profile::task_dump::{AwaitSource, DumpedTask, TaskState};

/// Instead of the function of a task that nothing names.
pub(super) const UNKNOWN: &str = "(unknown future)";

/// The task with a header at an address.
pub(super) fn task(
    walker: &Walker<'_>,
    cells: &Cells<'_>,
    header: u64,
    runtime: Option<usize>,
) -> Option<DumpedTask> {
    let values = walker.values;
    let vtable = cells.headers.vtable(values, header).filter(|vtable| cells.is_readable(*vtable))?;
    let state = state_of(values.pages.word(header.checked_add(cells.headers.state()?)?)?)?;
    let poll = cells.poll_name(vtable);
    let name = poll.and_then(|poll| root_names::name(values.layouts, poll));
    Some(DumpedTask {
        id: cells.headers.id(values, header)?,
        runtime,
        state: match () {
            () if state.is_complete => TaskState::Finished,
            () if state.is_running => TaskState::Running,
            () if state.is_notified => TaskState::Ready,
            () => TaskState::Waiting,
        },
        name: name.unwrap_or_else(|| UNKNOWN.into()),
        source: AwaitSource::RootName,
        header: Some(header),
        ..DumpedTask::default()
    })
}
