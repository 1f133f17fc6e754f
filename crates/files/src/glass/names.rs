//! Chunks of names: distinct frames, frames of locations, dispatching locations, short paths, and notes on modules with
//! missing names. They are written once, at the end.

use super::bytes::{Body, Malformed, Source, zigzag};
use super::columns::expect_first;
use super::tables::{TextWriter, text_at};
use stackglass_profile::symbols::{Language, Missing, ModuleNote};
use stackglass_profile::{Frame, LocationId, ShortPath, Symbols};
use std::sync::Arc;

/// Weight of a frame, which needs several allocations and a hash table entry.
const FRAME_WEIGHT: u64 = 8;

/// Adds to the weight of a reference to a frame, whose texts are hashed.
fn weight_of_use(frame: &Frame) -> u64 {
    let spec = frame.spec.as_ref().map_or(0, |spec| spec.len());
    1 + (frame.func.len() + spec + frame.file.len() + frame.module.len() + frame.krate.len()) as u64 / 1024
}

/// Maximum number of frames of a location. No compiler inlines as deep.
const MAX_INLINED: usize = 1 << 14;

/// Maximum number of notes. There are one or two for each module.
const MAX_NOTES: usize = 10_000;

const FOREIGN: u64 = 1;
const INLINED: u64 = 2;
const ALLOCATES_FOR_CALLER: u64 = 4;
const ALLOCATES_FOR_ITSELF: u64 = 8;

/// Writes the next chunk of frames from number `from` on. Returns the number after its last.
pub(crate) fn write_frames(body: &mut Body, texts: &mut TextWriter, frames: &[Frame], from: usize) -> usize {
    body.number(from as u64);
    let mut next = from;
    while next < frames.len() && !body.is_full() {
        let frame = &frames[next];
        body.number(texts.id(&frame.func));
        let spec = frame.spec.as_ref().map(|spec| texts.id(spec));
        body.optional(spec);
        body.number(texts.id(&frame.file));
        body.number(zigzag(frame.line));
        let flags = [
            (frame.foreign, FOREIGN),
            (frame.inlined, INLINED),
            (frame.allocates_for_caller == Some(true), ALLOCATES_FOR_CALLER),
            (frame.allocates_for_caller == Some(false), ALLOCATES_FOR_ITSELF),
        ];
        body.number(flags.iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag).sum());
        body.number(texts.id(&frame.module));
        body.number(texts.id(&frame.krate));
        body.weight += FRAME_WEIGHT;
        next += 1;
    }
    next
}

/// Reads a chunk of frames.
pub(crate) fn read_frames(
    mut source: Source<'_>,
    texts: &[Arc<str>],
    frames: &mut Vec<Frame>,
) -> Result<(), Malformed> {
    expect_first(&mut source, frames.len() as u64, "frames")?;
    while source.remaining() > 0 {
        source.spend(FRAME_WEIGHT)?;
        let func = text_at(&mut source, texts)?;
        let spec = match source.optional()? {
            None => None,
            Some(id) => match usize::try_from(id).ok().and_then(|id| texts.get(id)) {
                Some(text) => Some(text.clone()),
                None => return Err(source.malformed(format!("text {id} of {}", texts.len()))),
            },
        };
        let file = text_at(&mut source, texts)?;
        let line = source.signed()?;
        let flags = source.number()?;
        let module = text_at(&mut source, texts)?;
        let krate = text_at(&mut source, texts)?;
        let (foreign, inlined) = (flags & FOREIGN != 0, flags & INLINED != 0);
        let allocates_for_caller = match flags & (ALLOCATES_FOR_CALLER | ALLOCATES_FOR_ITSELF) {
            0 => None,
            flags => Some(flags & ALLOCATES_FOR_CALLER != 0),
        };
        frames.push(Frame {
            func,
            spec,
            file,
            line,
            foreign,
            inlined,
            allocates_for_caller,
            address: 0,
            module,
            krate,
        });
    }
    Ok(())
}

/// Writes the next chunk of frames of locations from `from` on. Returns the location after its last.
pub(crate) fn write_symbols(body: &mut Body, symbols: &Symbols, from: usize) -> usize {
    let mut next = from;
    while next < symbols.locations() && !body.is_full() {
        let frames = symbols.frame_indices(LocationId(next as u32));
        let frames = &frames[..frames.len().min(MAX_INLINED)];
        if !frames.is_empty() {
            body.number(next as u64);
            body.number(frames.len() as u64);
            for frame in frames {
                body.number((*frame).into());
                body.weight += weight_of_use(&symbols.frames()[*frame as usize]);
            }
            body.weight += 1;
        }
        next += 1;
    }
    next
}

/// Reads a chunk of frames of locations.
pub(crate) fn read_symbols(
    mut source: Source<'_>,
    frames: &[Frame],
    locations: usize,
    symbols: &mut Symbols,
) -> Result<(), Malformed> {
    while source.remaining() > 0 {
        let location = source.number32()?;
        if location as usize >= locations {
            return Err(source.malformed(format!("names of location {location} of {locations}")));
        }
        let count = source.count("frames")?;
        source.spend(1)?;
        let mut found = Vec::with_capacity(count.min(64));
        for _ in 0..count {
            let id = source.number()?;
            match usize::try_from(id).ok().and_then(|id| frames.get(id)) {
                Some(frame) => {
                    source.spend(weight_of_use(frame))?;
                    found.push(frame.clone());
                }
                None => return Err(source.malformed(format!("frame {id} of {}", frames.len()))),
            }
        }
        symbols.set(LocationId(location), found);
    }
    Ok(())
}

/// Writes which of the first `locations` locations call through vtables and function pointers.
pub(crate) fn write_dispatches<E>(
    symbols: &Symbols,
    locations: usize,
    mut seal: impl FnMut(Body) -> Result<(), E>,
) -> Result<(), E> {
    let (mut body, mut before) = (Body::default(), 0);
    for location in 0..locations {
        if !symbols.dispatches(LocationId(location as u32)) {
            continue;
        }
        body.number((location - before) as u64);
        before = location;
        if body.is_full() {
            seal(std::mem::take(&mut body))?;
            before = 0;
        }
    }
    if body.raw.is_empty() { Ok(()) } else { seal(body) }
}

/// Reads a chunk from [`write_dispatches`]. Needs at most one byte of memory for each location.
pub(crate) fn read_dispatches(
    mut source: Source<'_>,
    locations: usize,
    symbols: &mut Symbols,
) -> Result<(), Malformed> {
    let mut location = 0u32;
    while source.remaining() > 0 {
        location = match location.checked_add(source.number32()?) {
            Some(location) if (location as usize) < locations => location,
            _ => return Err(source.malformed(format!("calls of a location beyond {locations}"))),
        };
        symbols.set_dispatches(LocationId(location));
    }
    Ok(())
}

/// Adds the row of a short path.
pub(crate) fn write_short_path(body: &mut Body, texts: &mut TextWriter, file: &str, short: &ShortPath) {
    body.number(texts.id(file));
    body.number(texts.id(&short.prefix));
    body.number(texts.id(&short.rest));
    body.weight += 4 + file.len() as u64 / 1024;
}

/// Reads rows of short paths.
pub(crate) fn read_short_paths(
    mut source: Source<'_>,
    texts: &[Arc<str>],
    symbols: &mut Symbols,
) -> Result<(), Malformed> {
    while source.remaining() > 0 {
        source.spend(4)?;
        let file = text_at(&mut source, texts)?;
        source.spend(file.len() as u64 / 1024)?;
        let prefix = text_at(&mut source, texts)?;
        let rest = text_at(&mut source, texts)?;
        symbols.set_short_path(file, ShortPath { prefix, rest });
    }
    Ok(())
}

/// The reason of a note has the bits below, its language the bits from here on.
const LANGUAGE: u32 = 4;

/// Adds the rows of notes.
pub(crate) fn write_notes(body: &mut Body, texts: &mut TextWriter, notes: &[ModuleNote]) {
    for note in notes.iter().take(MAX_NOTES) {
        body.number(texts.id(&note.module));
        body.number(note.missing as u64 | (note.language as u64) << LANGUAGE);
        body.weight += 2;
    }
}

/// Reads rows of notes. Skips unknown reasons.
pub(crate) fn read_notes(
    mut source: Source<'_>,
    texts: &[Arc<str>],
    symbols: &mut Symbols,
) -> Result<(), Malformed> {
    while source.remaining() > 0 {
        source.spend(2)?;
        let module = text_at(&mut source, texts)?;
        let number = source.number()?;
        let language = match number >> LANGUAGE {
            1 => Language::Rust,
            2 => Language::C,
            3 => Language::Go,
            _ => Language::Unknown,
        };
        let missing = match number & ((1 << LANGUAGE) - 1) {
            1 => Missing::DebugInfo,
            2 => Missing::Names,
            3 => Missing::File,
            4 => Missing::Changed,
            _ => continue,
        };
        if symbols.notes().len() >= MAX_NOTES {
            return Err(source.malformed(format!("more than {MAX_NOTES} notes")));
        }
        symbols.note(ModuleNote { module, missing, language });
    }
    Ok(())
}
