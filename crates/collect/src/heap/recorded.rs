//! Blocks and sites of a process whose allocations are recorded.
//!
//! The tables with stacks and counters lie in a file that the process shares, or in private memory, which is read in the frozen image. A block
//! names its counter, which names the stack that allocated it.

use crate::Recorder;
use crate::allocations::groups;
use crate::allocations::table_file::TableFile;
use stackglass_heapgraph::blocks::recorded::{self, TablePlace};
use stackglass_heapgraph::blocks::{Blocks, SiteId};
use stackglass_heapgraph::image::Image;
use stackglass_profile::{Nanos, Recording, StackId};
use stackglass_wire::heap::{
    COUNTERS, CounterEntry, HEAP_BYTES, HEAP_FILE_PREFIX, HeapTables, MAX_COUNTERS, MODULES, NODES,
    NodeEntry, THREADS, ThreadEntry, is_mapping_class,
};
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::*;

/// What the recorder knows of a process.
pub(super) struct Recorded {
    /// Its stacks, without names yet.
    pub recording: Recording,
    /// The live blocks; their sites are indices into `stacks`.
    pub blocks: Blocks,
    /// The stack of each site. Site 0 is unknown.
    pub stacks: Vec<StackId>,
    /// Allocations that were not recorded, for lack of memory.
    pub lost: u64,
    /// Only some allocations are recorded.
    pub is_sampled: bool,
}

/// Reads the tables of a process; `None` if its allocations are not recorded.
pub(super) fn read(image: &Image) -> Option<Recorded> {
    if let Some(path) = table_file(image) {
        let file = TableFile::open(&path)?;
        return Some(of_tables(image, &file.tables()));
    }
    let private = PrivateTables::read(image)?;
    Some(of_tables(image, &private.tables()))
}

/// The file with the tables, if it is mapped.
fn table_file(image: &Image) -> Option<PathBuf> {
    let prefix = format!("{HEAP_FILE_PREFIX}{}-", image.pid);
    image.mappings.iter().filter(|mapping| mapping.shared).find_map(|mapping| {
        let path = Path::new(&mapping.path);
        path.file_name()?.to_str()?.starts_with(&prefix).then(|| path.to_owned())
    })
}

/// A copy of the tables of a program that records its own allocations: they are the first of a mapping.
struct PrivateTables {
    bytes: Vec<u8>,
    start: usize,
}

impl PrivateTables {
    fn read(image: &Image) -> Option<PrivateTables> {
        let candidates = image.mappings.iter().filter(|mapping| {
            mapping.writable
                && !mapping.shared
                && mapping.inode == 0
                && mapping.range.end - mapping.range.start >= HEAP_BYTES as u64
        });
        candidates.map(|mapping| mapping.range.start).find_map(|at| PrivateTables::read_at(image, at))
    }

    fn read_at(image: &Image, at: u64) -> Option<PrivateTables> {
        // Zeroed memory, of which only what is written takes pages.
        let mut copy = PrivateTables { bytes: vec![0; HEAP_BYTES + ALIGNMENT], start: 0 };
        copy.start = copy.bytes.as_ptr().align_offset(ALIGNMENT);
        copy.copy(image, at, 0..THREADS.start)?;
        let (magic, of) = (copy.tables().page().is_ready(), copy.tables().page().pid.load(Relaxed));
        if !magic || of != image.pid {
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

    fn copy(&mut self, image: &Image, at: u64, range: Range<usize>) -> Option<()> {
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

fn of_tables(image: &Image, tables: &HeapTables) -> Recorded {
    let page = tables.page();
    let place = TablePlace {
        last_leaf: page.last_leaf.load(Relaxed),
        granule_shift: page.granule_shift.load(Relaxed),
    };
    let is_mapping = |counter: u32| {
        (counter as usize) < MAX_COUNTERS && is_mapping_class(tables.counter(counter).class.load(Relaxed))
    };
    let mut blocks = recorded::read(image, place, &is_mapping);
    let mut recorder = Recorder::new(Default::default());
    let identities = groups::add(tables, Nanos(0), Vec::new(), &mut recorder);
    let mut stacks = vec![StackId(0)];
    let mut sites: HashMap<StackId, SiteId> = HashMap::from([(StackId(0), SiteId(0))]);
    let mut site_of_counter: HashMap<u32, SiteId> = HashMap::new();
    for site in &mut blocks.sites {
        let counter = site.0;
        *site = *site_of_counter.entry(counter).or_insert_with(|| {
            if counter as usize >= MAX_COUNTERS {
                return SiteId(0);
            }
            let (stack, _) = identities.of(tables.counter(counter));
            *sites.entry(stack).or_insert_with(|| {
                stacks.push(stack);
                SiteId(stacks.len() as u32 - 1)
            })
        });
    }
    let recording = recorder.into_recording();
    let processes = &recording.allocations.processes;
    Recorded {
        is_sampled: processes
            .iter()
            .any(|process| !matches!(process.sampling, stackglass_profile::AllocationSampling::Every)),
        lost: page.lost().load(Relaxed),
        blocks,
        stacks,
        recording,
    }
}
