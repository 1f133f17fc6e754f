//! Allocations by slice of time: when counters are read, and when what has changed goes to the recording.
//!
//! A slice is at least 50 ms long, and 100 times as long as the CPU time that its reading and writing takes. So this needs at most one
//! percent of a CPU, however many counters there are. Threads and processes are known in the recording a moment after they have begun:
//! slices go there with a delay.

use super::drain::HeapFile;
use stackglass_inspect::allocation_groups::RateCounts;
use stackglass_procfs::clock::{monotonic, thread_cpu};
use stackglass_profile::{AllocationSlice, Nanos, Recorder, SHORTEST_SLICE, SliceChange};
use std::collections::VecDeque;

/// After this time, ns, the recording knows all threads and processes that a slice tells of.
const DELAY: u64 = 300_000_000;
/// The part of a CPU that slices may use is one in this many.
const PART: u64 = 100;
/// CPU time for a change to be stored and written, ns. Measured: 0.15 µs.
const OF_CHANGE: u64 = 200;

/// The slices of all processes of a session that are not in the recording yet.
pub(super) struct Slices {
    /// When the current slice began.
    begin: u64,
    /// Its least length.
    length: u64,
    /// CPU time of the last slice, ns.
    cost: u64,
    /// Those that have ended.
    ended: VecDeque<Ended>,
    /// Changes in the current slice of processes that have ended, with keys of the recording.
    current: Vec<SliceChange>,
}

struct Ended {
    begin: u64,
    end: u64,
    /// With keys of the recording.
    changes: Vec<SliceChange>,
    /// By number of a file: changes with numbers of counters.
    by_file: Vec<(u32, Vec<SliceChange>)>,
}

impl Slices {
    pub(super) fn new() -> Slices {
        Slices {
            begin: monotonic(),
            length: SHORTEST_SLICE.0,
            cost: 0,
            ended: VecDeque::new(),
            current: Vec::new(),
        }
    }

    /// Ends the current slice if it is long enough.
    pub(super) fn update(&mut self, files: &mut [HeapFile]) {
        let now = monotonic();
        let least = self.length.max(self.cost.saturating_mul(PART));
        if now.saturating_sub(self.begin) >= least {
            self.end_slice(now, files);
        }
    }

    fn end_slice(&mut self, now: u64, files: &mut [HeapFile]) {
        let before = thread_cpu();
        let by_file: Vec<(u32, Vec<SliceChange>)> = files
            .iter_mut()
            .map(|file| (file.number, file.changes()))
            .filter(|(_, c)| !c.is_empty())
            .collect();
        let changes = std::mem::take(&mut self.current);
        let count = changes.len() + by_file.iter().map(|(_, changes)| changes.len()).sum::<usize>();
        self.cost = thread_cpu().saturating_sub(before) + count as u64 * OF_CHANGE;
        self.ended.push_back(Ended { begin: self.begin, end: now, changes, by_file });
        self.begin = now;
    }

    /// Moves slices to the recording that it can understand by now.
    pub(super) fn hand_over(&mut self, files: &mut [HeapFile], recorder: &mut Recorder) {
        let now = monotonic();
        // The last one stays, since the rest at the end of the recording may become a part of it.
        while self.ended.len() > 1 && self.ended[0].end + DELAY <= now {
            self.hand_over_first(files, recorder);
        }
        self.length = recorder.recording().allocations.slices.length().0;
    }

    fn hand_over_first(&mut self, files: &mut [HeapFile], recorder: &mut Recorder) {
        let Some(slice) = self.ended.pop_front() else { return };
        let Ended { begin, end, mut changes, by_file } = slice;
        for (number, mut of_file) in by_file {
            if let Some(file) = files.iter_mut().find(|file| file.number == number) {
                file.resolve(&mut of_file, recorder);
                changes.append(&mut of_file);
            }
        }
        changes.sort_unstable_by_key(|change| change.key);
        let slice = AllocationSlice { begin: Nanos(begin), end: Nanos(end), changes };
        recorder.recording_mut().allocations.slices.push(slice);
    }

    /// A process has ended: the recording understands its changes after this only.
    pub(super) fn resolve(&mut self, file: &mut HeapFile, recorder: &mut Recorder) {
        for slice in &mut self.ended {
            let Some(at) = slice.by_file.iter().position(|(number, _)| *number == file.number) else {
                continue;
            };
            let (_, mut changes) = slice.by_file.swap_remove(at);
            file.resolve(&mut changes, recorder);
            slice.changes.append(&mut changes);
        }
    }

    /// Adds the last changes of a process to the current slice.
    pub(super) fn add(&mut self, mut changes: Vec<SliceChange>) {
        self.current.append(&mut changes);
    }

    /// All processes have been read: moves everything to the recording.
    pub(super) fn finish(mut self, recorder: &mut Recorder) {
        self.end_slice(monotonic(), &mut []);
        while !self.ended.is_empty() {
            self.hand_over_first(&mut [], recorder);
        }
    }

    /// Forgets all of them.
    pub(super) fn forget(&mut self) {
        *self = Slices::new();
    }
}

/// What `counts` are: as in the groups.
pub(super) const RATE_COUNTS: RateCounts = RateCounts::OfAll;
