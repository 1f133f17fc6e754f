//! Conversion of a recording to Julia's word buffer: addresses for locations, and words for samples.
//!
//! A recording has locations as (module, offset). A word buffer needs one number for each, independent of where processes
//! mapped the module. So each module gets a separate address range.

use crate::{
    Address, Data, Dictionary, Frame, LocationId, Recording, Sample, State, TaskId, ThreadNumber, snapshots,
};
use foldhash::HashSet;

/// Number of address bits for the offset in a module.
const OFFSET_BITS: u32 = 47;

/// One address for each location of a recording.
#[derive(Clone, Debug)]
pub struct Addresses {
    by_location: Vec<Address>,
}

impl Addresses {
    /// Assigns the addresses: `(module + 1) << 47 | offset`, and the address itself for code in no module. All are distinct
    /// and none is 0.
    pub fn new(recording: &Recording) -> Addresses {
        let locations = recording.stacks.locations();
        let mut used = HashSet::with_capacity_and_hasher(locations.len(), Default::default());
        let mut spare = u64::MAX / 2;
        let choose = |location: &crate::Location| {
            let module = location.module.map_or(0, |module| u64::from(module.0) + 1);
            let plain = module << OFFSET_BITS | location.offset;
            let fits =
                module >> (64 - OFFSET_BITS) == 0 && (module == 0 || location.offset >> OFFSET_BITS == 0);
            if fits && plain != 0 && used.insert(plain) {
                return Address(plain);
            }
            while !used.insert(spare) {
                spare -= 1;
            }
            Address(spare)
        };
        Addresses { by_location: locations.iter().map(choose).collect() }
    }

    /// The address of a location.
    ///
    /// # Panics
    /// If the location is not from the recording.
    pub fn of(&self, location: LocationId) -> Address {
        self.by_location[location.0 as usize]
    }
}

/// Whether Julia's layout has a word for the state of a sample.
fn is_expressible(sample: &Sample) -> bool {
    sample.state != State::Waiting
}

impl Recording {
    /// Snapshots that [`Recording::words`] leaves out: of threads that waited for a CPU.
    pub fn unexpressed(&self) -> u64 {
        let samples = self.samples.iter().zip(snapshots(self)).filter(|(sample, _)| !is_expressible(sample));
        samples.map(|(_, count)| count).fold(0, u64::saturating_add)
    }

    /// The task of a sample. A thread outside tasks is its own task: its number with the highest bit set.
    pub fn task_of(&self, sample: &Sample) -> TaskId {
        match sample.task {
            0 => TaskId(1 << 63 | u64::from(sample.thread.0)),
            task => TaskId(task),
        }
    }

    /// Number of words that [`Recording::words`] yields.
    pub fn words_len(&self) -> u64 {
        let mut depths = vec![0_u32; self.stacks.nodes().len() + 1];
        for (index, (caller, _)) in self.stacks.nodes().iter().enumerate() {
            depths[index + 1] = depths[caller.0 as usize] + 1;
        }
        let words = |(sample, count): (&Sample, u64)| {
            let block = u64::from(depths[sample.stack.0 as usize]) + super::OVERHEAD_WORDS as u64;
            block.saturating_mul(count)
        };
        let samples = self.samples.iter().zip(snapshots(self)).filter(|(sample, _)| is_expressible(sample));
        samples.map(words).fold(0, u64::saturating_add)
    }

    /// The samples as words in Julia's layout, one block for each snapshot, computed on demand. The snapshots of a sample are
    /// spread evenly over the time it stands for.
    ///
    /// Time in which a thread waited for a CPU is left out: the layout has no word for it.
    pub fn words(&self) -> impl Iterator<Item = u64> + '_ {
        let addresses = Addresses::new(self);
        let counts = snapshots(self);
        let samples = self.samples.iter().zip(counts).filter(|(sample, _)| is_expressible(sample));
        samples.flat_map(move |(sample, count)| {
            let stack: Vec<u64> = self.stacks.walk(sample.stack).map(|id| addresses.of(id).0).collect();
            let step = sample.time.0.checked_div(count).unwrap_or(0);
            let task = self.task_of(sample).0;
            (0..count).rev().flat_map(move |before_last| {
                let clock = sample.clock.0.saturating_sub(step.saturating_mul(before_last)).max(1);
                let end = [u64::from(sample.thread.0), task, clock, sample.state.word(), 0, 0];
                stack.clone().into_iter().chain(end)
            })
        })
    }

    /// The samples as a buffer in Julia's layout. It may be large: check [`Recording::words_len`] first.
    pub fn data(&self) -> Data {
        Data::new(self.words().collect())
    }

    /// Names for the addresses of [`Recording::data`].
    pub fn dictionary(&self) -> Dictionary {
        let addresses = Addresses::new(self);
        let mut dictionary = Dictionary::new();
        for index in 0..self.stacks.locations().len() {
            let id = LocationId(index as u32);
            let address = addresses.of(id).0;
            let mut frames: Vec<Frame> = self.symbols.frames_of(id).cloned().collect();
            if frames.is_empty() {
                frames.push(Frame::unknown(address));
            }
            frames.iter_mut().for_each(|frame| frame.address = address);
            dictionary.set(address, frames);
            if self.symbols.dispatches(id) {
                dictionary.set_dispatches(address);
            }
        }
        for (file, short) in self.symbols.short_paths() {
            dictionary.set_short_path(file.clone(), short.clone());
        }
        for number in 1..=self.threads.len() as u32 {
            let label = self.thread_label(ThreadNumber(number));
            dictionary.set_thread_label(number.into(), label.into());
        }
        for task in &self.tasks {
            dictionary.set_task_name(task.id.0, task.name.clone());
        }
        dictionary
    }
}
