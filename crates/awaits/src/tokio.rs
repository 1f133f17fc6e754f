//! The tasks of tokio's runtimes.
//!
//! A task is one block: a header with its state and a vtable, its future, and links of the list of all tasks of its runtime.
//! The vtables are words in read-only data that hold the address of a function that polls tasks. A sweep of the heap finds
//! blocks with such vtables; the first live one leads to the runtime's own list, which has all tasks and no others. Fields are
//! found by their names, so their order does not matter.
//!
//! Source: `tokio/src/runtime/task/` of tokio 1.43 to 1.54.

mod alone;
mod block_on;
mod blocked_polls;
mod blocking_functions;
mod blocking_pool;
mod cells;
mod lists;
mod order;
mod polling;
mod reader;
mod remarks;
mod root_names;
mod roots;
mod sweep;
mod symbol_names;
mod task;
mod untyped;

pub use polling::Poll;
pub use reader::{FoundRoot, PollCode, RootFuture, SeenTask, SeenTasks, TaskReader};

use crate::found::Found;
use crate::futures::Futures;
use crate::process::Process;
use crate::values::Values;
use crate::walker::Walker;
use crate::wrapped;
use cells::{Cells, TaskCell};
use foldhash::{HashSet, HashSetExt};
use order::OfRuntime;
use stackglass_drop_code::{DropStop, Drops};
use stackglass_process_view::pages::Pages;
use stackglass_process_view::stacks::StackFrame;
use stackglass_profile::task_dump::{AsyncRuntime, TaskDump};

/// Finds the tasks of a process. It has none if its debug information has no types, or if it does not use tokio.
pub fn tasks(process: &Process<'_>) -> TaskDump {
    read(process, &[], &[]).0
}

/// Finds the tasks of a process, and those that its threads poll. `frames` are those of each thread, innermost first. `words` are the
/// addresses of the words for which threads wait in futex(2), by kernel id.
pub fn tasks_and_polls(
    process: &Process<'_>,
    frames: &[Vec<StackFrame>],
    words: &[(u32, u64)],
) -> (TaskDump, Vec<Poll>) {
    let (dump, polls, _) = read(process, frames, words);
    (dump, polls)
}

/// Where the code that drops the tasks of a process cannot be followed. What a task holds is then not certain.
pub fn drop_stops(process: &Process<'_>) -> Vec<DropStop> {
    read(process, &[], &[]).2
}

fn read(
    process: &Process<'_>,
    frames: &[Vec<StackFrame>],
    words: &[(u32, u64)],
) -> (TaskDump, Vec<Poll>, Vec<DropStop>) {
    let Process { image, modules, layouts, .. } = *process;
    let values = Values { layouts, pages: Pages::new(image) };
    let types = Futures::new(layouts);
    let vtables = process.vtables();
    let cells = Cells::find(&values, modules);
    let walker = Walker::new(&values, &types, &vtables, cells.headers).with_symbols_of(modules);
    let swept = sweep::cells(image, &cells);
    let version = remarks::version(layouts);
    let mut found = Found::new(image.pid);
    let seen = add_listed(&walker, &cells, &swept, version.as_deref(), &mut found);
    blocking_functions::add(process, &walker, &cells, (&swept, &seen), frames, &mut found);
    let mut polls = polling::find(&values, &cells.headers, modules, frames, &found.polled);
    roots::add(process, &walker, (&cells, &swept), &mut found);
    block_on::add(process, &walker, &mut found);
    if cells.is_empty() {
        polls.extend(root_names::add(process, &values, frames, &mut found));
    }
    blocked_polls::add(process, &walker, frames, (&polls, words), &mut found);
    wrapped::add(process.wrapped, &walker, &mut found);
    remarks::add(layouts, &cells, version.as_deref(), &mut found.dump);
    let drops = Drops::new(&values.pages, layouts, modules);
    (found.with_locks(&values, &drops), polls, drops.stops())
}

/// Adds the tasks of the runtimes' lists, and these runtimes. Returns the headers of all.
fn add_listed(
    walker: &Walker<'_>,
    cells: &Cells<'_>,
    swept: &[u64],
    version: Option<&str>,
    found: &mut Found,
) -> HashSet<u64> {
    let mut seen = HashSet::new();
    let mut of_runtimes: Vec<OfRuntime> = Vec::new();
    lists::visit(walker.values, cells, swept, &mut |kind, number, header| {
        of_runtimes.resize(of_runtimes.len().max(number + 1), OfRuntime::default());
        of_runtimes[number] = OfRuntime { kind, tasks: of_runtimes[number].tasks + 1 };
        seen.insert(header);
        add(walker, cells, header, Some(number), found);
    });
    let kinds = order::sort(&of_runtimes, found);
    let of_version = version.map(|version| format!(" {version}")).unwrap_or_default();
    let runtime = |kind| AsyncRuntime { name: format!("tokio{of_version}, {kind}") };
    found.dump.runtimes = kinds.into_iter().map(runtime).collect();
    seen
}

/// Adds a task, and notes whether it is polled.
fn add(walker: &Walker<'_>, cells: &Cells<'_>, header: u64, runtime: Option<usize>, found: &mut Found) {
    let values = walker.values;
    let count = found.dump.tasks.len();
    task::add(walker, cells, header, runtime, found);
    let is_running = |cell: TaskCell| cell.has_references(values) && cell.state(values).is_running;
    if found.dump.tasks.len() > count && cells.at(values, header).is_some_and(is_running) {
        found.polled.push((count, header));
    }
}
