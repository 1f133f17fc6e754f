//! The lists in which runtimes have their tasks.

use super::cells::Cells;
use crate::names;
use crate::values::{Value, Values};
use foldhash::{HashSet, HashSetExt};
use stackglass_symbols::layouts::Shape;

/// Most tasks of a runtime.
const MOST_TASKS: usize = 1 << 22;
/// Most lists of a runtime: tokio has four for each worker.
const MOST_LISTS: u64 = 1 << 16;
/// Deepest nesting of the list within the runtime's part.
const DEEPEST: u32 = 12;

/// A runtime's part of its tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Scheduler {
    /// `multi-thread`, `current-thread`, `LocalSet`.
    pub kind: &'static str,
    shared: Value,
}

/// The tasks of a runtime or local set.
pub(super) struct TaskList {
    /// `multi-thread`, `current-thread`, `LocalSet`.
    pub kind: &'static str,
    /// Addresses of their headers, in order.
    pub tasks: Vec<u64>,
}

/// The runtimes that one of these blocks leads to.
pub(super) fn schedulers(values: &Values<'_>, cells: &Cells<'_>, blocks: &[u64]) -> Vec<Scheduler> {
    let mut seen = HashSet::new();
    let mut schedulers = Vec::new();
    for block in blocks {
        let is_live =
            cells.at(values, *block).is_some_and(|cell| !cell.is_blocking && cell.has_references(values));
        let Some(scheduler) = cells.scheduler(values, *block).filter(|_| is_live) else { continue };
        let Some(shared) = values.target(scheduler) else { continue };
        if !seen.insert(shared.address) {
            continue;
        }
        let name = values.name(scheduler);
        let kind = match name {
            name if name.contains("::multi_thread") => "multi-thread",
            name if name.contains("::current_thread") => "current-thread",
            name if name.contains("::local") => "LocalSet",
            _ => "other",
        };
        schedulers.push(Scheduler { kind, shared });
    }
    schedulers
}

/// The headers of the tasks of a runtime.
pub(super) fn headers(values: &Values<'_>, cells: &Cells<'_>, scheduler: Scheduler) -> Vec<u64> {
    let mut tasks = Vec::new();
    if let Some(owned) = owned(values, scheduler.shared, DEEPEST) {
        each_list(values, owned, DEEPEST, &mut |head| follow(values, cells, head, &mut tasks));
    }
    tasks
}

/// The lists of all runtimes that one of these blocks leads to.
pub(super) fn of_schedulers(values: &Values<'_>, cells: &Cells<'_>, blocks: &[u64]) -> Vec<TaskList> {
    let mut lists = Vec::new();
    for scheduler in schedulers(values, cells, blocks) {
        let mut tasks = headers(values, cells, scheduler);
        // A freed block may lead to something that was a runtime.
        if !tasks.is_empty() {
            tasks.sort_unstable_by_key(|task| cells.at(values, *task).and_then(|cell| cell.id(values)));
            lists.push(TaskList { kind: scheduler.kind, tasks });
        }
    }
    lists.sort_by_key(|list| std::cmp::Reverse(list.tasks.len()));
    lists
}

/// The field `owned` within the runtime's part.
fn owned(values: &Values<'_>, value: Value, depth: u32) -> Option<Value> {
    if let Some(owned) = values.field(value, "owned") {
        return Some(owned);
    }
    let within = ["data", "shared", "local_state", "inner"];
    let fields =
        within.iter().filter_map(|name| values.field(value, name)).take(if depth > 0 { 4 } else { 0 });
    fields.into_iter().find_map(|field| owned(values, field, depth - 1))
}

/// Visits the first pointer of each list in a value.
fn each_list(values: &Values<'_>, value: Value, depth: u32, visit: &mut dyn FnMut(u64)) {
    if depth == 0 {
        return;
    }
    if names::without_arguments(values.name(value)).ends_with("::LinkedList") {
        if let Some(head) = values.field(value, "head").and_then(|head| values.word(head)) {
            visit(head);
        }
        return;
    }
    if let Some((first, count)) = values.slice(value) {
        for number in 0..count.min(MOST_LISTS) {
            let Some(element) = values.element(first, number) else { return };
            each_list(values, element, depth - 1, visit);
        }
        return;
    }
    let Shape::Struct(fields) = &values.layout(value.type_id).shape else { return };
    for part in fields.iter().filter_map(|field| value.part(field)) {
        each_list(values, part, depth - 1, visit);
    }
}

/// Follows the list from its first task on. Each task has the address of the next one in its trailer.
fn follow(values: &Values<'_>, cells: &Cells<'_>, head: u64, tasks: &mut Vec<u64>) {
    let mut seen = HashSet::new();
    let mut header = head;
    while header != 0 && tasks.len() < MOST_TASKS && seen.insert(header) {
        let Some(vtable) = cells.headers.vtable(values, header).filter(|vtable| cells.is_readable(*vtable))
        else {
            return;
        };
        tasks.push(header);
        let next = cells.headers.trailer_offset.and_then(|offset| {
            let trailer = values.pages.word(vtable.checked_add(offset)?)?;
            // `Pointers { prev, next }`: `util/linked_list.rs` fixes this order.
            values.pages.word(header.checked_add(trailer)?.checked_add(8)?)
        });
        header = next.unwrap_or(0);
    }
}
