//! A part of a recording as a recording of its own: what a peek shows of a longer one.

use crate::{Recording, StackId, Stacks, Symbols};
use std::collections::HashMap;
use std::ops::Range;

impl Recording {
    /// The samples with these indices and what they need: their stacks and nothing of the others, all processes,
    /// threads and modules. Without names: symbolize afterwards. Indices beyond the end are ignored.
    pub fn excerpt(&self, samples: Range<usize>) -> Recording {
        let end = samples.end.min(self.samples.len());
        let picked = self.samples.get(samples.start.min(end)..end).unwrap_or_default();
        let mut stacks = Stacks::new();
        let mut known: HashMap<StackId, StackId> = HashMap::new();
        let samples = picked
            .iter()
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
            about: self.about.clone(),
            processes: self.processes.clone(),
            threads: self.threads.clone(),
            modules: self.modules.clone(),
            stacks,
            samples,
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
            tasks: self.tasks.clone(),
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
