//! Chunks of allocations: the processes whose allocations were recorded, their memory over time, groups of allocations, and
//! the allocated types.
//!
//! Groups are sorted, and each count is stored as its difference from what the other counts suggest. Blocks of one size that
//! are all freed then need only zeros besides their count.

use super::bytes::{Body, Malformed, Source};
use super::columns::{Columns, split};
use super::index::Totals;
use super::tables::{TextWriter, process_at, text_at};
use stackglass_profile::{
    AllocatingProcess, AllocationCounts, AllocationGroup, AllocationKind, AllocationSampling, MemoryPoint,
    Nanos, ProcessIndex, Recording, SizeClass, StackId, Symbols, ThreadNumber,
};
use std::sync::Arc;

/// Weight of an allocating process and of a group of allocations. Both have about 100 bytes.
const ROW_WEIGHT: u64 = 3;

const PROCESS: usize = 0;
const STACK: usize = 1;
const THREAD: usize = 2;
const TASK: usize = 3;
const KIND: usize = 4;
const CLASS: usize = 5;
const COUNT: usize = 6;
const BYTES: usize = 7;
const LIVE_COUNT: usize = 8;
const LIVE_BYTES: usize = 9;
const TEMPORARY: usize = 10;
const PEAK_COUNT: usize = 11;
const PEAK_BYTES: usize = 12;
const KEPT_COUNT: usize = 13;
const KEPT_BYTES: usize = 14;
const COLUMNS: usize = 15;

/// Adds the row of a process.
pub(crate) fn write_process(body: &mut Body, process: &AllocatingProcess) {
    body.number(process.process.0.into());
    body.number(process.begin.0);
    body.number(process.end.0);
    write_sampling(body, process.sampling);
    body.number(process.peak_at.0);
    body.number(process.lost);
    body.number(process.without_stack);
    body.weight += ROW_WEIGHT;
}

/// Adds how allocations are recorded.
pub(super) fn write_sampling(body: &mut Body, sampling: AllocationSampling) {
    let (how, n) = match sampling {
        AllocationSampling::Every => (0, 0),
        AllocationSampling::Rate(rate) => (1, rate_bits(rate)),
        AllocationSampling::Bytes(bytes) => (2, bytes),
        AllocationSampling::ScaledRate(rate) => (3, rate_bits(rate)),
        AllocationSampling::Stacks(share) => (4, rate_bits(share)),
    };
    body.number(how);
    body.number(n);
}

/// Reads what [`write_sampling`] has added.
pub(super) fn read_sampling(source: &mut Source<'_>) -> Result<AllocationSampling, Malformed> {
    let (how, n) = (source.number()?, source.number()?);
    let rate = f64::from_bits(n);
    match how {
        0 => Ok(AllocationSampling::Every),
        1 if (0.0..=1.0).contains(&rate) => Ok(AllocationSampling::Rate(rate)),
        3 if (0.0..=1.0).contains(&rate) => Ok(AllocationSampling::ScaledRate(rate)),
        4 if (0.0..=1.0).contains(&rate) => Ok(AllocationSampling::Stacks(rate)),
        1 | 3 | 4 => Err(source.malformed("an impossible sampling rate")),
        2 => Ok(AllocationSampling::Bytes(n)),
        _ => Err(source.malformed(format!("sampling of allocations {how}"))),
    }
}

/// The bits of a rate from 0 to 1.
fn rate_bits(rate: f64) -> u64 {
    if rate > 0.0 { rate.min(1.0).to_bits() } else { 0 }
}

/// Reads rows of processes. `processes` is the number of processes of the recording.
pub(crate) fn read_processes(
    mut source: Source<'_>,
    processes: usize,
    to: &mut Vec<AllocatingProcess>,
) -> Result<(), Malformed> {
    while source.remaining() > 0 {
        source.spend(ROW_WEIGHT)?;
        let process = process_at(&mut source, processes, "list of allocations")?;
        let (begin, end) = (Nanos(source.number()?), Nanos(source.number()?));
        let sampling = read_sampling(&mut source)?;
        to.push(AllocatingProcess {
            process,
            begin,
            end,
            sampling,
            peak_at: Nanos(source.number()?),
            lost: source.number()?,
            without_stack: source.number()?,
            memory: Vec::new(),
        });
    }
    Ok(())
}

/// Calls `emit` with chunks of the memory of all processes over time.
pub(crate) fn write_memory<E>(
    processes: &[AllocatingProcess],
    mut emit: impl FnMut(Body) -> Result<(), E>,
) -> Result<(), E> {
    let mut columns = Columns::<4>::starting_at(0);
    let mut before = [0; 4];
    for (index, process) in processes.iter().enumerate() {
        for point in &process.memory {
            let row = [index as u64, point.clock.0, point.live_bytes, point.resident_bytes];
            for (column, (now, before)) in row.iter().zip(before).enumerate() {
                columns.signed(column, now.wrapping_sub(before) as i64);
            }
            before = row;
            if columns.end_row() {
                columns.take().into_iter().try_for_each(&mut emit)?;
                before = [0; 4];
            }
        }
    }
    columns.take().into_iter().try_for_each(emit)
}

/// Reads a chunk from [`write_memory`], whose rows must begin with number `seen.memory_points`.
pub(crate) fn read_memory(
    mut source: Source<'_>,
    seen: &mut Totals,
    processes: &mut [AllocatingProcess],
) -> Result<(), Malformed> {
    let (rows, mut columns) = split::<4>(&mut source, seen.memory_points, "memory points")?;
    let mut row = [0u64; 4];
    for _ in 0..rows {
        for (value, column) in row.iter_mut().zip(&mut columns) {
            *value = value.wrapping_add(column.signed()? as u64);
        }
        let [index, clock, live_bytes, resident_bytes] = row;
        let of = processes.len();
        let Some(process) = usize::try_from(index).ok().and_then(|index| processes.get_mut(index)) else {
            return Err(columns[0].malformed(format!("memory of allocating process {index} of {of}")));
        };
        process.memory.push(MemoryPoint { clock: Nanos(clock), live_bytes, resident_bytes });
    }
    seen.memory_points += rows as u64;
    columns.iter().try_for_each(Source::end)
}

/// The bytes of `part` allocations out of a group, if all have the average size.
fn likely_bytes(part: u64, counts: &AllocationCounts) -> u64 {
    let product = u128::from(part) * u128::from(counts.bytes);
    product.checked_div(counts.count.into()).unwrap_or(0) as u64
}

/// Calls `emit` with chunks of the groups, sorted.
pub(crate) fn write_groups<E>(
    groups: &[AllocationGroup],
    mut emit: impl FnMut(Body) -> Result<(), E>,
) -> Result<(), E> {
    let mut sorted: Vec<&AllocationGroup> = groups.iter().collect();
    sorted.sort_by_key(|g| (g.process, g.stack, g.thread, g.task, g.kind, g.size_class));
    let mut columns = Columns::<COLUMNS>::starting_at(0);
    let mut before = Key::default();
    for group in sorted {
        columns.signed(PROCESS, i64::from(group.process.0) - before.process);
        columns.signed(STACK, i64::from(group.stack.0) - before.stack);
        columns.number(THREAD, group.thread.0.into());
        columns.signed(TASK, group.task.wrapping_sub(before.task) as i64);
        columns.byte(KIND, group.kind as u8);
        columns.byte(CLASS, group.size_class.0);
        before = Key::from_group(group);
        let counts = &group.counts;
        let differ = |n: u64, likely: u64| n.wrapping_sub(likely) as i64;
        let live = counts.count.wrapping_sub(counts.freed_count);
        let live_bytes = counts.bytes.wrapping_sub(counts.freed_bytes);
        let largest = *group.size_class.sizes().end();
        columns.signed(COUNT, counts.count as i64);
        columns.signed(BYTES, differ(counts.bytes, counts.count.wrapping_mul(largest)));
        columns.signed(LIVE_COUNT, live as i64);
        columns.signed(LIVE_BYTES, differ(live_bytes, likely_bytes(live, counts)));
        columns.signed(TEMPORARY, counts.temporary_count as i64);
        columns.signed(PEAK_COUNT, counts.peak_count as i64);
        columns.signed(PEAK_BYTES, differ(counts.peak_bytes, likely_bytes(counts.peak_count, counts)));
        columns.signed(KEPT_COUNT, counts.kept_count as i64);
        columns.signed(KEPT_BYTES, differ(counts.kept_bytes, likely_bytes(counts.kept_count, counts)));
        if columns.end_row() {
            take_groups(&mut columns).into_iter().try_for_each(&mut emit)?;
            before = Key::default();
        }
    }
    take_groups(&mut columns).into_iter().try_for_each(emit)
}

fn take_groups(columns: &mut Columns<COLUMNS>) -> Option<Body> {
    let mut body = columns.take()?;
    body.weight *= ROW_WEIGHT;
    Some(body)
}

/// The parts of a group's key that are stored as differences from the row before.
#[derive(Default)]
struct Key {
    process: i64,
    stack: i64,
    task: u64,
}

impl Key {
    fn from_group(group: &AllocationGroup) -> Key {
        Key { process: group.process.0.into(), stack: group.stack.0.into(), task: group.task }
    }
}

/// Reads a chunk of groups, whose rows must begin with number `seen.allocation_groups`. Skips unknown kinds.
pub(crate) fn read_groups(
    mut source: Source<'_>,
    seen: &mut Totals,
    recording: &mut Recording,
) -> Result<(), Malformed> {
    let (rows, mut columns) = split::<COLUMNS>(&mut source, seen.allocation_groups, "allocation groups")?;
    source.spend(rows as u64 * (ROW_WEIGHT - 1))?;
    let (processes, stacks) = (recording.processes.len() as u64, recording.stacks.nodes().len() as u64);
    let threads = recording.threads.len() as u64;
    let mut key = Key::default();
    for _ in 0..rows {
        key.process = key.process.wrapping_add(columns[PROCESS].signed()?);
        if !(0..processes as i64).contains(&key.process) {
            return Err(columns[PROCESS].malformed(format!("process {} of {processes}", key.process)));
        }
        key.stack = key.stack.wrapping_add(columns[STACK].signed()?);
        if !(0..=stacks as i64).contains(&key.stack) {
            return Err(columns[STACK].malformed(format!("stack {} of {stacks}", key.stack)));
        }
        let thread = columns[THREAD].number()?;
        if thread > threads {
            return Err(columns[THREAD].malformed(format!("thread {thread} of {threads}")));
        }
        key.task = key.task.wrapping_add(columns[TASK].signed()? as u64);
        let kind = columns[KIND].byte()?;
        let size_class = SizeClass(columns[CLASS].byte()?);
        let counts = read_counts(&mut columns, size_class)?;
        let kind = match kind {
            0 => AllocationKind::Block,
            1 => AllocationKind::Mapping,
            _ => continue,
        };
        recording.allocations.groups.push(AllocationGroup {
            stack: StackId(key.stack as u32),
            thread: ThreadNumber(thread as u32),
            process: ProcessIndex(key.process as u32),
            task: key.task,
            kind,
            size_class,
            counts,
        });
    }
    seen.allocation_groups += rows as u64;
    columns.iter().try_for_each(Source::end)
}

/// Reads the counts of a row.
fn read_counts(
    columns: &mut [Source<'_>; COLUMNS],
    size_class: SizeClass,
) -> Result<AllocationCounts, Malformed> {
    let mut add = |column: usize, likely: u64| -> Result<u64, Malformed> {
        Ok(likely.wrapping_add(columns[column].signed()? as u64))
    };
    let largest = *size_class.sizes().end();
    let mut counts = AllocationCounts::default();
    counts.count = add(COUNT, 0)?;
    counts.bytes = add(BYTES, counts.count.wrapping_mul(largest))?;
    let live = add(LIVE_COUNT, 0)?;
    counts.freed_count = counts.count.wrapping_sub(live);
    counts.freed_bytes = counts.bytes.wrapping_sub(add(LIVE_BYTES, likely_bytes(live, &counts))?);
    counts.temporary_count = add(TEMPORARY, 0)?;
    counts.peak_count = add(PEAK_COUNT, 0)?;
    counts.peak_bytes = add(PEAK_BYTES, likely_bytes(counts.peak_count, &counts))?;
    counts.kept_count = add(KEPT_COUNT, 0)?;
    counts.kept_bytes = add(KEPT_BYTES, likely_bytes(counts.kept_count, &counts))?;
    Ok(counts)
}

/// Writes the next chunk of allocated types from number `from` on. Returns the number after its last.
pub(crate) fn write_types(
    body: &mut Body,
    texts: &mut TextWriter,
    types: &[(StackId, &Arc<str>)],
    from: usize,
) -> usize {
    let (mut next, mut before) = (from, 0);
    while next < types.len() && !body.is_full() {
        let (stack, name) = types[next];
        body.number((stack.0 - before).into());
        body.number(texts.id(name));
        body.weight += 1;
        before = stack.0;
        next += 1;
    }
    next
}

/// Reads rows of allocated types. `stacks` is the highest stack id.
pub(crate) fn read_types(
    mut source: Source<'_>,
    texts: &[Arc<str>],
    stacks: usize,
    symbols: &mut Symbols,
) -> Result<(), Malformed> {
    let mut stack = 0u32;
    while source.remaining() > 0 {
        source.spend(1)?;
        stack = match stack.checked_add(source.number32()?) {
            Some(stack) if stack as usize <= stacks => stack,
            _ => return Err(source.malformed(format!("type of a stack beyond {stacks}"))),
        };
        symbols.set_allocated_type(StackId(stack), text_at(&mut source, texts)?);
    }
    Ok(())
}
