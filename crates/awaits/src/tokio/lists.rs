//! The lists in which runtimes have their tasks.

use super::cells::Cells;
use crate::names;
use crate::values::{Value, Values};
use foldhash::{HashSet, HashSetExt};
use stackglass_layouts::Shape;

/// Most tasks and lists.
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

impl Scheduler {
    /// A field of the runtime's part.
    pub fn part(&self, values: &Values<'_>, path: &[&str]) -> Option<Value> {
        values.path(self.shared, path)
    }
}

/// The runtimes that one of these blocks leads to.
pub(super) fn schedulers(values: &Values<'_>, cells: &Cells<'_>, blocks: &[u64]) -> Vec<Scheduler> {
    let mut schedulers: Vec<Scheduler> = Vec::new();
    let mut seen = HashSet::new();
    for scheduler in blocks.iter().filter_map(|block| scheduler(values, cells, *block)) {
        if seen.insert(scheduler.shared.address) {
            schedulers.push(scheduler);
        }
    }
    schedulers
}

/// The runtime that a block leads to.
fn scheduler(values: &Values<'_>, cells: &Cells<'_>, block: u64) -> Option<Scheduler> {
    let cell = cells.at(values, block)?;
    if cell.is_blocking || !cell.has_references(values) {
        return None;
    }
    let scheduler = cells.scheduler(values, block)?;
    let shared = values.target(scheduler)?;
    let kind = match values.name(scheduler) {
        name if name.contains("::multi_thread") => "multi-thread",
        name if name.contains("::current_thread") => "current-thread",
        name if name.contains("::local") => "LocalSet",
        _ => "other",
    };
    Some(Scheduler { kind, shared })
}

/// The headers of the tasks of a runtime.
pub(super) fn headers(values: &Values<'_>, cells: &Cells<'_>, scheduler: Scheduler) -> Vec<u64> {
    let (mut tasks, mut left) = (Vec::new(), MOST_TASKS);
    each_header(values, cells, scheduler, &mut left, &mut |header| tasks.push(header));
    tasks
}

/// `left` is the number of lists and tasks that may be visited.
fn each_header(
    values: &Values<'_>,
    cells: &Cells<'_>,
    scheduler: Scheduler,
    left: &mut usize,
    visit: &mut dyn FnMut(u64),
) {
    let Some(owned) = owned(values, scheduler.shared, DEEPEST) else { return };
    each_list(values, owned, DEEPEST, &mut |head| {
        *left = left.saturating_sub(1);
        follow(values, cells, head, left, visit);
    });
}

/// Visits the tasks of all runtimes that one of these blocks leads to: kind of the runtime, its number, header of the task. Blocks
/// that were visited as tasks are not read again: each may be on a page of its own. Nor are tasks that are visited read before.
pub(super) fn visit(
    values: &Values<'_>,
    cells: &Cells<'_>,
    blocks: &[u64],
    visit: &mut dyn FnMut(&'static str, usize, u64),
) {
    let (mut schedulers, mut seen) = (HashSet::new(), HashSet::new());
    let mut left = MOST_TASKS;
    for block in blocks {
        if left == 0 {
            return;
        }
        if seen.contains(block) {
            continue;
        }
        let Some(scheduler) = scheduler(values, cells, *block) else { continue };
        if schedulers.insert(scheduler.shared.address) {
            let number = schedulers.len() - 1;
            each_header(values, cells, scheduler, &mut left, &mut |header| {
                if seen.insert(header) {
                    visit(scheduler.kind, number, header);
                }
            });
        }
    }
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
fn follow(values: &Values<'_>, cells: &Cells<'_>, head: u64, left: &mut usize, visit: &mut dyn FnMut(u64)) {
    let mut seen = HashSet::new();
    let mut header = head;
    while header != 0 && *left > 0 && seen.insert(header) {
        let Some(vtable) = cells.headers.vtable(values, header).filter(|vtable| cells.is_readable(*vtable))
        else {
            return;
        };
        *left -= 1;
        visit(header);
        let next = cells.headers.trailer_offset.and_then(|offset| {
            let trailer = values.pages.word(vtable.checked_add(offset)?)?;
            // `Pointers { prev, next }`: `util/linked_list.rs` fixes this order.
            values.pages.word(header.checked_add(trailer)?.checked_add(8)?)
        });
        header = next.unwrap_or(0);
    }
}
