//! Chunks of samples in columns. Each sample is stored as its difference from the thread's previous sample in the chunk,
//! since stack and time nearly always continue there.

use super::bytes::{Body, Malformed, Source};
use super::columns::{Columns, split};
use super::spreads::{SpreadWriter, Spreads};
use stackglass_profile::{Cut, Nanos, Sample, StackId, State, ThreadNumber};

const THREAD: usize = 0;
const STACK: usize = 1;
const CLOCK: usize = 2;
const TIME: usize = 3;
const KIND: usize = 4;
const CUT: usize = 5;
const TASK: usize = 6;
const HITS: usize = 7;
const COLUMNS: usize = 8;

/// Bits of the kind column: 0–1 state, then these, 4–7 hits.
const HAS_CUT: u8 = 4;
const OTHER_TASK: u8 = 8;
/// Hits that do not fit into four bits are in a separate column.
const MANY_HITS: u8 = 15;

/// The previous sample of a thread within a chunk.
#[derive(Clone, Copy, Default)]
struct Previous {
    chunk: u64,
    stack: u32,
    task: u64,
    clock: Option<u64>,
}

/// The previous samples of all threads. They are reset with each chunk, so that chunks can be read alone.
#[derive(Default)]
struct Threads {
    chunk: u64,
    previous: Vec<Previous>,
}

impl Threads {
    fn next_chunk(&mut self) {
        self.chunk += 1;
    }

    fn of(&mut self, thread: u32) -> &mut Previous {
        let index = thread as usize;
        if self.previous.len() <= index {
            self.previous.resize(index + 1, Previous::default());
        }
        let previous = &mut self.previous[index];
        if previous.chunk != self.chunk {
            *previous = Previous { chunk: self.chunk, ..Previous::default() };
        }
        previous
    }
}

/// The expected time of a sample: since the thread's previous one.
fn likely_time(previous: &Previous, clock: u64) -> u64 {
    previous.clock.map_or(0, |before| clock.wrapping_sub(before))
}

/// Builds chunks of samples.
pub(crate) struct SampleWriter {
    threads: Threads,
    columns: Columns<COLUMNS>,
    spreads: SpreadWriter,
    clock: u64,
}

impl SampleWriter {
    /// The next row is number `first`.
    pub fn starting_at(first: u64) -> SampleWriter {
        let mut threads = Threads::default();
        threads.next_chunk();
        SampleWriter {
            threads,
            columns: Columns::starting_at(first),
            spreads: SpreadWriter::default(),
            clock: 0,
        }
    }

    /// Adds a row. Returns whether the chunk should be taken.
    pub fn push(&mut self, sample: &Sample) -> bool {
        let previous = self.threads.of(sample.thread.0);
        let columns = &mut self.columns;
        columns.number(THREAD, sample.thread.0.into());
        let same = sample.stack.0 == previous.stack;
        columns.number(STACK, if same { 0 } else { u64::from(sample.stack.0) + 1 });
        columns.signed(CLOCK, sample.clock.0.wrapping_sub(self.clock) as i64);
        let likely = likely_time(previous, sample.clock.0);
        columns.signed(TIME, sample.time.0.wrapping_sub(likely) as i64);
        let mut kind = sample.state as u8 & 3; // waiting, 4, is 0 here
        if let Some(Cut(reason)) = sample.cut {
            kind |= HAS_CUT;
            columns.byte(CUT, reason);
        }
        if sample.task != previous.task {
            kind |= OTHER_TASK;
            columns.number(TASK, sample.task);
        }
        let few = u8::try_from(sample.hits).ok().filter(|hits| *hits < MANY_HITS);
        if few.is_none() {
            columns.number(HITS, sample.hits.into());
        }
        columns.byte(KIND, kind | few.unwrap_or(MANY_HITS) << 4);
        self.spreads.push(sample.spread.0);
        previous.stack = sample.stack.0;
        previous.task = sample.task;
        previous.clock = Some(sample.clock.0);
        self.clock = sample.clock.0;
        columns.end_row()
    }

    /// Returns the chunk if it has rows, and that of their spreads, which precedes it, if they have any.
    pub fn take(&mut self) -> Option<(Option<Body>, Body)> {
        self.threads.next_chunk();
        self.clock = 0;
        let spreads = self.spreads.take();
        Some((spreads, self.columns.take()?))
    }
}

/// Reads chunks of samples.
#[derive(Default)]
pub(crate) struct SampleReader {
    threads: Threads,
}

/// Sizes of the tables that samples point into.
pub(crate) struct TableSizes {
    /// Highest thread number.
    pub threads: u32,
    /// Highest stack id.
    pub stacks: u32,
}

impl SampleReader {
    /// Calls `each` with every sample of a chunk, whose rows must begin with number `first` and have these `spreads`. Returns their
    /// number.
    pub fn read(
        &mut self,
        mut source: Source<'_>,
        first: u64,
        sizes: &TableSizes,
        spreads: &mut Spreads,
        mut each: impl FnMut(Sample),
    ) -> Result<u64, Malformed> {
        let (rows, mut columns) = split::<COLUMNS>(&mut source, first, "samples")?;
        self.threads.next_chunk();
        let mut clock = 0u64;
        for row in 0..rows {
            let thread = columns[THREAD].number32()?;
            if thread == 0 || thread > sizes.threads {
                return Err(columns[THREAD].malformed(format!("thread {thread} of {}", sizes.threads)));
            }
            let previous = self.threads.of(thread);
            let stack = match columns[STACK].number()? {
                0 => previous.stack,
                n if n - 1 <= u64::from(sizes.stacks) => (n - 1) as u32,
                n => return Err(columns[STACK].malformed(format!("stack {} of {}", n - 1, sizes.stacks))),
            };
            clock = clock.wrapping_add(columns[CLOCK].signed()? as u64);
            let time = likely_time(previous, clock).wrapping_add(columns[TIME].signed()? as u64);
            let kind = columns[KIND].byte()?;
            let state = match kind & 3 {
                0 => State::Waiting,
                1 => State::Awake,
                2 => State::Asleep,
                _ => State::Task,
            };
            let cut = if kind & HAS_CUT != 0 { Some(Cut(columns[CUT].byte()?)) } else { None };
            if kind & OTHER_TASK != 0 {
                previous.task = columns[TASK].number()?;
            }
            let hits = match kind >> 4 {
                MANY_HITS => columns[HITS].number32()?,
                few => few.into(),
            };
            previous.stack = stack;
            previous.clock = Some(clock);
            each(Sample {
                stack: StackId(stack),
                thread: ThreadNumber(thread),
                task: previous.task,
                clock: Nanos(clock),
                state,
                cut,
                hits,
                time: Nanos(time),
                spread: Nanos(spreads.of_row(row as u64)),
            });
        }
        spreads.clear();
        for column in &columns {
            column.end()?;
        }
        Ok(rows as u64)
    }
}
