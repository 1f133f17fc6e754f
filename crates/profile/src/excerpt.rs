//! Parts of a recording as recordings, for peeks.

use crate::{ProcessIndex, Recording, StackId, Stacks, Symbols, Thread};
use foldhash::HashMap;

impl Recording {
    /// The indices of the last samples of all running threads of a process.
    pub fn latest(&self, process: ProcessIndex) -> Vec<usize> {
        let lives = |thread: &&Thread| thread.process == process && thread.end.is_none();
        let mut missing = self.threads.iter().filter(lives).count();
        let mut last = vec![None; self.threads.len()];
        for (index, sample) in self.samples.iter().enumerate().rev() {
            if missing == 0 {
                break;
            }
            let place = sample.thread.0 as usize - 1;
            if self.threads.get(place).as_ref().is_some_and(lives) && last[place].is_none() {
                last[place] = Some(index);
                missing -= 1;
            }
        }
        last.into_iter().flatten().collect()
    }

    /// A recording of the samples with these indices, their stacks, and all processes, threads and modules. It has no
    /// names: symbolize afterwards. Indices beyond the end are ignored.
    pub fn excerpt(&self, samples: impl IntoIterator<Item = usize>) -> Recording {
        let picked = samples.into_iter().filter_map(|index| self.samples.get(index));
        let mut stacks = Stacks::new();
        let mut known: HashMap<StackId, StackId> = HashMap::default();
        let samples = picked
            .map(|sample| {
                let mut sample = *sample;
                sample.stack = *known.entry(sample.stack).or_insert_with_key(|old| {
                    let leaf_first: Vec<_> = self
                        .stacks
                        .walk(*old)
                        .map(|id| stacks.intern_location(self.stacks.location(id)))
                        .collect();
                    stacks.intern(&leaf_first)
                });
                sample
            })
            .collect();
        Recording {
            info: self.info.clone(),
            processes: self.processes.clone(),
            threads: self.threads.clone(),
            tasks: self.tasks.clone(),
            modules: self.modules.clone(),
            stacks,
            samples,
            allocations: Default::default(),
            symbols: Symbols::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::*;

    #[test]
    fn an_excerpt_has_its_own_stacks_only() {
        let mut recording = Recording::default();
        let ids: Vec<_> = (0..5)
            .map(|offset| recording.stacks.intern_location(Location { module: None, offset }))
            .collect();
        for leaf in 0..4 {
            let stack = recording.stacks.intern(&[ids[leaf], ids[4]]);
            recording.samples.push(Sample {
                stack,
                thread: ThreadNumber(1),
                task: 0,
                clock: Nanos(leaf as u64),
                state: State::Awake,
                cut: None,
                hits: 1,
                time: Nanos(1),
                spread: Nanos(0),
            });
        }
        let excerpt = recording.excerpt(1..3);
        assert_eq!(excerpt.stacks.nodes().len(), 3, "one root, two leaves");
        let offsets = |sample: &Sample| -> Vec<u64> {
            excerpt.stacks.walk(sample.stack).map(|id| excerpt.stacks.location(id).offset).collect()
        };
        assert_eq!(excerpt.samples.iter().map(offsets).collect::<Vec<_>>(), [[1, 4], [2, 4]]);
        assert!(recording.excerpt(9..12).samples.is_empty());
        assert_eq!(recording.excerpt(3..12).samples.len(), 1);
    }
}
