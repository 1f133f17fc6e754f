//! The envelope of every chunk: tag, process, sizes, checksum, zstd payload.

use super::bytes::Body;
use std::io::{self, Read};

/// First bytes of every `.glass` file. The first is not text, and the last two change if a file is transferred as text.
pub(crate) const MAGIC: [u8; 8] = *b"\x8eGLASS\r\n";

/// Last bytes of every complete `.glass` file.
pub(crate) const LAST: [u8; 8] = *b"\n\rSSALG\x8e";

/// Version of the layout. Readers refuse other versions. New kinds of chunks do not change it.
pub(crate) const VERSION: u32 = 1;

/// Size of magic, version and a zero word.
pub(crate) const FILE_HEADER: usize = 16;

/// Size of a chunk's header.
pub(crate) const CHUNK_HEADER: usize = 20;

/// Maximum size of an unpacked chunk.
pub(crate) const MAX_RAW: usize = 8 << 20;

/// Maximum size of a payload.
pub(crate) const MAX_PAYLOAD: usize = 16 << 20;

/// Maximum number of unpacked bytes for each stored byte.
pub(crate) const MAX_RATIO: usize = 256;

/// The `process` of a chunk that belongs to none.
pub(crate) const NO_PROCESS: u32 = u32::MAX;

/// The kind of a chunk.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Tag(pub [u8; 4]);

impl Tag {
    pub const ABOUT: Tag = Tag(*b"ABOU");
    pub const STRINGS: Tag = Tag(*b"STRS");
    pub const PROCESSES: Tag = Tag(*b"PROC");
    pub const THREADS: Tag = Tag(*b"THRD");
    pub const TASKS: Tag = Tag(*b"TASK");
    pub const MODULES: Tag = Tag(*b"MODU");
    pub const LOCATIONS: Tag = Tag(*b"LOCS");
    pub const NODES: Tag = Tag(*b"NODE");
    pub const SAMPLES: Tag = Tag(*b"SAMP");
    pub const SPREADS: Tag = Tag(*b"SPRD");
    pub const ALLOCATING: Tag = Tag(*b"ALLO");
    pub const MEMORY: Tag = Tag(*b"MEMO");
    pub const ALLOCATIONS: Tag = Tag(*b"AGRP");
    pub const SLICED: Tag = Tag(*b"ASPR");
    pub const SLICE_KEYS: Tag = Tag(*b"ASKY");
    pub const SLICES: Tag = Tag(*b"ASLI");
    pub const FRAMES: Tag = Tag(*b"FRAM");
    pub const SYMBOLS: Tag = Tag(*b"SYMB");
    pub const DISPATCHES: Tag = Tag(*b"DISP");
    pub const SHORT_PATHS: Tag = Tag(*b"PATH");
    pub const NOTES: Tag = Tag(*b"NOTE");
    pub const TYPES: Tag = Tag(*b"TYPE");
    pub const HEAP: Tag = Tag(*b"HEAP");
    pub const HEAP_BYTES: Tag = Tag(*b"HBYT");
    pub const INDEX: Tag = Tag(*b"INDX");
    pub const END: Tag = Tag(*b"ENDS");

    /// Whether this version knows the tag, as a part of the recording. Heap snapshots are read by themselves.
    pub fn is_known(self) -> bool {
        const KNOWN: [Tag; 24] = [
            Tag::ABOUT,
            Tag::STRINGS,
            Tag::PROCESSES,
            Tag::THREADS,
            Tag::TASKS,
            Tag::MODULES,
            Tag::LOCATIONS,
            Tag::NODES,
            Tag::SAMPLES,
            Tag::SPREADS,
            Tag::ALLOCATING,
            Tag::MEMORY,
            Tag::ALLOCATIONS,
            Tag::SLICED,
            Tag::SLICE_KEYS,
            Tag::SLICES,
            Tag::FRAMES,
            Tag::SYMBOLS,
            Tag::DISPATCHES,
            Tag::SHORT_PATHS,
            Tag::NOTES,
            Tag::TYPES,
            Tag::INDEX,
            Tag::END,
        ];
        KNOWN.contains(&self)
    }
}

impl std::fmt::Display for Tag {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.escape_ascii().fmt(f)
    }
}

/// The first bytes of a file.
pub(crate) fn file_header() -> [u8; FILE_HEADER] {
    let mut header = [0; FILE_HEADER];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header
}

/// Compresses and seals chunks.
pub(crate) struct Packer(zstd::bulk::Compressor<'static>);

impl Packer {
    pub fn new() -> io::Result<Packer> {
        // Higher levels cost more time but hardly reduce the size of samples.
        Ok(Packer(zstd::bulk::Compressor::new(3)?))
    }

    /// Appends the whole chunk to `out` and returns its size.
    ///
    /// # Panics
    /// If the body is larger than [`MAX_RAW`]. Callers close chunks earlier.
    pub fn seal(&mut self, out: &mut Vec<u8>, tag: Tag, process: u32, body: &Body) -> io::Result<usize> {
        assert!(body.raw.len() <= MAX_RAW, "{tag} chunk of {} bytes", body.raw.len());
        let start = out.len();
        let mut payload = self.0.compress(&body.raw)?;
        pad(&mut payload, (body.raw.len().div_ceil(MAX_RATIO)).max(body.weight as usize));
        out.extend_from_slice(&tag.0);
        out.extend_from_slice(&process.to_le_bytes());
        out.extend_from_slice(&(body.raw.len() as u32).to_le_bytes());
        out.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        let checksum = checksum(&out[start..start + 16], &payload);
        out.extend_from_slice(&checksum.to_le_bytes());
        out.extend_from_slice(&payload);
        Ok(out.len() - start)
    }
}

/// Extends a payload to at least `least` bytes with a skippable zstd frame.
fn pad(payload: &mut Vec<u8>, least: usize) {
    const SKIPPABLE: [u8; 4] = 0x184d_2a50_u32.to_le_bytes();
    let Some(missing) = least.checked_sub(payload.len()).filter(|missing| *missing > 0) else { return };
    let zeros = missing.saturating_sub(8);
    payload.extend_from_slice(&SKIPPABLE);
    payload.extend_from_slice(&(zeros as u32).to_le_bytes());
    payload.resize(payload.len() + zeros, 0);
}

fn checksum(header: &[u8], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(header);
    hasher.update(payload);
    hasher.finalize()
}

/// The header of a chunk, not yet verified by the checksum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    pub tag: Tag,
    pub raw: usize,
    pub payload: usize,
    bytes: [u8; CHUNK_HEADER],
}

impl Header {
    /// Size of the chunk in the file.
    pub fn size(&self) -> u64 {
        (CHUNK_HEADER + self.payload) as u64
    }
}

/// What was found where a chunk should be.
pub(crate) enum Found {
    /// A header whose sizes are within the limits.
    Chunk(Header),
    /// The file ends here, or inside the chunk.
    End,
    /// No valid chunk.
    Damage(String),
}

/// Reads the next chunk's header.
pub(crate) fn read_header(input: &mut impl Read) -> io::Result<Found> {
    let mut bytes = [0; CHUNK_HEADER];
    if !fill(input, &mut bytes)? {
        return Ok(Found::End);
    }
    let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let tag = Tag([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let (raw, payload) = (word(8) as usize, word(12) as usize);
    if raw > MAX_RAW {
        return Ok(Found::Damage(format!("chunk {tag} declares {raw} bytes, more than {MAX_RAW}")));
    }
    if payload > MAX_PAYLOAD {
        return Ok(Found::Damage(format!(
            "chunk {tag} declares {payload} stored bytes, more than {MAX_PAYLOAD}"
        )));
    }
    if raw.div_ceil(MAX_RATIO) > payload {
        return Ok(Found::Damage(format!("chunk {tag} declares {raw} bytes in {payload} stored ones")));
    }
    Ok(Found::Chunk(Header { tag, raw, payload, bytes }))
}

/// Fills the buffer. Returns false if the input ends before.
pub(crate) fn fill(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match input.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(e) => Err(e),
    }
}

/// Reads and unpacks payloads into reused buffers.
pub(crate) struct Unpacker {
    zstd: zstd::bulk::Decompressor<'static>,
    packed: Vec<u8>,
    raw: Vec<u8>,
}

impl Unpacker {
    pub fn new() -> io::Result<Unpacker> {
        Ok(Unpacker { zstd: zstd::bulk::Decompressor::new()?, packed: Vec::new(), raw: Vec::new() })
    }

    /// The payload that follows `header`, unpacked (empty for an unknown tag).
    ///
    /// Returns `Ok(Err(None))` if the file ends inside it, and `Ok(Err(Some(reason)))` if it is damaged.
    pub fn payload(
        &mut self,
        input: &mut impl Read,
        header: &Header,
    ) -> io::Result<Result<&[u8], Option<String>>> {
        if let Err(fault) = self.fetch(input, header)? {
            return Ok(Err(fault));
        }
        self.raw.clear();
        if !header.tag.is_known() {
            return Ok(Ok(&self.raw));
        }
        Ok(self.unpack(header))
    }

    /// As [`Unpacker::payload`], unpacked in any case.
    pub fn contents(
        &mut self,
        input: &mut impl Read,
        header: &Header,
    ) -> io::Result<Result<&[u8], Option<String>>> {
        match self.fetch(input, header)? {
            Ok(()) => Ok(self.unpack(header)),
            Err(fault) => Ok(Err(fault)),
        }
    }

    /// Reads the payload and verifies its checksum.
    fn fetch(&mut self, input: &mut impl Read, header: &Header) -> io::Result<Result<(), Option<String>>> {
        self.packed.clear();
        // Grows as bytes arrive, so that a declared size alone allocates nothing.
        input.take(header.payload as u64).read_to_end(&mut self.packed)?;
        if self.packed.len() < header.payload {
            return Ok(Err(None));
        }
        let stored =
            u32::from_le_bytes([header.bytes[16], header.bytes[17], header.bytes[18], header.bytes[19]]);
        if checksum(&header.bytes[..16], &self.packed) != stored {
            return Ok(Err(Some(format!("the checksum of chunk {} is wrong", header.tag))));
        }
        Ok(Ok(()))
    }

    fn unpack(&mut self, header: &Header) -> Result<&[u8], Option<String>> {
        let tag = header.tag;
        self.raw.clear();
        self.raw.resize(header.raw, 0);
        match self.zstd.decompress_to_buffer(&self.packed, &mut self.raw[..]) {
            Ok(n) if n == header.raw => Ok(&self.raw),
            Ok(n) => Err(Some(format!("chunk {tag} holds {n} bytes but declares {}", header.raw))),
            Err(e) => Err(Some(format!("chunk {tag} cannot be unpacked: {e}"))),
        }
    }
}
