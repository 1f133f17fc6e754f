//! Tasks of any executor whose future the program has wrapped: `future.task("name")` of the crate `stackglass`.
//!
//! The process has a table of these tasks with the address of each future, and of the future's vtable, which tells its type. The
//! table is not of the same moment as the copy of the process. The wrapper itself is: beside the future it has the task's id, and a
//! number that is odd while the task is polled. If the id in the copy is another one, the task is not in the copy.
//!
//! A wrapped future that is part of a task of a known runtime, or of another wrapped one, is no task of its own. If it is all of
//! that task, the task gets its name.

mod reader;

pub use reader::WrappedReader;

use crate::found::Found;
use crate::holdings::{Holdings, TaskHoldings};
use crate::known_wrapped::Known;
use crate::needs::Needs;
use crate::values::{Value, Values};
use crate::walker::Walker;
use crate::wrapped_task::WrappedTask;
use crate::wrapper::WRAPPER;
use crate::{lock_guards, names};
use foldhash::{HashMap, HashSet, HashSetExt};
use stackglass_layouts::Shape;
use stackglass_profile::task_dump::{
    AsyncRuntime, AwaitFrame, AwaitPoint, AwaitSource, DumpedTask, PollingThread, TaskState,
};
use std::ops::Range;

/// What the runtime of such tasks is called.
const RUNTIME: &str = "wrapped tasks (`.task(\"name\")`)";

/// How to get more than names: a remark of dumps.
const WITHOUT_TYPES: &str =
    "tasks without a stack: their types are not in the debug information; build their crate with `debug = 2`";

/// Names the tasks that wrapped futures are all of.
fn name(known: &Known, tasks: &[WrappedTask], walker: &Walker<'_>, dumped: &mut [DumpedTask]) {
    let by_future: HashMap<u64, &WrappedTask> =
        tasks.iter().filter(|task| task.future != 0).map(|task| (task.future, task)).collect();
    for (future, index) in &known.whole {
        if let Some(dumped) = dumped.get_mut(*index)
            && let Some(task) = by_future.get(future).filter(|task| is_in_copy(walker, task) != Some(false))
        {
            dumped.given_name = Some(task.name.clone());
            dumped.created = task.created.clone();
            dumped.waited = dumped.waited.or(task.waited);
        }
    }
}

/// Tasks that no runtime has, at one moment.
#[derive(Debug, Default)]
pub struct SeenWrapped {
    /// Number of live tasks.
    pub alive: usize,
    /// Some of them, or all, with their ids.
    pub tasks: Vec<(u64, DumpedTask)>,
}

/// Names the tasks that are wrapped, and reads those that no runtime has: so many, each as likely as the others.
pub(crate) fn read_at_most(
    tasks: &[WrappedTask],
    walker: &Walker<'_>,
    found: &mut Found,
    most: usize,
    below: &mut dyn FnMut(usize) -> usize,
) -> SeenWrapped {
    let known = std::mem::take(&mut found.wrapped);
    name(&known, tasks, walker, &mut found.dump.tasks);
    let mut separate = known.separate(tasks);
    leave_out_nested(&mut separate, walker);
    let mut seen = SeenWrapped { alive: separate.len(), tasks: Vec::new() };
    for place in 0..seen.alive.min(most) {
        separate.swap(place, place + below(seen.alive - place));
    }
    separate.truncate(most);
    let (mut found, mut within) = (Vec::new(), HashSet::new());
    for task in separate {
        if let Some((dumped, _, inner)) = read(walker, task, false) {
            within.extend(inner.into_iter().filter(|inner| *inner != task.future));
            found.push((task, dumped));
        }
    }
    let count = found.len();
    found.retain(|(task, _)| task.future == 0 || !within.contains(&task.future));
    seen.alive -= count - found.len();
    seen.tasks = found.into_iter().map(|(task, dumped)| (task.id, dumped)).collect();
    seen
}

/// Leaves out futures in the memory of others.
fn leave_out_nested(tasks: &mut Vec<&WrappedTask>, walker: &Walker<'_>) {
    let mut around: Vec<Range<u64>> = Vec::new();
    for wrapper in tasks.iter().filter_map(|task| wrapper_of(walker, task)) {
        if let Some(future) = walker.values.field(wrapper, "future") {
            let size = walker.values.layout(future.type_id).size;
            // Without its own first byte.
            around.push(future.address.saturating_add(1)..future.address.saturating_add(size.max(1)));
        }
    }
    // Of two ranges that overlap, the outer one begins first.
    around.sort_by_key(|range| (range.start, std::cmp::Reverse(range.end)));
    let mut end = 0;
    around.retain(|range| {
        let is_outer = range.start >= end;
        end = if is_outer { range.end } else { end };
        is_outer
    });
    tasks.retain(|task| {
        let behind = around.partition_point(|range| range.start <= task.future);
        !behind.checked_sub(1).is_some_and(|at| around[at].contains(&task.future))
    });
}

/// Names the tasks that are wrapped, and adds those that no runtime has.
pub(crate) fn add(tasks: &[WrappedTask], walker: &Walker<'_>, found: &mut Found) {
    let known = std::mem::take(&mut found.wrapped);
    name(&known, tasks, walker, &mut found.dump.tasks);
    let mut separate = Vec::new();
    let mut within = HashSet::new();
    for task in known.separate(tasks) {
        if let Some((dumped, holdings, inner)) = read(walker, task, true) {
            within.extend(inner.into_iter().filter(|inner| *inner != task.future));
            separate.push((task, dumped, holdings));
        }
    }
    separate.retain(|(task, ..)| !within.contains(&task.future));
    if separate.is_empty() {
        return;
    }
    let runtime = found.dump.runtimes.len();
    found.dump.runtimes.push(AsyncRuntime { name: RUNTIME.to_owned() });
    let is_bare = |task: &DumpedTask| {
        task.source == AwaitSource::RootName && task.stack.is_empty() && task.state == TaskState::Waiting
    };
    if separate.iter().any(|(_, task, _)| is_bare(task)) {
        found.dump.remarks.push(WITHOUT_TYPES.to_owned());
    }
    for (task, dumped, holdings) in separate {
        // The first word of a vtable is the function that drops the value.
        let drop = walker.values.pages.word(task.vtable).filter(|drop| *drop != 0);
        let drop = drop.map(|drop| (drop, task.future));
        let index = found.dump.tasks.len();
        let of_task = |(holdings, needs)| TaskHoldings { task: index, holdings, drop, needs };
        found.held.extend(holdings.map(of_task));
        found.dump.tasks.push(DumpedTask { runtime: Some(runtime), ..dumped });
    }
}

type Read = (DumpedTask, Option<(Holdings, Needs)>, Vec<u64>);

/// A task and the wrapped futures in it. `None` if it is not in the copy.
fn read(walker: &Walker<'_>, task: &WrappedTask, with_holdings: bool) -> Option<Read> {
    let mut dumped = DumpedTask {
        state: if task.polled_by.is_some() { TaskState::Running } else { TaskState::Waiting },
        name: task.name.clone(),
        number: task.id,
        given_name: Some(task.name.clone()),
        created: task.created.clone(),
        source: AwaitSource::RootName,
        waited: task.waited.filter(|_| task.polled_by.is_none()),
        thread: task.polled_by.map(|tid| PollingThread { tid, ..PollingThread::default() }),
        ..DumpedTask::default()
    };
    if task.future == 0 {
        let frame = AwaitFrame {
            function: task.name.clone(),
            point: AwaitPoint::NotStarted,
            children: Vec::new(),
            is_race: false,
        };
        return Some((DumpedTask { stack: vec![frame], ..dumped }, None, Vec::new()));
    }
    let Some(wrapper) = wrapper_of(walker, task) else {
        return Some((dumped, None, Vec::new()));
    };
    let values = walker.values;
    let is_polled = sequence(values, wrapper).filter(|_| id(values, wrapper) == Some(task.id))? & 1 == 1;
    let future = values.field(wrapper, "future")?;
    let name = values.name(future);
    if stackglass_layouts::is_coroutine(name) {
        dumped.name = names::function(name, values.layouts.coroutines());
    }
    dumped.source = AwaitSource::Types;
    if is_polled {
        dumped.state = TaskState::Running;
        dumped.waited = None;
        return Some((dumped, None, Vec::new()));
    }
    (dumped.state, dumped.thread) = (TaskState::Waiting, None);
    let walked = walker.walk(future);
    if let [outermost] = &walked.stack[..] {
        dumped.name = outermost.function.clone();
        if outermost.point == AwaitPoint::Finished {
            dumped.state = TaskState::Finished;
        }
    }
    dumped.fires_at = walked.fires_at;
    (dumped.stack, dumped.waits) = (walked.stack, walked.waits);
    let holdings = with_holdings.then(|| (lock_guards::holdings(walker, future), walked.needs));
    Some((dumped, holdings, walked.wrapped))
}

/// The wrapper of a task, if the type of its future is known.
fn wrapper_of(walker: &Walker<'_>, task: &WrappedTask) -> Option<Value> {
    let values = walker.values;
    let at = walker.vtables.binary_search_by_key(&task.vtable, |(address, _)| *address).ok()?;
    let name = &values.layout(walker.vtables[at].1).name;
    let type_id = values.layouts.by_name(&format!("{WRAPPER}{name}>"))?;
    let Shape::Struct(fields) = &values.layout(type_id).shape else { return None };
    let offset = fields.iter().find(|field| &*field.name == "future")?.offset;
    Some(Value { type_id, address: task.future.checked_sub(offset).filter(|address| *address != 0)? })
}

/// Whether the copy has the task at this address. `None` if its type is not known.
fn is_in_copy(walker: &Walker<'_>, task: &WrappedTask) -> Option<bool> {
    wrapper_of(walker, task).map(|wrapper| id(walker.values, wrapper) == Some(task.id))
}

fn id(values: &Values<'_>, wrapper: Value) -> Option<u64> {
    values.word(values.path(wrapper, &["task", "id"])?)
}

/// Odd while the task is polled.
fn sequence(values: &Values<'_>, wrapper: Value) -> Option<u32> {
    let sequence = values.path(wrapper, &["task", "sequence"])?;
    values.pages.number(sequence.address, 4).map(|number| number as u32)
}
