//! The contents of the chunks read so far: the tables of the model, and texts and frames, to which chunks refer by number.

use super::bytes::{Malformed, Source};
use super::chunk::Tag;
use super::index::Totals;
use super::samples::{SampleReader, TableSizes};
use super::spreads::Spreads;
use super::{allocations, names, slices, tables, tasks};
use stackglass_profile::{Frame, Recording, Sample};
use std::sync::Arc;

/// Everything read so far except samples, which are passed on.
#[derive(Default)]
pub(crate) struct Contents {
    pub recording: Recording,
    texts: Vec<Arc<str>>,
    frames: Vec<Frame>,
    samples: SampleReader,
    spreads: Spreads,
    /// The totals so far.
    pub seen: Totals,
    /// The latest clock of any sample.
    pub last_clock: u64,
}

impl Contents {
    /// Adds the contents of a chunk. Returns the totals if it is the last one.
    pub fn take(
        &mut self,
        tag: Tag,
        mut source: Source<'_>,
        each: &mut dyn FnMut(Sample),
    ) -> Result<Option<Totals>, Malformed> {
        let recording = &mut self.recording;
        match tag {
            Tag::ABOUT => recording.info = tables::read_about(source)?,
            Tag::STRINGS => tables::read_texts(source, &mut self.texts)?,
            Tag::PROCESSES => tables::read_processes(source, &self.texts, &mut recording.processes)?,
            Tag::THREADS => {
                tables::read_threads(source, &self.texts, recording.processes.len(), &mut recording.threads)?
            }
            Tag::TASKS => {
                tasks::read_tasks(source, &self.texts, recording.processes.len(), &mut recording.tasks)?
            }
            Tag::MODULES => tables::read_modules(source, &self.texts, &mut recording.modules)?,
            Tag::LOCATIONS => tables::read_locations(source, recording)?,
            Tag::NODES => tables::read_nodes(source, recording)?,
            Tag::SAMPLES => {
                let sizes = TableSizes {
                    threads: u32::try_from(recording.threads.len()).unwrap_or(u32::MAX),
                    stacks: u32::try_from(recording.stacks.nodes().len()).unwrap_or(u32::MAX),
                };
                let first = self.seen.rows;
                let (seen, last_clock) = (&mut self.seen, &mut self.last_clock);
                self.samples.read(source, first, &sizes, &mut self.spreads, |sample| {
                    seen.count(&sample);
                    *last_clock = (*last_clock).max(sample.clock.0);
                    each(sample);
                })?;
            }
            Tag::SPREADS => self.spreads.read(source)?,
            Tag::ALLOCATING => {
                let processes = recording.processes.len();
                allocations::read_processes(source, processes, &mut recording.allocations.processes)?;
            }
            Tag::MEMORY => {
                allocations::read_memory(source, &mut self.seen, &mut recording.allocations.processes)?
            }
            Tag::ALLOCATIONS => allocations::read_groups(source, &mut self.seen, recording)?,
            Tag::SLICED => slices::read_processes(source, &mut self.seen, recording)?,
            Tag::SLICE_KEYS => slices::read_keys(source, &mut self.seen, recording)?,
            Tag::SLICES => slices::read_slices(source, &mut self.seen, recording)?,
            Tag::FRAMES => names::read_frames(source, &self.texts, &mut self.frames)?,
            Tag::SYMBOLS => {
                let locations = recording.stacks.locations().len();
                names::read_symbols(source, &self.frames, locations, &mut recording.symbols)?;
            }
            Tag::DISPATCHES => {
                let locations = recording.stacks.locations().len();
                names::read_dispatches(source, locations, &mut recording.symbols)?;
            }
            Tag::SHORT_PATHS => names::read_short_paths(source, &self.texts, &mut recording.symbols)?,
            Tag::NOTES => names::read_notes(source, &self.texts, &mut recording.symbols)?,
            Tag::TYPES => {
                let stacks = recording.stacks.nodes().len();
                allocations::read_types(source, &self.texts, stacks, &mut recording.symbols)?;
            }
            Tag::END => {
                self.seen.processes = recording.processes.len() as u64;
                self.seen.threads = recording.threads.len() as u64;
                self.seen.modules = recording.modules.len() as u64;
                self.seen.locations = recording.stacks.locations().len() as u64;
                self.seen.nodes = recording.stacks.nodes().len() as u64;
                self.seen.texts = self.texts.len() as u64;
                self.seen.frames = self.frames.len() as u64;
                return Totals::read_all(&mut source, self.seen).map(Some);
            }
            // The index is for reading parts. Unknown chunks come from later versions.
            _ => {}
        }
        Ok(None)
    }
}
