//! Blocks and sites of a process whose allocations are recorded.
//!
//! The tables with stacks and counters lie in memory that the process shares with its launcher, or in private memory. Both are read in
//! the core image. A block names its counter, which names the stack that allocated it.

use crate::allocation_groups::{self, RateCounts};
use stackglass_heapgraph::blocks::recorded::{self, TablePlace};
use stackglass_heapgraph::blocks::{Blocks, SiteId};
use stackglass_process_view::core_image::{CoreImage, Mapping};
use stackglass_procfs::status::Status;
use stackglass_profile::{Nanos, Recorder, Recording, StackId};
use stackglass_wire::heap::{
    COUNTERS, CounterEntry, HEAP_BYTES, HEAP_FILE_PREFIX, HeapTables, MAX_COUNTERS, MODULES, NODES,
    NodeEntry, THREADS, ThreadEntry, is_mapping_class,
};
use stackglass_wire::{SESSION_FILE, SessionPage};
use std::collections::HashMap;
use std::mem::offset_of;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::Ordering::*;

/// What the recorder knows of a process.
pub(super) struct Recorded {
    /// Its stacks, without names yet.
    pub recording: Recording,
    /// Where the live blocks are.
    pub table: Table,
    /// The stack of each site. Site 0 is unknown.
    pub stacks: Vec<StackId>,
    /// Allocations that were not recorded, for lack of memory.
    pub lost: u64,
    /// Only some allocations are recorded: others have blocks as well.
    pub is_partial: bool,
}

/// The table of live blocks. It is read after names are found, because both take much memory.
pub(super) struct Table {
    place: TablePlace,
    /// Address and entries of the table of the recorder's mappings.
    own_mappings: (u64, u32),
    /// By number.
    counters: Vec<Counter>,
}

/// A counter of live blocks.
#[derive(Clone, Copy, Default)]
struct Counter {
    site: SiteId,
    /// It counts mappings.
    is_mapping: bool,
}

impl Table {
    /// The live blocks; their sites are indices into [`Recorded::stacks`].
    pub(super) fn blocks(&self, image: &CoreImage) -> Blocks {
        let counter = |number: u32| self.counters.get(number as usize).copied().unwrap_or_default();
        let mut blocks = recorded::read(image, self.place, &|number| counter(number).is_mapping);
        blocks.sites.iter_mut().for_each(|site| *site = counter(site.0).site);
        blocks
    }

    /// Memory of the recorder in the process: the table, and its other mappings.
    pub(super) fn memory(&self, image: &CoreImage) -> Vec<Range<u64>> {
        let mut ranges = recorded::table_memory(image, self.place);
        let (table, entries) = self.own_mappings;
        ranges.extend(recorded::own_mappings(image, table, entries));
        ranges
    }
}

/// Reads the tables of a process; `None` if its allocations are not recorded now.
pub(super) fn read(image: &CoreImage) -> Option<Recorded> {
    let (mapping, session) = match shared_tables(image) {
        Some((mapping, session)) => (Some(mapping), Some(session)),
        None => (None, None),
    };
    if session.as_ref().is_some_and(|session| session.is_off) {
        return None;
    }
    let tables = match mapping {
        Some(mapping) => TablesCopy::read_at(image, mapping.range.start)?,
        None => TablesCopy::of_private(image)?,
    };
    let mut recorded = of_tables(image, &tables.tables());
    recorded.is_partial |= session.is_some_and(|session| session.is_asked);
    Some(recorded)
}

/// What the session of a process says about the recording of its allocations.
struct Session {
    /// It has ended: frees are not seen any more.
    is_off: bool,
    /// It began while the program ran.
    is_asked: bool,
}

/// The tables that a process shares with its launcher, and the state of its session.
fn shared_tables(image: &CoreImage) -> Option<(&Mapping, Session)> {
    let shared = || image.mappings.iter().filter(|mapping| mapping.shared);
    let tables = shared().find(|mapping| name_of(mapping).starts_with(HEAP_FILE_PREFIX))?;
    let folder = Path::new(&tables.path).parent()?;
    let page = shared().find(|mapping| Path::new(&mapping.path) == folder.join(SESSION_FILE))?;
    let field = |offset: usize| -> Option<u32> {
        let mut bytes = [0; 4];
        let at = page.range.start + offset as u64;
        (image.memory.read(at, &mut bytes) == bytes.len()).then(|| u32::from_le_bytes(bytes))
    };
    let asker = field(offset_of!(SessionPage, allocation_asker))?;
    let session = Session {
        is_off: field(offset_of!(SessionPage, allocations))? == 0,
        is_asked: asker != 0 && asker != field(offset_of!(SessionPage, launcher))?,
    };
    Some((tables, session))
}

/// Memory that a process shares with its launcher: all files in the folder of the session.
pub(super) fn shared_memory(image: &CoreImage) -> Vec<Range<u64>> {
    let folder = |mapping: &Mapping| Path::new(&mapping.path).parent().map(Path::to_owned);
    let shared = || image.mappings.iter().filter(|mapping| mapping.shared);
    let session = shared().find(|mapping| name_of(mapping) == SESSION_FILE).and_then(folder);
    let Some(session) = session else { return Vec::new() };
    let is_of_session = |mapping: &&Mapping| folder(mapping).as_ref() == Some(&session);
    shared().filter(is_of_session).map(|mapping| mapping.range.clone()).collect()
}

fn name_of(mapping: &Mapping) -> &str {
    mapping.path.rsplit('/').next().unwrap_or_default()
}

/// A copy of the tables of a program. A program that records its own allocations has them at the begin of a mapping.
struct TablesCopy {
    bytes: Vec<u8>,
    start: usize,
}

impl TablesCopy {
    fn of_private(image: &CoreImage) -> Option<TablesCopy> {
        let candidates = image.mappings.iter().filter(|mapping| {
            mapping.writable
                && !mapping.shared
                && mapping.inode == 0
                && mapping.range.end - mapping.range.start >= HEAP_BYTES as u64
        });
        candidates.map(|mapping| mapping.range.start).find_map(|at| TablesCopy::read_at(image, at))
    }

    fn read_at(image: &CoreImage, at: u64) -> Option<TablesCopy> {
        // Zeroed memory, of which only what is written takes pages.
        let mut copy = TablesCopy { bytes: vec![0; HEAP_BYTES + ALIGNMENT], start: 0 };
        copy.start = copy.bytes.as_ptr().align_offset(ALIGNMENT);
        copy.copy(image, at, 0..THREADS.start)?;
        let (magic, of) = (copy.tables().page().is_ready(), copy.tables().page().pid.load(Relaxed));
        let inner = Status::read(image.pid).map_or(0, |status| status.innermost_pid);
        if !magic || of != image.pid && of != inner {
            return None;
        }
        let used = copy.tables();
        let used = used.page();
        let parts = [
            (THREADS, used.threads.load(Relaxed) as usize + 1, size_of::<ThreadEntry>()),
            (MODULES, used.module_words.load(Relaxed) as usize, 8),
            (NODES, used.nodes().load(Relaxed) as usize, size_of::<NodeEntry>()),
            (COUNTERS, used.counters().load(Relaxed) as usize, size_of::<CounterEntry>()),
        ];
        for (table, entries, size) in parts {
            let bytes = entries.saturating_mul(size).min(table.len());
            copy.copy(image, at, table.start..table.start + bytes)?;
        }
        Some(copy)
    }

    fn copy(&mut self, image: &CoreImage, at: u64, range: Range<usize>) -> Option<()> {
        let into = &mut self.bytes[self.start..][range.clone()];
        (image.memory.read(at + range.start as u64, into) == range.len()).then_some(())
    }

    /// The tables. What it gives must not be used any more when `self` is dropped.
    fn tables(&self) -> HeapTables {
        let base = self.bytes[self.start..].as_ptr().cast_mut();
        // SAFETY: aligned, and as many bytes as the tables have. They are only read.
        unsafe { HeapTables::at(base) }
    }
}

/// Alignment of the tables, in bytes.
const ALIGNMENT: usize = 64;

fn of_tables(image: &CoreImage, tables: &HeapTables) -> Recorded {
    let page = tables.page();
    let place = TablePlace {
        last_leaf: page.last_leaf.load(Relaxed),
        granule_shift: page.granule_shift.load(Relaxed),
        reallocations: page.reallocations.load(Relaxed),
        reallocation_count: page.reallocation_count.load(Relaxed),
    };
    let own_mappings = (page.own_memory.load(Relaxed), page.own_memory_entries.load(Relaxed));
    let mut recorder = Recorder::new(Default::default());
    let identities =
        allocation_groups::add(tables, RateCounts::OfRecorded, Nanos(0), Vec::new(), &mut recorder);
    let mut stacks = vec![StackId(0)];
    let mut sites: HashMap<StackId, SiteId> = HashMap::from([(StackId(0), SiteId(0))]);
    let mut alive: Vec<u32> = recorded::counters(image, place).into_iter().collect();
    alive.retain(|number| (*number as usize) < MAX_COUNTERS);
    alive.sort_unstable();
    let mut counters = vec![Counter::default(); alive.last().map_or(0, |last| *last as usize + 1)];
    for number in alive {
        let counter = tables.counter(number);
        let (stack, _) = identities.of(counter);
        let site = *sites.entry(stack).or_insert_with(|| {
            stacks.push(stack);
            SiteId(stacks.len() as u32 - 1)
        });
        let is_mapping = is_mapping_class(counter.class.load(Relaxed));
        counters[number as usize] = Counter { site, is_mapping };
    }
    let recording = recorder.into_recording();
    let processes = &recording.allocations.processes;
    Recorded {
        is_partial: processes
            .iter()
            .any(|process| !matches!(process.sampling, stackglass_profile::AllocationSampling::Every)),
        lost: page.lost().load(Relaxed),
        table: Table { place, own_mappings, counters },
        stacks,
        recording,
    }
}
