//! Reads everything but samples from a complete recording, by its index.

use super::bytes::Source;
use super::chunk::{self, CHUNK_HEADER, FILE_HEADER, Found, LAST, Tag};
use super::error::ReadError;
use super::index::{Index, Totals};
use super::reader::{Completeness, GlassReader};
use stackglass_profile::Recording;
use std::fs::File;
use std::io::{self, BufReader, Seek, SeekFrom};
use std::path::Path;

/// As [`read()`](super::read()), but without samples: only how many rows, hits and nanoseconds there are.
///
/// If the file is complete, samples are not read, and the totals come from its end. Otherwise the whole file is read, in
/// memory for its tables, and `progress` gets the bytes read and the size of the file.
///
/// # Errors
/// As [`read()`](super::read()).
pub fn read_tables(
    path: impl AsRef<Path>,
    mut progress: impl FnMut(u64, u64),
) -> Result<(Recording, Completeness, Totals), ReadError> {
    let mut reader = GlassReader::open(&path)?;
    let (name, at) = (reader.name().to_owned(), reader.length());
    if let Some(plan) = plan(&mut reader).map_err(|source| ReadError::Read { name, at, source })? {
        reader.expect_samples(&plan.totals);
        let mut whole = true;
        for at in plan.chunks {
            whole = whole && reader.jump(at)? && reader.step(&mut |_| {})?;
        }
        if whole && reader.jump(plan.end)? {
            reader.step(&mut |_| {})?;
            return Ok(apart(reader));
        }
    }
    // Truncated, damaged, or with a wrong index: read the whole file.
    let mut reader = GlassReader::open(path)?;
    while reader.step(&mut |_| {})? {
        progress(reader.position(), reader.length());
    }
    Ok(apart(reader))
}

fn apart(reader: GlassReader<BufReader<File>>) -> (Recording, Completeness, Totals) {
    let totals = reader.counted();
    let (recording, completeness) = reader.finish();
    (recording, completeness, totals)
}

/// The chunks to read.
struct Plan {
    /// Offsets of the chunks without samples.
    chunks: Vec<u64>,
    /// Offset of the END chunk.
    end: u64,
    totals: Totals,
}

/// The end of the file; `None` if it is missing or wrong.
fn plan(reader: &mut GlassReader<BufReader<File>>) -> io::Result<Option<Plan>> {
    let length = reader.length();
    let smallest = (FILE_HEADER + CHUNK_HEADER + 16) as u64;
    if length < smallest {
        return Ok(None);
    }
    let mut last = [0; 16];
    let input = reader.input();
    input.seek(SeekFrom::Start(length - 16))?;
    if !chunk::fill(input, &mut last)? || last[8..] != LAST {
        return Ok(None);
    }
    let end = u64::from_le_bytes([last[0], last[1], last[2], last[3], last[4], last[5], last[6], last[7]]);
    let Some((Tag::END, raw)) = chunk_at(reader, end)? else { return Ok(None) };
    let (mut source, mut all) = (Source::new(&raw, 0), Source::new(&raw, 0));
    let Ok(totals) = Totals::read_all(&mut all, Totals::default()) else { return Ok(None) };
    let (Ok(_), Ok(places)) = (Totals::read(&mut source), source.count("index chunks")) else {
        return Ok(None);
    };
    let mut plan = Plan { chunks: Vec::new(), end, totals };
    let mut offset = FILE_HEADER as u64;
    for _ in 0..places {
        let Ok(place) = source.number() else { return Ok(None) };
        if place < offset {
            return Ok(None);
        }
        let Some((Tag::INDEX, raw)) = chunk_at(reader, place)? else { return Ok(None) };
        let Some(entries) = Index::read(&raw) else { return Ok(None) };
        for (tag, size) in entries {
            // So that the list is never longer than the file.
            if (size as usize) < CHUNK_HEADER || offset > end {
                return Ok(None);
            }
            if !matches!(tag, Tag::SAMPLES | Tag::SPREADS | Tag::HEAP | Tag::HEAP_BYTES) {
                plan.chunks.push(offset);
            }
            offset = offset.saturating_add(size.into());
        }
    }
    reader.rewind()?;
    Ok(Some(plan))
}

/// Tag and contents of the chunk at an offset; `None` if there is no complete chunk.
fn chunk_at(reader: &mut GlassReader<BufReader<File>>, at: u64) -> io::Result<Option<(Tag, Vec<u8>)>> {
    if at < FILE_HEADER as u64 || at >= reader.length() {
        return Ok(None);
    }
    let (input, unpacker) = reader.input_and_unpacker();
    input.seek(SeekFrom::Start(at))?;
    let Found::Chunk(header) = chunk::read_header(input)? else { return Ok(None) };
    Ok(unpacker.payload(input, &header)?.ok().map(|raw| (header.tag, raw.to_vec())))
}
