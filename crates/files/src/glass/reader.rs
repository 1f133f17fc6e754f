//! Reads a recording chunk by chunk, as far as it is valid.

use super::bytes::Source;
use super::chunk::{self, FILE_HEADER, Found, MAGIC, Unpacker, VERSION};
use super::contents::Contents;
use super::error::ReadError;
use super::index::Totals;
use stackglass_profile::{Recording, Sample};
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// How much of a recording could be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Completeness {
    /// All of it.
    Complete(Totals),
    /// It ends early: it is still being written, its recorder was killed, or the file was truncated.
    Incomplete {
        /// End of the last complete chunk.
        at: u64,
    },
    /// It is damaged. Everything before was read.
    Damaged {
        /// Offset of the damaged chunk.
        at: u64,
        /// What is wrong with it.
        reason: String,
    },
}

impl Completeness {
    /// Whether all of it could be read.
    pub fn is_complete(&self) -> bool {
        matches!(self, Completeness::Complete(_))
    }
}

impl fmt::Display for Completeness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Completeness::Complete(_) => write!(f, "complete"),
            Completeness::Incomplete { at } => write!(
                f,
                "incomplete: ends at byte {at} without an end mark (still being recorded, or the recorder was killed); \
                 all that was written before is shown"
            ),
            Completeness::Damaged { at, reason } => {
                write!(f, "damaged: at byte {at}, {reason}; everything before it is shown")
            }
        }
    }
}

/// Reads a recording step by step.
///
/// Tables are collected in [`GlassReader::recording`]. Samples are passed to a closure, so that memory grows with the
/// distinct stacks, not with the file.
pub struct GlassReader<R> {
    input: R,
    name: String,
    length: u64,
    /// Offset of the next chunk.
    at: u64,
    unpacker: Unpacker,
    contents: Contents,
    state: Option<Completeness>,
}

impl GlassReader<BufReader<File>> {
    /// Opens a file and reads its first bytes.
    ///
    /// # Errors
    /// If it cannot be opened or is not a recording of this version.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ReadError> {
        let name = path.as_ref().display().to_string();
        let open = || {
            let file = File::open(path.as_ref())?;
            let meta = file.metadata()?;
            if meta.is_dir() {
                return Err(io::ErrorKind::IsADirectory.into());
            }
            Ok((meta.len(), BufReader::with_capacity(1 << 16, file)))
        };
        match open() {
            Ok((length, input)) => GlassReader::named(input, name, length),
            Err(source) => Err(ReadError::Open { name, source }),
        }
    }
}

/// Reading in parts; see `parts`.
impl GlassReader<BufReader<File>> {
    pub(super) fn input(&mut self) -> &mut BufReader<File> {
        &mut self.input
    }

    pub(super) fn input_and_unpacker(&mut self) -> (&mut BufReader<File>, &mut Unpacker) {
        (&mut self.input, &mut self.unpacker)
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Skips samples, with totals from elsewhere.
    pub(super) fn expect_samples(&mut self, totals: &Totals) {
        let Totals { rows, hits, time, spreads, .. } = *totals;
        self.contents.seen = Totals { rows, hits, time, spreads, ..self.contents.seen };
    }

    /// Seeks to the next chunk after reading elsewhere.
    pub(super) fn rewind(&mut self) -> io::Result<()> {
        self.input.seek(SeekFrom::Start(self.at)).map(|_| ())
    }

    /// Continues with the chunk at this offset. Returns false at the end.
    pub(super) fn jump(&mut self, at: u64) -> Result<bool, ReadError> {
        match self.input.seek_relative(at.wrapping_sub(self.at) as i64) {
            Ok(()) => self.at = at,
            Err(source) => return Err(ReadError::Read { name: self.name.clone(), at, source }),
        }
        Ok(self.state.is_none())
    }
}

impl<R: Read> GlassReader<R> {
    /// Reads from any reader.
    ///
    /// # Errors
    /// If it is not a recording of this version.
    pub fn new(input: R) -> Result<Self, ReadError> {
        GlassReader::named(input, "the recording".into(), 0)
    }

    fn named(mut input: R, name: String, length: u64) -> Result<Self, ReadError> {
        let mut header = Vec::with_capacity(FILE_HEADER);
        let unpacker = Unpacker::new();
        let read = (&mut input).take(FILE_HEADER as u64).read_to_end(&mut header);
        let unpacker = match read.and(unpacker) {
            Ok(unpacker) => unpacker,
            Err(source) => return Err(ReadError::Read { name, at: 0, source }),
        };
        if header.is_empty() {
            return Err(ReadError::Empty { name });
        }
        let magic = header.len().min(MAGIC.len());
        if header[..magic] != MAGIC[..magic] {
            return Err(ReadError::NotGlass { name, found: header[..magic].to_vec() });
        }
        let whole = header.len() == FILE_HEADER;
        if whole && header[8..12] != VERSION.to_le_bytes() {
            let found = u32::from_le_bytes([header[8], header[9], header[10], header[11]]);
            return Err(ReadError::Version { name, found, ours: VERSION });
        }
        Ok(GlassReader {
            input,
            name,
            length,
            at: if whole { FILE_HEADER as u64 } else { 0 },
            unpacker,
            contents: Contents::default(),
            state: (!whole).then_some(Completeness::Incomplete { at: 0 }),
        })
    }

    /// Reads one chunk and calls `each` with its samples. Returns false at the end.
    ///
    /// A sample may continue the previous one, see [`Recording::push`]. A damaged chunk may yield some of its samples.
    ///
    /// # Errors
    /// If reading fails. A truncated or damaged file is no error: see [`GlassReader::finish`].
    pub fn step(&mut self, each: &mut dyn FnMut(Sample)) -> Result<bool, ReadError> {
        if self.state.is_some() {
            return Ok(false);
        }
        match self.chunk(each) {
            Ok(None) => Ok(true),
            Ok(Some(state)) => {
                self.state = Some(state);
                Ok(false)
            }
            Err(source) => Err(ReadError::Read { name: self.name.clone(), at: self.at, source }),
        }
    }

    fn chunk(&mut self, each: &mut dyn FnMut(Sample)) -> io::Result<Option<Completeness>> {
        let at = self.at;
        let header = match chunk::read_header(&mut self.input)? {
            Found::Chunk(header) => header,
            Found::End => return Ok(Some(Completeness::Incomplete { at })),
            Found::Damage(reason) => return Ok(Some(Completeness::Damaged { at, reason })),
        };
        let source = match self.unpacker.payload(&mut self.input, &header)? {
            Ok(raw) => Source::new(raw, header.payload as u64),
            Err(None) => return Ok(Some(Completeness::Incomplete { at })),
            Err(Some(reason)) => return Ok(Some(Completeness::Damaged { at, reason })),
        };
        match self.contents.take(header.tag, source, each) {
            Ok(None) => {
                self.at += header.size();
                Ok(None)
            }
            Ok(Some(totals)) => Ok(Some(match totals.difference(self.contents.seen) {
                None => Completeness::Complete(totals),
                Some(reason) => Completeness::Damaged { at, reason },
            })),
            Err(bad) => {
                let reason = format!("chunk {}: {bad}", header.tag);
                Ok(Some(Completeness::Damaged { at, reason }))
            }
        }
    }

    /// The recording so far, without samples.
    pub fn recording(&self) -> &Recording {
        &self.contents.recording
    }

    /// Rows, hits and time of the samples read so far.
    pub fn counted(&self) -> Totals {
        let Totals { rows, hits, time, .. } = self.contents.seen;
        Totals { rows, hits, time, ..Totals::default() }
    }

    /// Bytes read so far, in complete chunks.
    pub fn position(&self) -> u64 {
        self.at
    }

    /// Size of the file when it was opened; 0 if unknown.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Returns the recording without samples, and its completeness.
    ///
    /// If the end is missing, the wall time is taken from the clock of the last sample. Before [`GlassReader::step`] has
    /// returned false, the recording is incomplete.
    pub fn finish(self) -> (Recording, Completeness) {
        let mut recording = self.contents.recording;
        let state = self.state.unwrap_or(Completeness::Incomplete { at: self.at });
        let info = &mut recording.info;
        if !state.is_complete() && info.wall.0 == 0 {
            info.wall.0 = self.contents.last_clock.saturating_sub(info.start.0);
        }
        (recording, state)
    }
}

/// Reads a whole recording, as far as possible.
///
/// # Errors
/// If the file cannot be opened or read, or is not a recording of this version. A truncated or damaged file is no error:
/// see [`Completeness`].
pub fn read(path: impl AsRef<Path>) -> Result<(Recording, Completeness), ReadError> {
    read_all(GlassReader::open(path)?, merge)
}

/// As [`read()`], from any reader.
///
/// # Errors
/// As [`read()`].
pub fn read_from(input: impl Read) -> Result<(Recording, Completeness), ReadError> {
    read_all(GlassReader::new(input)?, merge)
}

/// As [`read()`], but each row of the file is a sample. Those of successive task snapshots stay apart: the errors of a
/// wall-time profile come from single snapshots.
///
/// # Errors
/// As [`read()`].
pub fn read_rows(path: impl AsRef<Path>) -> Result<(Recording, Completeness), ReadError> {
    read_all(GlassReader::open(path)?, keep_apart)
}

/// As [`read_rows`], from any reader.
///
/// # Errors
/// As [`read()`].
pub fn read_rows_from(input: impl Read) -> Result<(Recording, Completeness), ReadError> {
    read_all(GlassReader::new(input)?, keep_apart)
}

fn merge(gathered: &mut Recording, sample: Sample) {
    gathered.push(sample);
}

fn keep_apart(gathered: &mut Recording, sample: Sample) {
    gathered.samples.push(sample);
}

fn read_all<R: Read>(
    mut reader: GlassReader<R>,
    add: fn(&mut Recording, Sample),
) -> Result<(Recording, Completeness), ReadError> {
    // Samples are gathered in another recording until the tables are complete.
    let mut gathered = Recording::default();
    while reader.step(&mut |sample| add(&mut gathered, sample))? {}
    let (mut recording, completeness) = reader.finish();
    recording.samples = gathered.samples;
    Ok((recording, completeness))
}
