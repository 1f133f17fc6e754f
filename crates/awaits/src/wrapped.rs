//! Tasks of any executor whose future the program has wrapped: `future.task("name")` of the crate `stackglass`.
//!
//! The process has a table of these tasks with the address of each future, and of the future's vtable, which tells its type. The
//! table is not of the same moment as the copy of the process. The wrapper itself is: beside the future it has the task's id, and a
//! number that is odd while the task is polled. If the id in the copy is another one, the task is not in the copy.
//!
//! A wrapped future that is part of a task of a known runtime, or of another wrapped one, is no task of its own. If it is all of
//! that task, the task gets its name.

use crate::held::{self, Holdings};
use crate::locks::TaskHoldings;
use crate::names;
use crate::values::{Value, Values};
use crate::walk::Walker;
use foldhash::{HashMap, HashSet, HashSetExt};
use stackglass_profile::Nanos;
use stackglass_profile::task_dump::{
    AsyncRuntime, AwaitFrame, AwaitPoint, AwaitSource, DumpedTask, PollingThread, TaskDump, TaskState,
};
use stackglass_symbols::layouts::{Shape, TypeId};
use std::ops::Range;
use std::sync::Arc;

/// The wrapper's type, without its argument.
const WRAPPER: &str = "stackglass::task::Instrumented<";
/// What the runtime of such tasks is called.
const RUNTIME: &str = "wrapped tasks (`.task(\"name\")`)";

/// How to get more than names.
const WITHOUT_TYPES: &str = "tasks without a stack: their types are not in the debug information; build their crate with `debug = 2`, or ask them (`--ask`)";

/// A task in the process's table.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WrappedTask {
    /// Its id: unique in the process, but not that of a runtime.
    pub id: u64,
    /// Address of its future; 0 before its first poll.
    pub future: u64,
    /// Address of the future's vtable.
    pub vtable: u64,
    /// Its name.
    pub name: Arc<str>,
    /// Where it was created.
    pub created: Option<(Arc<str>, u32)>,
    /// Kernel id of the thread that polls it.
    pub polled_by: Option<u32>,
    /// How long it has waited, if polls are timed.
    pub waited: Option<Nanos>,
    /// What it has said, if it was asked. It counts if the type of its future is not known.
    pub asked: Option<DumpedTask>,
}

/// Wrapped futures that are part of tasks in the dump.
#[derive(Default)]
pub(crate) struct Known {
    within: HashSet<u64>,
    /// Memory of tasks that were not walked, because they are polled.
    ranges: Vec<Range<u64>>,
    /// Futures that are all of a task, with its index.
    whole: Vec<(u64, usize)>,
}

impl Known {
    /// Says that a task consists of this future, in which these wrapped futures were found.
    pub fn claim(&mut self, values: &Values<'_>, task: usize, future: Value, found: &[u64]) {
        self.within.extend(found);
        let size = values.layout(future.type_id).size;
        self.ranges.push(future.address..future.address.saturating_add(size.max(1)));
        self.whole.extend(whole(values, future).map(|address| (address, task)));
    }

    /// Says that the tasks have new indices, by their old ones.
    pub fn renumber(&mut self, indices: &[usize]) {
        self.whole.iter_mut().for_each(|(_, task)| *task = indices.get(*task).copied().unwrap_or(*task));
    }

    fn contains(&self, future: u64) -> bool {
        self.within.contains(&future)
    }
}

/// Whether a type with this name is the wrapper.
pub(crate) fn is_wrapper(name: &str) -> bool {
    name.starts_with(WRAPPER)
}

/// The type of the future in a wrapper.
pub(crate) fn future_type(values: &Values<'_>, wrapper: TypeId) -> Option<TypeId> {
    let Shape::Struct(fields) = &values.layout(wrapper).shape else { return None };
    fields.iter().find(|field| &*field.name == "future").map(|field| field.type_id)
}

/// The wrapped future that a future is, or that it is a pointer to.
fn whole(values: &Values<'_>, mut value: Value) -> Option<u64> {
    for _ in 0..4 {
        let name = values.name(value);
        if is_wrapper(name) {
            return Some(values.field(value, "future")?.address);
        }
        if !name.starts_with("core::pin::Pin<") && !name.starts_with("alloc::boxed::Box<") {
            return None;
        }
        value = values.target(value)?;
    }
    None
}

/// Names the tasks that are wrapped, and adds those that no runtime has.
pub(crate) fn add(
    tasks: &[WrappedTask],
    walker: &Walker<'_>,
    dump: &mut TaskDump,
    held: &mut Vec<TaskHoldings>,
) {
    let known = walker.wrapped.take();
    let by_future: HashMap<u64, &WrappedTask> =
        tasks.iter().filter(|task| task.future != 0).map(|task| (task.future, task)).collect();
    for (future, index) in &known.whole {
        if let Some(task) = by_future.get(future).filter(|task| is_in_copy(walker, task) != Some(false)) {
            let dumped = &mut dump.tasks[*index];
            dumped.given_name = Some(task.name.clone());
            dumped.created = task.created.clone();
            dumped.waited = dumped.waited.or(task.waited);
        }
    }
    let mut ranges: Vec<&Range<u64>> = known.ranges.iter().collect();
    ranges.sort_by_key(|range| range.start);
    let is_part = |future: u64| {
        let behind = ranges.partition_point(|range| range.start <= future);
        known.contains(future) || behind.checked_sub(1).is_some_and(|at| ranges[at].contains(&future))
    };
    let mut found = Vec::new();
    let mut within = HashSet::new();
    for task in tasks.iter().filter(|task| task.future == 0 || !is_part(task.future)) {
        if let Some((dumped, holdings, inner)) = read(walker, task) {
            within.extend(inner.into_iter().filter(|inner| *inner != task.future));
            found.push((task, dumped, holdings));
        }
    }
    found.retain(|(task, ..)| !within.contains(&task.future));
    if found.is_empty() {
        return;
    }
    let runtime = dump.runtimes.len();
    dump.runtimes.push(AsyncRuntime { name: RUNTIME.to_owned() });
    let is_bare = |task: &DumpedTask| {
        task.source == AwaitSource::RootName && task.stack.is_empty() && task.state == TaskState::Waiting
    };
    if found.iter().any(|(_, task, _)| is_bare(task)) {
        dump.remarks.push(WITHOUT_TYPES.to_owned());
    }
    for (task, dumped, holdings) in found {
        // The first word of a vtable is the function that drops the value.
        let drop = walker.values.pages.word(task.vtable).filter(|drop| *drop != 0);
        let drop = drop.map(|drop| (drop, task.future));
        let index = dump.tasks.len();
        held.extend(holdings.map(|holdings| TaskHoldings { task: index, holdings, drop }));
        dump.tasks.push(DumpedTask { runtime: Some(runtime), ..dumped });
    }
}

type Read = (DumpedTask, Option<Holdings>, Vec<u64>);

/// A task and the wrapped futures in it. `None` if it is not in the copy.
fn read(walker: &Walker<'_>, task: &WrappedTask) -> Option<Read> {
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
        let frame =
            AwaitFrame { function: task.name.clone(), point: AwaitPoint::NotStarted, children: Vec::new() };
        return Some((DumpedTask { stack: vec![frame], ..dumped }, None, Vec::new()));
    }
    let Some(wrapper) = wrapper_of(walker, task) else {
        let asked =
            task.asked.clone().map(|asked| DumpedTask { number: task.id, waited: dumped.waited, ..asked });
        return Some((asked.unwrap_or(dumped), None, Vec::new()));
    };
    let values = walker.values;
    let is_polled = sequence(values, wrapper).filter(|_| id(values, wrapper) == Some(task.id))? & 1 == 1;
    let future = values.field(wrapper, "future")?;
    let name = values.name(future);
    if stackglass_symbols::layouts::is_coroutine(name) {
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
    (dumped.stack, dumped.waits) = (walked.stack, walked.waits);
    Some((dumped, Some(held::holdings(walker, future)), walked.wrapped))
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
