//! Chunks of allocations by slice of time: processes, keys, and what changed in each slice. They are written while the program runs.

use super::allocations::{read_sampling, write_sampling};
use super::bytes::{Body, CHUNK_TARGET, Malformed, Source, push_number, zigzag};
use super::columns::{Columns, split};
use super::index::Totals;
use super::tables::process_at;
use stackglass_profile::{
    AllocationKind, AllocationSlice, AllocationSlices, Nanos, ProcessIndex, Recording, SizeClass,
    SliceChange, SliceKey, SlicedProcess, StackId, ThreadNumber,
};

/// Weight of a process and of a key: at the end of an incomplete recording, groups are made of them.
const KEY_WEIGHT: u64 = 3;
/// Weight of a slice, besides that of its changes.
const SLICE_WEIGHT: u64 = 2;

/// The part of the slices that is in the file.
#[derive(Clone, Copy, Default)]
pub(crate) struct Written {
    generation: u32,
    processes: usize,
    keys: usize,
    /// End of the last slice.
    until: Option<Nanos>,
}

impl Written {
    /// Prepares for the slices of this recording. Returns whether those in the file were forgotten.
    pub fn begin(&mut self, slices: &AllocationSlices) -> bool {
        let is_new = self.generation != slices.generation();
        let is_known = self.processes > 0 || self.keys > 0 || self.until.is_some();
        if is_new {
            *self = Written { generation: slices.generation(), ..Written::default() };
        }
        is_new && is_known
    }

    /// How many processes and keys are in the file.
    pub fn known(&self) -> (usize, usize) {
        (self.processes, self.keys)
    }

    /// Whether the new ones continue what is in the file, and refer to what the recording has.
    pub fn fits(&self, recording: &Recording) -> bool {
        let slices = &recording.allocations.slices;
        let known = |key: &SliceKey| {
            (key.process.0 as usize) < recording.processes.len()
                && key.thread.0 as usize <= recording.threads.len()
                && key.stack.0 as usize <= recording.stacks.nodes().len()
        };
        let of_process = |process: &SlicedProcess| (process.process.0 as usize) < recording.processes.len();
        let keys = slices.keys().len();
        let has_keys = |slice: &AllocationSlice| {
            slice.begin <= slice.end && slice.changes.iter().all(|change| (change.key as usize) < keys)
        };
        slices.keys().get(self.keys..).is_some_and(|new| new.iter().all(known))
            && slices.processes().get(self.processes..).is_some_and(|new| new.iter().all(of_process))
            && self.new_slices(slices).all(has_keys)
    }

    fn new_slices<'a>(&self, slices: &'a AllocationSlices) -> impl Iterator<Item = &'a AllocationSlice> {
        let until = self.until;
        slices.slices().iter().filter(move |slice| until.is_none_or(|until| slice.begin >= until))
    }

    /// The chunk of new processes.
    pub fn processes(&mut self, slices: &AllocationSlices) -> Option<Body> {
        let new = &slices.processes()[self.processes..];
        if new.is_empty() {
            return None;
        }
        let mut body = Body::default();
        body.number(self.processes as u64);
        for process in new {
            body.number(process.process.0.into());
            body.number(process.begin.0);
            write_sampling(&mut body, process.sampling);
            body.weight += KEY_WEIGHT;
        }
        self.processes = slices.processes().len();
        Some(body)
    }

    /// Calls `emit` with chunks of new keys.
    pub fn keys<E>(
        &mut self,
        slices: &AllocationSlices,
        mut emit: impl FnMut(Body) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut columns = Columns::<6>::starting_at(self.keys as u64);
        let mut before = [0u64; 3];
        let mut weighed = |columns: &mut Columns<6>| {
            columns.take().map_or(Ok(()), |mut body| {
                body.weight *= KEY_WEIGHT;
                emit(body)
            })
        };
        for key in &slices.keys()[self.keys..] {
            let now = [key.process.0.into(), key.stack.0.into(), key.task];
            for (column, (now, before)) in [0, 1, 3].into_iter().zip(now.iter().zip(before)) {
                columns.signed(column, now.wrapping_sub(before) as i64);
            }
            columns.number(2, key.thread.0.into());
            columns.byte(4, key.kind as u8);
            columns.byte(5, key.size_class.0);
            before = now;
            if columns.end_row() {
                weighed(&mut columns)?;
                before = [0; 3];
            }
        }
        self.keys = slices.keys().len();
        weighed(&mut columns)
    }

    /// Calls `emit` with chunks of new slices, whose first change has number `first`. Returns the numbers of changes and of parts of
    /// slices.
    pub fn slices<E>(
        &mut self,
        slices: &AllocationSlices,
        first: u64,
        mut emit: impl FnMut(Body) -> Result<(), E>,
    ) -> Result<(u64, u64), E> {
        let mut chunk = SliceChunk { first, ..SliceChunk::default() };
        let mut parts = 0;
        let before = *self;
        for slice in before.new_slices(slices) {
            let mut rest = &slice.changes[..];
            loop {
                rest = chunk.add(slice, rest, slices.keys());
                parts += 1;
                if chunk.is_full() {
                    emit(chunk.take())?;
                }
                if rest.is_empty() {
                    break;
                }
            }
            self.until = Some(slice.end);
        }
        if chunk.has_slices() {
            emit(chunk.take())?;
        }
        Ok((chunk.first - first, parts))
    }
}

/// Number of columns of changes.
const COLUMNS: usize = 6;

/// Slices being written: times and numbers of changes of the slices, then the columns of their changes.
#[derive(Default)]
struct SliceChunk {
    first: u64,
    rows: u64,
    count: u64,
    /// End of the slice before.
    end: u64,
    slices: Vec<u8>,
    columns: [Vec<u8>; COLUMNS],
}

impl SliceChunk {
    fn has_slices(&self) -> bool {
        self.count > 0
    }

    fn is_full(&self) -> bool {
        let bytes = self.slices.len() + self.columns.iter().map(Vec::len).sum::<usize>();
        bytes >= CHUNK_TARGET || self.rows + SLICE_WEIGHT * self.count >= CHUNK_TARGET as u64
    }

    /// Adds some of the changes of a slice. Returns the others.
    fn add<'a>(
        &mut self,
        slice: &AllocationSlice,
        changes: &'a [SliceChange],
        keys: &[SliceKey],
    ) -> &'a [SliceChange] {
        // At most 11 bytes for each of six numbers: chunks stay far below their limit.
        let (now, later) = changes.split_at(changes.len().min(1 << 15));
        push_number(&mut self.slices, zigzag(slice.begin.0.wrapping_sub(self.end) as i64));
        push_number(&mut self.slices, slice.end.0.wrapping_sub(slice.begin.0));
        push_number(&mut self.slices, now.len() as u64);
        (self.end, self.count, self.rows) = (slice.end.0, self.count + 1, self.rows + now.len() as u64);
        let mut before = 0;
        for change in now {
            let likely = Likely::of(keys[change.key as usize], change.count);
            let live = change.live_count();
            let row = [
                i64::from(change.key) - before,
                change.count,
                change.bytes.wrapping_sub(likely.bytes()),
                live,
                change.live_bytes().wrapping_sub(likely.live_bytes(live, change.bytes)),
                change.temporary_count,
            ];
            before = change.key.into();
            for (column, n) in self.columns.iter_mut().zip(row) {
                push_number(column, zigzag(n));
            }
        }
        later
    }

    fn take(&mut self) -> Body {
        let chunk = std::mem::take(self);
        (self.first, self.end) = (chunk.first + chunk.rows, 0);
        let mut body = Body::default();
        body.number(chunk.first);
        body.number(chunk.rows);
        let columns = || std::iter::once(&chunk.slices).chain(&chunk.columns);
        columns().for_each(|column| body.number(column.len() as u64));
        columns().for_each(|column| body.raw.extend_from_slice(column));
        body.weight = chunk.rows + SLICE_WEIGHT * chunk.count;
        body
    }
}

/// What the other numbers of a change probably are.
struct Likely {
    count: i64,
    largest: i64,
}

impl Likely {
    fn of(key: SliceKey, count: i64) -> Likely {
        Likely { count, largest: *key.size_class.sizes().end() as i64 }
    }

    /// All blocks have the largest size.
    fn bytes(&self) -> i64 {
        self.count.wrapping_mul(self.largest)
    }

    /// Live ones have the average size, or the largest.
    fn live_bytes(&self, live: i64, bytes: i64) -> i64 {
        let share = (i128::from(live) * i128::from(bytes)).checked_div(self.count.into());
        share.map_or(live.wrapping_mul(self.largest), |share| share as i64)
    }
}

/// Reads a chunk of processes.
pub(crate) fn read_processes(
    mut source: Source<'_>,
    seen: &mut Totals,
    recording: &mut Recording,
) -> Result<(), Malformed> {
    let slices = &mut recording.allocations.slices;
    let first = source.number()?;
    if first == 0 && source.remaining() == 0 {
        // Everything before was forgotten.
        slices.forget();
        seen.slice_parts += 1;
    } else if first != slices.processes().len() as u64 {
        let known = slices.processes().len();
        return Err(source.malformed(format!("sliced processes from number {first}, expected {known}")));
    }
    while source.remaining() > 0 {
        source.spend(KEY_WEIGHT)?;
        let process = process_at(&mut source, recording.processes.len(), "slice")?;
        let begin = Nanos(source.number()?);
        let sampling = read_sampling(&mut source)?;
        slices.add_process(SlicedProcess { process, begin, sampling });
        seen.slice_parts += 1;
    }
    Ok(())
}

/// Reads a chunk of keys.
pub(crate) fn read_keys(
    mut source: Source<'_>,
    seen: &mut Totals,
    recording: &mut Recording,
) -> Result<(), Malformed> {
    let (processes, stacks) = (recording.processes.len() as u64, recording.stacks.nodes().len() as u64);
    let threads = recording.threads.len() as u64;
    let slices = &mut recording.allocations.slices;
    let (rows, mut columns) = split::<6>(&mut source, slices.keys().len() as u64, "keys of allocations")?;
    source.spend(rows as u64 * (KEY_WEIGHT - 1))?;
    let mut now = [0u64; 3];
    for _ in 0..rows {
        for (column, now) in [0, 1, 3].into_iter().zip(&mut now) {
            *now = now.wrapping_add(columns[column].signed()? as u64);
        }
        let [process, stack, task] = now;
        let thread = columns[2].number()?;
        for (column, n, most, what) in [
            (0, process, processes.wrapping_sub(1), "process"),
            (1, stack, stacks, "stack"),
            (2, thread, threads, "thread"),
        ] {
            if n > most || processes == 0 {
                return Err(columns[column].malformed(format!("{what} {n} beyond {most}")));
            }
        }
        let kind = match columns[4].byte()? {
            0 => AllocationKind::Block,
            1 => AllocationKind::Mapping,
            kind => return Err(columns[4].malformed(format!("kind of allocation {kind}"))),
        };
        slices.add_key(SliceKey {
            stack: StackId(stack as u32),
            thread: ThreadNumber(thread as u32),
            process: ProcessIndex(process as u32),
            task,
            kind,
            size_class: SizeClass(columns[5].byte()?),
        });
    }
    seen.slice_parts += rows as u64;
    columns.iter().try_for_each(Source::end)
}

/// Reads a chunk of slices, whose changes must begin with number `seen.slice_changes`.
pub(crate) fn read_slices(
    mut source: Source<'_>,
    seen: &mut Totals,
    recording: &mut Recording,
) -> Result<(), Malformed> {
    let (rows, [mut slices, mut columns @ ..]) =
        split::<{ COLUMNS + 1 }>(&mut source, seen.slice_changes, "changes of allocations")?;
    let to = &mut recording.allocations.slices;
    let (mut left, mut end) = (rows, 0u64);
    while slices.remaining() > 0 {
        source.spend(SLICE_WEIGHT)?;
        let begin = end.wrapping_add(slices.signed()? as u64);
        end = begin.wrapping_add(slices.number()?);
        let count = slices.number()?;
        // A slice may continue the one before, in another chunk.
        let follows = to.slices().last().is_none_or(|last| begin >= last.end.0 || end == last.end.0);
        let fits = |count: &usize| *count <= left && begin <= end && follows;
        let Some(count) = usize::try_from(count).ok().filter(fits) else {
            return Err(slices.malformed(format!("a slice of {count} of {left} changes")));
        };
        left -= count;
        let mut changes = Vec::with_capacity(count);
        let mut key = 0i64;
        for _ in 0..count {
            key = key.wrapping_add(columns[0].signed()?);
            let known = u32::try_from(key).ok().and_then(|key| to.keys().get(key as usize));
            let Some(known) = known else {
                return Err(columns[0].malformed(format!("key {key} of {}", to.keys().len())));
            };
            changes.push(read_change(&mut columns, *known, key as u32)?);
        }
        seen.slice_parts += 1;
        to.push(AllocationSlice { begin: Nanos(begin), end: Nanos(end), changes });
    }
    if left > 0 {
        return Err(slices.malformed(format!("{left} changes in no slice")));
    }
    seen.slice_changes += rows as u64;
    columns.iter().try_for_each(Source::end)
}

fn read_change(
    columns: &mut [Source<'_>; COLUMNS],
    known: SliceKey,
    key: u32,
) -> Result<SliceChange, Malformed> {
    let count = columns[1].signed()?;
    let likely = Likely::of(known, count);
    let bytes = likely.bytes().wrapping_add(columns[2].signed()?);
    let live = columns[3].signed()?;
    let live_bytes = likely.live_bytes(live, bytes).wrapping_add(columns[4].signed()?);
    Ok(SliceChange {
        key,
        count,
        bytes,
        freed_count: count.wrapping_sub(live),
        freed_bytes: bytes.wrapping_sub(live_bytes),
        temporary_count: columns[5].signed()?,
    })
}
