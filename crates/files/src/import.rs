//! Conversion of word buffers to recordings.

use foldhash::HashMap;
use stackglass_profile::{
    Data, DataError, Dictionary, Frame, Location, LocationId, Nanos, Process, ProcessIndex, Recording,
    Sample, State, Thread, ThreadNumber,
};
use std::collections::BTreeSet;

/// Converts a word buffer and its dictionary to a recording.
///
/// Each sample has one hit and no time. The delay is unknown, and 0 makes reports count hits. Consecutive samples that
/// differ only in clock are merged. Threads keep small numbers, and tasks keep their ids. A buffer without metadata
/// becomes one thread.
///
/// # Errors
/// If metadata is truncated.
pub fn recording_of(data: &Data, dictionary: &Dictionary) -> Result<Recording, DataError> {
    let with_metadata;
    let data = if data.has_meta() {
        data
    } else {
        with_metadata = data.strip_meta()?.add_fake_meta(1, 1)?;
        &with_metadata
    };
    let mut recording = Recording { processes: vec![Process::default()], ..Recording::default() };
    let threads = number_threads(&mut recording, data.thread_ids(None), dictionary);
    let mut blocks: Vec<_> = data.blocks().collect();
    blocks.reverse();
    let mut locations = Vec::new();
    for block in blocks {
        locations.clear();
        for address in block.addresses {
            let location = recording.stacks.intern_location(Location { module: None, offset: *address });
            locations.push(location);
        }
        let clock = Nanos(block.clock);
        let stack = recording.stacks.intern(&locations);
        recording.push(Sample {
            stack,
            thread: threads[&block.thread],
            task: block.task,
            clock,
            state: match block.state {
                2 => State::Asleep,
                3 => State::Task,
                _ => State::Awake,
            },
            cut: None,
            hits: 1,
            time: Nanos(0),
            spread: Nanos(0),
        });
    }
    // Keeps addresses without samples, so that writing gives the same file.
    for address in dictionary.addresses() {
        let location = recording.stacks.intern_location(Location { module: None, offset: address });
        let frames = dictionary.get(address).unwrap_or(&[]).iter().cloned();
        recording.symbols.set(location, frames);
        if dictionary.dispatches(address) {
            recording.symbols.set_dispatches(location);
        }
    }
    for id in 0..recording.stacks.locations().len() as u32 {
        for frame in recording.symbols.frames_of(LocationId(id)).cloned().collect::<Vec<Frame>>() {
            if let Some(short) = dictionary.short_path(&frame.file) {
                recording.symbols.set_short_path(frame.file, short.clone());
            }
        }
    }
    Ok(recording)
}

/// Threads beyond this number get the next free one.
const KEPT: u64 = 4096;

fn number_threads(
    recording: &mut Recording,
    ids: Vec<u64>,
    dictionary: &Dictionary,
) -> HashMap<u64, ThreadNumber> {
    let (kept, others): (BTreeSet<u64>, BTreeSet<u64>) =
        ids.into_iter().partition(|id| (1..=KEPT).contains(id));
    let highest = kept.last().copied().unwrap_or(0);
    let mut numbers = HashMap::default();
    for id in (1..=highest).chain(others) {
        let label = dictionary.thread_label(id);
        recording.threads.push(Thread {
            process: ProcessIndex(0),
            tid: u32::try_from(id).unwrap_or(0),
            name: if label == "default" { "".into() } else { label.into() },
            start: Nanos(0),
            end: None,
            cpu: Nanos(0),
            blocked_signal: false,
        });
        numbers.insert(id, ThreadNumber(recording.threads.len() as u32));
    }
    numbers
}
