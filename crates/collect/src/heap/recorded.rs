//! Blocks and sites of a process whose allocations are recorded.
//!
//! The tables with stacks and counters lie in a file that the process shares, or in private memory, which is read in the frozen image. A block
//! names its counter, which names the stack that allocated it.

use crate::Recorder;
use crate::allocations::{drain::HeapFile, groups};
use stackglass_heapgraph::blocks::recorded::{self, TablePlace};
use stackglass_heapgraph::blocks::{Blocks, SiteId};
use stackglass_heapgraph::image::Image;
use stackglass_profile::{Nanos, Recording, StackId};
use stackglass_wire::heap::{HEAP_FILE_PREFIX, HeapTables, MAX_COUNTERS, is_mapping_class};
use std::collections::HashMap;
use std::ffi::OsString;
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
    let path = table_file(image)?;
    let file = HeapFile::open(&path, OsString::new())?;
    Some(of_tables(image, &file.tables()))
}

/// The file with the tables, if it is mapped.
fn table_file(image: &Image) -> Option<PathBuf> {
    let prefix = format!("{HEAP_FILE_PREFIX}{}-", image.pid);
    image.mappings.iter().filter(|mapping| mapping.shared).find_map(|mapping| {
        let path = Path::new(&mapping.path);
        path.file_name()?.to_str()?.starts_with(&prefix).then(|| path.to_owned())
    })
}

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
