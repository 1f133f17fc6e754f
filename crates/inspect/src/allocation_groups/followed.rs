//! Reads the counters of a process again and again while it runs: what has changed since the last time?

use super::identities::Identities;
use super::{RateCounts, Scale, add_known, counts, key_of, sampling_of};
use stackglass_profile::{
    AllocationCounts, MemoryPoint, Nanos, ProcessIndex, Recorder, SliceChange, SlicedProcess,
};
use stackglass_wire::heap::{CounterEntry, HeapTables, MAX_COUNTERS};
use std::sync::atomic::Ordering::*;

/// What is known of a counter.
#[derive(Clone, Copy)]
struct Seen {
    /// The sum of its words, which only grow.
    words: u64,
    /// Its counts at the last reading: `key` is its key in the recording, or [`NO_KEY`].
    counts: SliceChange,
}

const NO_KEY: u32 = u32::MAX;

impl Default for Seen {
    fn default() -> Seen {
        Seen { words: 0, counts: SliceChange { key: NO_KEY, ..SliceChange::default() } }
    }
}

/// A process whose counters are read while it runs.
#[derive(Default)]
pub struct Followed {
    identities: Identities,
    seen: Vec<Seen>,
    /// The process, once it was added to the slices.
    process: Option<ProcessIndex>,
}

impl Followed {
    /// The counters that have changed since the last time, and by how much. The key of a change is the number of its counter.
    pub fn changes(&mut self, tables: &HeapTables, rate_counts: RateCounts) -> Vec<SliceChange> {
        let count = tables.page().counters().load(Acquire).min(MAX_COUNTERS as u32);
        let scale = Scale::from_sampling(sampling_of(tables, rate_counts));
        if self.seen.len() < count as usize {
            self.seen.resize(count as usize, Seen::default());
        }
        let mut changes = Vec::new();
        for (number, seen) in self.seen.iter_mut().enumerate().take(count as usize).skip(1) {
            let entry = tables.counter(number as u32);
            let words = words_of(entry);
            if words != seen.words {
                seen.words = words;
                let change = seen.change(number as u32, &counts(entry, 0, &scale));
                changes.extend((!change.is_none()).then_some(change));
            }
        }
        changes
    }

    /// Replaces the numbers of counters in changes by those of keys in the recording. Changes for which it has no room are dropped.
    pub fn resolve(
        &mut self,
        tables: &HeapTables,
        rate_counts: RateCounts,
        changes: &mut Vec<SliceChange>,
        recorder: &mut Recorder,
    ) {
        let Some(process) = self.identities.update(tables, recorder) else { return changes.clear() };
        self.add_process(tables, rate_counts, process, recorder);
        for change in changes {
            let Some(seen) = self.seen.get_mut(change.key as usize) else { continue };
            if seen.counts.key == NO_KEY {
                let entry = tables.counter(change.key);
                let key = key_of(entry, process, self.identities.find(tables, entry, recorder));
                seen.counts.key = recorder.recording_mut().allocations.slices.add_key(key);
            }
            change.key = seen.counts.key;
        }
    }

    /// Adds the groups of the process to the recording, as [`add`](super::add). Returns what has changed since the last time, with keys of
    /// the recording.
    pub fn finish(
        mut self,
        tables: &HeapTables,
        rate_counts: RateCounts,
        end: Nanos,
        memory: Vec<MemoryPoint>,
        recorder: &mut Recorder,
    ) -> Vec<SliceChange> {
        let mut changes = Vec::new();
        if let Some(process) = self.identities.update(tables, recorder) {
            self.add_process(tables, rate_counts, process, recorder);
        }
        let Followed { mut identities, mut seen, .. } = self;
        add_known(
            tables,
            rate_counts,
            end,
            memory,
            recorder,
            &mut identities,
            &mut |number, all, key, counts| {
                let number = number as usize;
                if seen.len() <= number {
                    seen.resize(number + 1, Seen::default());
                }
                let seen = &mut seen[number];
                let mut change = seen.change(number as u32, counts);
                if !change.is_none() {
                    if seen.counts.key == NO_KEY {
                        seen.counts.key = all.slices.add_key(key);
                    }
                    change.key = seen.counts.key;
                    changes.push(change);
                }
            },
        );
        changes
    }

    fn add_process(
        &mut self,
        tables: &HeapTables,
        rate_counts: RateCounts,
        process: ProcessIndex,
        recorder: &mut Recorder,
    ) {
        if self.process.replace(process).is_none() {
            let begin = Nanos(tables.page().begin_ns.load(Relaxed));
            let sampling = sampling_of(tables, rate_counts);
            let slices = &mut recorder.recording_mut().allocations.slices;
            slices.add_process(SlicedProcess { process, begin, sampling });
        }
    }
}

impl Seen {
    /// What has changed since the last time, which is now.
    fn change(&mut self, number: u32, now: &AllocationCounts) -> SliceChange {
        let key = self.counts.key;
        let before = std::mem::replace(
            &mut self.counts,
            SliceChange {
                key,
                count: now.count as i64,
                bytes: now.bytes as i64,
                freed_count: now.freed_count as i64,
                freed_bytes: now.freed_bytes as i64,
                temporary_count: now.temporary_count as i64,
            },
        );
        let now = &self.counts;
        SliceChange {
            key: number,
            count: now.count.wrapping_sub(before.count),
            bytes: now.bytes.wrapping_sub(before.bytes),
            freed_count: now.freed_count.wrapping_sub(before.freed_count),
            freed_bytes: now.freed_bytes.wrapping_sub(before.freed_bytes),
            temporary_count: now.temporary_count.wrapping_sub(before.temporary_count),
        }
    }
}

/// The sum of the words that only grow: it is another one if any of them is.
fn words_of(entry: &CounterEntry) -> u64 {
    let words = [
        &entry.count,
        &entry.bytes,
        &entry.freed_count,
        &entry.freed_bytes,
        &entry.others_count,
        &entry.others_bytes,
        &entry.temporary_count,
    ];
    words.iter().fold(0, |sum, word| sum.wrapping_add(word.load(Relaxed)))
}
