//! The pools of threads that run functions of `spawn_blocking`.
//!
//! The block of such a function looks like a copy of it that was left on a stack or freed. The pool says which are queued: its
//! queues have their headers. Others count only while they run. Threads of a pool have its address on their stacks, as threads of a
//! runtime have that of its handle. What looks like a pool there is one only if all of its counters and its queues are possible.
//!
//! Source: `tokio/src/runtime/blocking/pool.rs` and `sharded.rs`. Fields are found by their names.

use super::cells::Cells;
use super::lists;
use crate::process::Process;
use crate::values::{Value, Values};
use foldhash::{HashSet, HashSetExt};
use stackglass_layouts::Shape;
use stackglass_process_view::threads;
use stackglass_profile::runtimes::{is_generic, tokio};

/// Bytes at the outer end of each stack that are searched: the functions of a pool's thread have little above them.
const OUTER_BYTES: u64 = 16 << 10;
/// Most functions in the queues of a pool.
const MOST_QUEUED: u64 = 1 << 20;
/// More threads than a pool may have.
const MOST_THREADS: u64 = 1 << 20;
/// Deepest nesting of the queues in a pool.
const DEEPEST: u32 = 14;
/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;

/// A pool.
pub(super) struct Pool {
    /// Number of its threads, with workers of a runtime.
    pub threads: u64,
    /// How many of them wait for functions.
    pub idle: u64,
    /// Most threads that it may have.
    pub limit: u64,
    /// How many of them are workers of a runtime. tokio counts these since 1.54.
    pub workers: Option<u64>,
    /// The headers of functions that wait for a thread.
    pub queued: Vec<u64>,
}

/// Finds the pools of a process: those of known runtimes, and those that have threads.
pub(super) fn find(
    process: &Process<'_>,
    values: &Values<'_>,
    cells: &Cells<'_>,
    blocks: &[u64],
) -> Vec<Pool> {
    let Some(block) = values.layouts.by_name(tokio::BLOCKING_POOL_BLOCK) else { return Vec::new() };
    let (mut seen, mut found) = (HashSet::new(), Vec::new());
    let mut visit = |address: u64| {
        if !address.is_multiple_of(8) || !seen.insert(address) {
            return;
        }
        found.extend(pool(process, values, cells, Value { type_id: block, address }));
    };
    for scheduler in lists::schedulers(values, cells, blocks) {
        let spawner = scheduler.part(values, &["data", "blocking_spawner", "inner"]);
        spawner
            .and_then(|spawner| values.word(values.field(spawner, "ptr")?))
            .into_iter()
            .for_each(&mut visit);
    }
    for thread in threads::stacks(process.image, process.modules) {
        let end = thread.end & !7;
        let begin = thread.registers.rsp().next_multiple_of(8).max(end.saturating_sub(OUTER_BYTES));
        let words = (begin..end).step_by(8).filter_map(|at| values.pages.word(at));
        words.for_each(&mut visit);
    }
    found
}

/// The pool in a block, if it is one.
fn pool(process: &Process<'_>, values: &Values<'_>, cells: &Cells<'_>, block: Value) -> Option<Pool> {
    const MOST_REFERENCES: u64 = 1 << 32;
    let count = |value: Value, name: &str| {
        let field = values.unwrapped(values.field(value, name)?);
        values.word(field)
    };
    let is_count = |count: u64| (1..MOST_REFERENCES).contains(&count);
    if !is_count(count(block, "strong")?) || !is_count(count(block, "weak")?) {
        return None;
    }
    let inner = values.field(block, "data")?;
    let metrics = values.field(inner, "metrics")?;
    let (threads, idle) = (count(metrics, "num_threads")?, count(metrics, "num_idle_threads")?);
    let (limit, depth) = (count(inner, "thread_cap")?, count(metrics, "queue_depth")?);
    let of_process = process.image.threads.len() as u64;
    if !(1..MOST_THREADS).contains(&limit) || threads > limit.min(of_process) || idle > threads {
        return None;
    }
    let nanos = values.field(values.field(inner, "keep_alive")?, "nanos")?;
    let nanos = values.pages.number(nanos.address, 4)?;
    if u64::try_from(nanos).ok()? >= SECOND || depth > MOST_QUEUED {
        return None;
    }
    let mut queued = Vec::new();
    queues(values, inner, DEEPEST, &mut |queue| headers(values, cells, queue, &mut queued))?;
    Some(Pool { threads, idle, limit, workers: count(inner, "scheduler_threads"), queued })
}

/// Visits all queues in a value. `None` if one is not possible.
fn queues(
    values: &Values<'_>,
    value: Value,
    depth: u32,
    visit: &mut dyn FnMut(Value) -> Option<()>,
) -> Option<()> {
    if depth == 0 {
        return Some(());
    }
    let layout = values.layout(value.type_id);
    if is_generic(&layout.name, "alloc::collections::vec_deque::VecDeque") {
        return match layout
            .arguments
            .iter()
            .any(|(_, element)| *values.layout(*element).name == *tokio::BLOCKING_POOL_TASK)
        {
            true => visit(value),
            false => Some(()),
        };
    }
    match &layout.shape {
        Shape::Struct(fields) => {
            fields.iter().try_for_each(|field| queues(values, value.part(field)?, depth - 1, visit))
        }
        Shape::Enum { .. } => {
            // Of an enum without a valid tag, nothing is known, as of all others whose types are not understood.
            let Some((_, variant)) = values.active(value) else { return Some(()) };
            variant.fields.iter().try_for_each(|field| queues(values, value.part(field)?, depth - 1, visit))
        }
        Shape::Array { element, count } => {
            let first = Value { type_id: *element, ..value };
            (0..(*count).min(1024))
                .try_for_each(|number| queues(values, values.element(first, number)?, depth - 1, visit))
        }
        _ => Some(()),
    }
}

/// Adds the headers in a queue. `None` if it has something else.
fn headers(values: &Values<'_>, cells: &Cells<'_>, queue: Value, found: &mut Vec<u64>) -> Option<()> {
    let word = |path: &[&str]| values.word(values.unwrapped(values.path(queue, path)?));
    let (head, length) = (word(&["head"])?, word(&["len"])?);
    let buffer = values.path(queue, &["buf", "inner"])?;
    let capacity = values.word(values.unwrapped(values.field(buffer, "cap")?))?;
    if length > capacity || capacity > MOST_QUEUED || head > capacity {
        return None;
    }
    if length == 0 {
        return Some(());
    }
    let layout = values.layout(queue.type_id);
    let element = layout.arguments.iter().find(|(name, _)| &**name == "T").map(|(_, element)| *element)?;
    let first = values.target(values.field(buffer, "ptr")?)?;
    let first = Value { type_id: element, ..first };
    for number in 0..length {
        let at = (head + number) % capacity;
        let header = values.target(values.element(first, at)?)?.address;
        cells.at(values, header).filter(|cell| cell.is_blocking)?;
        found.push(header);
    }
    Some(())
}
