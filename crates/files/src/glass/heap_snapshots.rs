//! Heap snapshots inside a recording: a `HEAP` chunk says that one follows, `HBYT` chunks have its bytes.
//!
//! Other readers skip both.

use super::bytes::{Body, Source};
use super::chunk::{
    self, FILE_HEADER, Found, Header, LAST, MAGIC, NO_PROCESS, Packer, Tag, Unpacker, VERSION,
};
use super::index::{Index, Totals};
use crate::fault::Fault;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, Write};

/// Bytes of a snapshot in one chunk.
const PIECE: usize = 4 << 20;

/// A heap snapshot in a recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct StoredSnapshot {
    /// CLOCK_MONOTONIC in nanoseconds when it was taken, 0 if unknown.
    pub clock: u64,
    /// Its size in bytes.
    pub size: u64,
    /// Whether the recording has all of its bytes.
    pub is_complete: bool,
    /// Offset of the chunks with its bytes.
    pub(crate) at: u64,
}

/// Whether these are the first bytes of a recording.
pub(crate) fn is_recording(first: &[u8]) -> bool {
    first.starts_with(&MAGIC)
}

/// Goes from chunk to chunk.
struct Walk<'a> {
    input: BufReader<&'a File>,
    /// Offset of the next chunk.
    at: u64,
}

impl<'a> Walk<'a> {
    /// Begins at the first chunk.
    fn new(mut file: &'a File) -> Result<Self, Fault> {
        file.rewind()?;
        let mut input = BufReader::new(file);
        let mut header = [0; FILE_HEADER];
        if !chunk::fill(&mut input, &mut header)? || !is_recording(&header) {
            return Err(Fault::Whole("no recording".into()));
        }
        let version = u32::from_le_bytes([header[8], header[9], header[10], header[11]]);
        if version != VERSION {
            return Err(Fault::Whole(format!("a recording of version {version}, which is not known here")));
        }
        Ok(Self { input, at: FILE_HEADER as u64 })
    }

    /// The next chunk, of which the payload follows; `None` if no complete header follows.
    fn header(&mut self) -> Result<Option<Header>, Fault> {
        match chunk::read_header(&mut self.input)? {
            Found::Chunk(header) => Ok(Some(header)),
            Found::End => Ok(None),
            Found::Damage(reason) => Err(Fault::at(self.at, reason)),
        }
    }

    fn skip(&mut self, header: &Header) -> Result<(), Fault> {
        self.input.seek_relative(header.payload as i64)?;
        self.at += header.size();
        Ok(())
    }

    /// The contents of this chunk.
    fn contents<'u>(&mut self, header: &Header, unpacker: &'u mut Unpacker) -> Result<&'u [u8], Fault> {
        let at = self.at;
        self.at += header.size();
        match unpacker.contents(&mut self.input, header)? {
            Ok(raw) => Ok(raw),
            Err(Some(reason)) => Err(Fault::at(at, reason)),
            Err(None) => Err(Fault::at(at, "the recording ends inside a heap snapshot")),
        }
    }
}

/// The heap snapshots in a recording, in the order in which they were added.
pub(crate) fn stored(file: &File) -> Result<Vec<StoredSnapshot>, Fault> {
    let file_size = file.metadata()?.len();
    let mut walk = Walk::new(file)?;
    let mut unpacker = Unpacker::new()?;
    let mut found: Vec<StoredSnapshot> = Vec::new();
    // Bytes of the last one that are still to come.
    let mut missing = 0_u64;
    // A recording that was cut off has the chunks before the cut.
    while let Some(header) = walk.header()?.filter(|header| walk_end(walk.at, header) <= file_size) {
        match header.tag {
            Tag::HEAP => {
                let at = walk.at;
                let mut source = Source::new(walk.contents(&header, &mut unpacker)?, 0);
                let (Ok(clock), Ok(size)) = (source.number(), source.number()) else {
                    return Err(Fault::at(at, "chunk HEAP is too short"));
                };
                missing = size;
                found.push(StoredSnapshot { clock, size, is_complete: missing == 0, at: walk.at });
            }
            Tag::HEAP_BYTES => {
                missing = missing.saturating_sub(header.raw as u64);
                found.iter_mut().last().into_iter().for_each(|last| last.is_complete = missing == 0);
                walk.skip(&header)?;
            }
            Tag::END => break,
            _ => walk.skip(&header)?,
        }
    }
    Ok(found)
}

/// Where the chunk with this header ends, if it begins at `at`.
fn walk_end(at: u64, header: &Header) -> u64 {
    at.saturating_add(header.size())
}

/// The bytes of a snapshot.
pub(crate) struct SnapshotBytes<'a> {
    walk: Walk<'a>,
    unpacker: Unpacker,
    raw: Vec<u8>,
    /// Bytes of `raw` that were read.
    at: usize,
    /// Bytes that are not in `raw` yet.
    left: u64,
}

impl<'a> SnapshotBytes<'a> {
    pub(crate) fn new(file: &'a File, snapshot: &StoredSnapshot) -> Result<Self, Fault> {
        let mut walk = Walk::new(file)?;
        walk.input.seek(io::SeekFrom::Start(snapshot.at))?;
        walk.at = snapshot.at;
        Ok(Self { walk, unpacker: Unpacker::new()?, raw: Vec::new(), at: 0, left: snapshot.size })
    }

    fn next_piece(&mut self) -> Result<(), Fault> {
        let at = self.walk.at;
        let header = self.walk.header()?.filter(|header| header.tag == Tag::HEAP_BYTES);
        let Some(header) = header else {
            return Err(Fault::at(at, format!("a heap snapshot lacks its last {} bytes", self.left)));
        };
        let raw = self.walk.contents(&header, &mut self.unpacker)?;
        if raw.is_empty() || raw.len() as u64 > self.left {
            return Err(Fault::at(
                at,
                format!("{} bytes of a heap snapshot, expected {}", raw.len(), self.left),
            ));
        }
        self.left -= raw.len() as u64;
        self.raw.clear();
        self.raw.extend_from_slice(raw);
        self.at = 0;
        Ok(())
    }
}

impl Read for SnapshotBytes<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.at == self.raw.len() && self.left > 0 {
            self.next_piece().map_err(|fault| match fault {
                Fault::System(error) => error,
                Fault::At { offset, what } => {
                    io::Error::new(io::ErrorKind::InvalidData, format!("damaged at byte {offset}: {what}"))
                }
                Fault::Whole(what) => io::Error::new(io::ErrorKind::InvalidData, what),
            })?;
        }
        let count = out.len().min(self.raw.len() - self.at);
        out[..count].copy_from_slice(&self.raw[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

/// Writes a complete recording with one more heap snapshot of `size` bytes.
pub(crate) fn add(
    recording: &File,
    snapshot: &mut dyn Read,
    size: u64,
    clock: u64,
    out: &mut dyn Write,
) -> Result<(), Fault> {
    let (index, chunks_end, totals) = chunks_of(recording)?;
    let mut kept = recording;
    kept.rewind()?;
    if io::copy(&mut kept.take(chunks_end), out)? != chunks_end {
        return Err(Fault::Whole("changed while it was read".into()));
    }
    let mut end = End { out, index, at: chunks_end, packer: Packer::new()?, sealed: Vec::new() };
    let mut body = Body::default();
    body.number(clock);
    body.number(size);
    end.seal(Tag::HEAP, &body)?;
    let mut left = size;
    while left > 0 {
        body.raw.clear();
        snapshot.take(left.min(PIECE as u64)).read_to_end(&mut body.raw)?;
        if body.raw.is_empty() {
            return Err(Fault::Whole("the heap snapshot became shorter while it was read".into()));
        }
        left -= body.raw.len() as u64;
        end.seal(Tag::HEAP_BYTES, &body)?;
    }
    end.finish(totals)
}

/// The end of a recording that is being written.
struct End<'a> {
    out: &'a mut dyn Write,
    index: Index,
    at: u64,
    packer: Packer,
    sealed: Vec<u8>,
}

impl End<'_> {
    fn seal(&mut self, tag: Tag, body: &Body) -> Result<(), Fault> {
        self.sealed.clear();
        let size = self.packer.seal(&mut self.sealed, tag, NO_PROCESS, body)?;
        self.index.add(tag, size);
        self.at += size as u64;
        Ok(self.out.write_all(&self.sealed)?)
    }

    /// Writes the index and the end.
    fn finish(mut self, totals: Totals) -> Result<(), Fault> {
        for body in self.index.bodies() {
            self.seal(Tag::INDEX, &body)?;
        }
        let mut body = Body::default();
        totals.write(&mut body);
        self.index.write_places(&mut body);
        totals.write_rest(&mut body);
        let end = self.at;
        self.seal(Tag::END, &body)?;
        self.out.write_all(&end.to_le_bytes())?;
        Ok(self.out.write_all(&LAST)?)
    }
}

/// All chunks of a complete recording except the index and the end, where they end, and the totals.
fn chunks_of(recording: &File) -> Result<(Index, u64, Totals), Fault> {
    let mut walk = Walk::new(recording)?;
    let mut index = Index::default();
    let mut chunks_end = None;
    while let Some(header) = walk.header()? {
        match header.tag {
            Tag::INDEX => {
                chunks_end.get_or_insert(walk.at);
                walk.skip(&header)?;
            }
            Tag::END => {
                let at = walk.at;
                let mut unpacker = Unpacker::new()?;
                let mut source = Source::new(walk.contents(&header, &mut unpacker)?, 0);
                let totals = Totals::read_all(&mut source, Totals::default());
                let totals = totals.map_err(|error| Fault::at(at, error.to_string()))?;
                return Ok((index, chunks_end.unwrap_or(at), totals));
            }
            tag if chunks_end.is_some() => {
                return Err(Fault::at(walk.at, format!("chunk {tag} follows the index")));
            }
            tag => {
                index.add(tag, header.size() as usize);
                walk.skip(&header)?;
            }
        }
    }
    Err(Fault::Whole("an incomplete recording: only a complete one can get a heap snapshot".into()))
}
