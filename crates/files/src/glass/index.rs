//! The index of chunks, so that parts of a complete file can be read, and the totals of the END chunk.

use super::bytes::{Body, Malformed, Source};
use super::chunk::{FILE_HEADER, Tag};
use stackglass_profile::Sample;

/// The totals of a complete recording. They are in the END chunk; readers compare them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Process images.
    pub processes: u64,
    /// Threads.
    pub threads: u64,
    /// Modules.
    pub modules: u64,
    /// Code locations.
    pub locations: u64,
    /// Stack nodes.
    pub nodes: u64,
    /// Texts.
    pub texts: u64,
    /// Frames in the names.
    pub frames: u64,
    /// Rows of samples, including rows that continue a sample.
    pub rows: u64,
    /// Number of stacks taken.
    pub hits: u64,
    /// Nanoseconds that all samples stand for, modulo 2^64.
    pub time: u64,
    /// Groups of allocations.
    pub allocation_groups: u64,
    /// Moments at which the memory of a process was measured.
    pub memory_points: u64,
    /// Rows of samples that have a spread.
    pub spreads: u64,
    /// Changes in slices of allocations.
    pub slice_changes: u64,
    /// Processes, keys and parts of slices, in all chunks of slices.
    pub slice_parts: u64,
}

/// Number of totals at the beginning of an END chunk. The others were added later.
const FIRST: usize = 10;

impl Totals {
    /// Counts a row.
    pub(crate) fn count(&mut self, sample: &Sample) {
        self.rows += 1;
        self.hits = self.hits.wrapping_add(sample.hits.into());
        self.time = self.time.wrapping_add(sample.time.0);
        self.spreads += u64::from(sample.spread.0 > 0);
    }

    fn fields(&mut self) -> [(&'static str, &mut u64); 15] {
        [
            ("processes", &mut self.processes),
            ("threads", &mut self.threads),
            ("modules", &mut self.modules),
            ("locations", &mut self.locations),
            ("stack nodes", &mut self.nodes),
            ("texts", &mut self.texts),
            ("frames", &mut self.frames),
            ("rows of samples", &mut self.rows),
            ("hits", &mut self.hits),
            ("nanoseconds", &mut self.time),
            ("allocation groups", &mut self.allocation_groups),
            ("memory points", &mut self.memory_points),
            ("rows with a spread", &mut self.spreads),
            ("changes of allocations", &mut self.slice_changes),
            ("parts of slices", &mut self.slice_parts),
        ]
    }

    /// Writes the totals at the beginning of an END chunk.
    pub(crate) fn write(mut self, body: &mut Body) {
        self.fields().into_iter().take(FIRST).for_each(|(_, n)| body.number(*n));
    }

    /// Writes the totals after the offsets of the index chunks.
    pub(crate) fn write_rest(mut self, body: &mut Body) {
        self.fields().into_iter().skip(FIRST).for_each(|(_, n)| body.number(*n));
    }

    /// Reads the totals at the beginning of an END chunk.
    pub(crate) fn read(source: &mut Source<'_>) -> Result<Totals, Malformed> {
        let mut totals = Totals::default();
        for (_, n) in totals.fields().into_iter().take(FIRST) {
            *n = source.number()?;
        }
        Ok(totals)
    }

    /// Reads all totals of an END chunk. Those that an older recording does not have are taken from `seen`.
    pub(crate) fn read_all(source: &mut Source<'_>, mut seen: Totals) -> Result<Totals, Malformed> {
        let mut totals = Totals::read(source)?;
        for _ in 0..source.count("index chunks")? {
            source.number()?;
        }
        for ((_, n), (_, seen)) in totals.fields().into_iter().zip(seen.fields()).skip(FIRST) {
            *n = if source.remaining() > 0 { source.number()? } else { *seen };
        }
        Ok(totals)
    }

    /// A message about the first count in which two totals differ.
    pub(crate) fn difference(mut self, mut seen: Totals) -> Option<String> {
        let differ = self.fields().into_iter().zip(seen.fields()).find(|(said, seen)| *said.1 != *seen.1);
        differ.map(|((what, said), (_, seen))| format!("the end counts {said} {what}, the file holds {seen}"))
    }
}

/// The writer's list of chunks.
#[derive(Default)]
pub(crate) struct Index {
    chunks: Vec<(Tag, u32)>,
    /// Offset of the first index chunk, once the index is complete.
    places: Vec<usize>,
}

/// Number of entries of an index chunk.
const ENTRIES: usize = 1 << 17;

impl Index {
    /// Adds a chunk of `size` bytes in the file.
    pub fn add(&mut self, tag: Tag, size: usize) {
        self.chunks.push((tag, size as u32));
    }

    /// Keeps only the first `len` chunks.
    pub fn truncate(&mut self, len: usize) {
        self.chunks.truncate(len);
        self.places.clear();
    }

    /// The contents of the index chunks: tag and size of every chunk so far.
    pub fn bodies(&mut self) -> Vec<Body> {
        let mut bodies = Vec::new();
        for part in self.chunks.chunks(ENTRIES) {
            let mut body = Body::default();
            body.number(part.len() as u64);
            for (tag, _) in part {
                body.raw.extend_from_slice(&tag.0);
            }
            for (_, size) in part {
                body.number((*size).into());
            }
            bodies.push(body);
        }
        self.places = (self.chunks.len()..self.chunks.len() + bodies.len()).collect();
        bodies
    }

    /// Offsets of the index chunks, which were added after [`Index::bodies`].
    pub fn write_places(&self, body: &mut Body) {
        let mut offset = FILE_HEADER as u64;
        body.number(self.places.len() as u64);
        for (at, (_, size)) in self.chunks.iter().enumerate() {
            if self.places.contains(&at) {
                body.number(offset);
            }
            offset += u64::from(*size);
        }
    }

    /// Tags and sizes of an index chunk; `None` if it is malformed.
    pub fn read(raw: &[u8]) -> Option<Vec<(Tag, u32)>> {
        let mut source = Source::new(raw, 0);
        let count = source.number32().ok()? as usize;
        let mut tags = source.column(count.checked_mul(4)?).ok()?;
        let mut entries = Vec::with_capacity(count);
        for _ in 0..count {
            let mut tag = [0; 4];
            for byte in &mut tag {
                *byte = tags.byte().ok()?;
            }
            entries.push((Tag(tag), source.number32().ok()?));
        }
        source.end().ok()?;
        Some(entries)
    }
}
