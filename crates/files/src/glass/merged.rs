//! Reads a recording with merged samples, for reports. Memory grows with the distinct stacks, not with the duration.

use super::error::ReadError;
use super::reader::{Completeness, GlassReader};
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use stackglass_profile::{Recording, Sample, TimeRange};
use std::hash::BuildHasher;
use std::io::Read;
use std::path::Path;

/// Reads a recording of any size in memory that grows only with its distinct stacks. All samples of one kind become one,
/// with the clock and the position of the last, so that reports meet them in the usual order.
///
/// After each chunk, `progress` gets the bytes read and the size of the file.
///
/// # Errors
/// As [`read()`](super::read()).
pub fn read_merged(
    path: impl AsRef<Path>,
    progress: impl FnMut(u64, u64),
) -> Result<(Recording, Completeness), ReadError> {
    merge(GlassReader::open(path)?, TimeRange::default(), progress)
}

/// As [`read_merged`], but only what lies in a part of the time (see [`Sample::within`]). All but the samples is that of the whole
/// recording: see [`Recording::become_part`].
///
/// # Errors
/// As [`read()`](super::read()).
pub fn read_merged_part(
    path: impl AsRef<Path>,
    range: TimeRange,
    progress: impl FnMut(u64, u64),
) -> Result<(Recording, Completeness), ReadError> {
    merge(GlassReader::open(path)?, range, progress)
}

/// As [`read_merged`], from any reader.
///
/// # Errors
/// As [`read()`](super::read()).
pub fn read_merged_from(input: impl Read) -> Result<(Recording, Completeness), ReadError> {
    merge(GlassReader::new(input)?, TimeRange::default(), |_, _| {})
}

fn merge<R: Read>(
    mut reader: GlassReader<R>,
    range: TimeRange,
    mut progress: impl FnMut(u64, u64),
) -> Result<(Recording, Completeness), ReadError> {
    let mut merger = Merger::default();
    loop {
        let moments = range.moments(&reader.recording().info);
        let goes_on = reader.step(&mut |sample| {
            let part = if range.is_all() { Some(sample) } else { sample.within(moments.0, moments.1) };
            part.into_iter().for_each(|part| merger.add(part));
        })?;
        if !goes_on {
            break;
        }
        progress(reader.position(), reader.length());
    }
    let (mut recording, completeness) = reader.finish();
    recording.samples = merger.finish();
    Ok((recording, completeness))
}

/// Merged samples, one for each kind.
#[derive(Default)]
struct Merger {
    merged: Vec<Merged>,
    /// Indices of merged samples, by kind. Small entries, so that most stay in the CPU's caches.
    places: HashTable<usize>,
    hasher: RandomState,
    /// By thread number: the index of its last sample. Sleeping threads keep theirs.
    last: Vec<usize>,
    /// Number of samples so far.
    count: u64,
}

struct Merged {
    sample: Sample,
    /// Number of the last sample merged into it.
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
                    // Its hits or time would overflow.
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
