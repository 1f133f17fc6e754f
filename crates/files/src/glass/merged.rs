//! Reads a recording for reports, which do not need each moment: memory is that of the distinct
//! stacks, however long was recorded.

use super::ReadError;
use super::reader::{Completeness, GlassReader};
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use stackglass_profile::{Recording, Sample};
use std::hash::BuildHasher;
use std::io::Read;
use std::path::Path;

/// Reads a recording of any size in memory that grows with its distinct stacks only: samples
/// of one kind become one, wherever they stand, with the clock of the last. They come in the order
/// of these, so that a report meets them as it would meet them one by one.
///
/// `progress` is told, after each chunk, the bytes read and the bytes there are.
///
/// # Errors
/// As [`read()`](super::read()).
pub fn read_merged(
    path: impl AsRef<Path>,
    progress: impl FnMut(u64, u64),
) -> Result<(Recording, Completeness), ReadError> {
    merge(GlassReader::open(path)?, progress)
}

/// As [`read_merged`], from anything that can be read.
///
/// # Errors
/// As [`read()`](super::read()).
pub fn read_merged_from(input: impl Read) -> Result<(Recording, Completeness), ReadError> {
    merge(GlassReader::new(input)?, |_, _| {})
}

fn merge<R: Read>(
    mut reader: GlassReader<R>,
    mut progress: impl FnMut(u64, u64),
) -> Result<(Recording, Completeness), ReadError> {
    let mut merger = Merger::default();
    while reader.step(&mut |sample| merger.add(sample))? {
        progress(reader.position(), reader.length());
    }
    let (mut recording, completeness) = reader.finish();
    recording.samples = merger.finish();
    Ok((recording, completeness))
}

/// Samples of different kinds.
#[derive(Default)]
struct Merger {
    merged: Vec<Merged>,
    /// Indices into the merged ones, by kind. Small entries: most of them stay in the processor's caches.
    places: HashTable<usize>,
    hasher: RandomState,
    /// By thread number: where its last sample went. Sleepers stay where they are.
    last: Vec<usize>,
    /// Samples so far.
    count: u64,
}

struct Merged {
    sample: Sample,
    /// Which of all samples was the last of them.
    last: u64,
}

impl Merged {
    fn merge(&mut self, sample: &Sample, number: u64) -> bool {
        let taken = self.sample.merge(sample);
        if taken {
            self.last = number;
        }
        taken
    }
}

impl Merger {
    fn add(&mut self, sample: Sample) {
        self.count += 1;
        let thread = sample.thread.0 as usize;
        if self.last.len() <= thread {
            self.last.resize(thread + 1, usize::MAX);
        }
        if let Some(merged) = self.merged.get_mut(self.last[thread])
            && merged.merge(&sample, self.count)
        {
            return;
        }
        let Merger { merged, places, hasher, last, count } = self;
        let same = |place: &usize| merged[*place].sample.kind() == sample.kind();
        let hash = |place: &usize| hasher.hash_one(merged[*place].sample.kind());
        let new = merged.len();
        last[thread] = match places.entry(hasher.hash_one(sample.kind()), same, hash) {
            Entry::Occupied(mut entry) => {
                if merged[*entry.get()].merge(&sample, *count) {
                    *entry.get()
                } else {
                    // It holds as many hits as it can.
                    merged.push(Merged { sample, last: *count });
                    *entry.get_mut() = new;
                    new
                }
            }
            Entry::Vacant(entry) => {
                entry.insert(new);
                merged.push(Merged { sample, last: *count });
                new
            }
        };
    }

    fn finish(mut self) -> Vec<Sample> {
        self.merged.sort_unstable_by_key(|merged| merged.last);
        self.merged.into_iter().map(|merged| merged.sample).collect()
    }
}
