//! Reads a recording for reports, which do not need each moment: memory is that of the distinct
//! stacks, however long was recorded.

use super::ReadError;
use super::reader::{Completeness, GlassReader};
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use stackglass_profile::{Cut, Recording, Sample, StackId, State, ThreadNumber};
use std::hash::BuildHasher;
use std::io::Read;
use std::path::Path;

/// Reads a recording of any size in memory that grows with its distinct stacks only: samples
/// that differ in clock, time and hits become one, wherever they stand. They come in order of
/// first appearance; the clock is that of the last.
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
    recording.samples = merger.samples;
    Ok((recording, completeness))
}

/// Samples that differ in more than clock, time and hits.
#[derive(Default)]
struct Merger {
    samples: Vec<Sample>,
    /// Indices into the samples, by kind. Small entries: most of them stay in the processor's caches.
    places: HashTable<usize>,
    hasher: RandomState,
    /// By thread number: where its last sample went. Sleepers stay where they are.
    last: Vec<usize>,
}

/// What samples that become one have in common.
type Kind = (StackId, ThreadNumber, u64, State, Option<Cut>);

fn kind(sample: &Sample) -> Kind {
    (sample.stack, sample.thread, sample.task, sample.state, sample.cut)
}

impl Merger {
    fn add(&mut self, sample: Sample) {
        let thread = sample.thread.0 as usize;
        if self.last.len() <= thread {
            self.last.resize(thread + 1, usize::MAX);
        }
        if let Some(merged) = self.samples.get_mut(self.last[thread])
            && merged.take_in(&sample)
        {
            return;
        }
        let Merger { samples, places, hasher, last } = self;
        let same = |place: &usize| kind(&samples[*place]) == kind(&sample);
        let hash = |place: &usize| hasher.hash_one(kind(&samples[*place]));
        match places.entry(hasher.hash_one(kind(&sample)), same, hash) {
            Entry::Occupied(entry) => {
                last[thread] = *entry.get();
                samples[*entry.get()].take_in(&sample);
            }
            Entry::Vacant(entry) => {
                last[thread] = samples.len();
                entry.insert(samples.len());
                samples.push(sample);
            }
        }
    }
}
