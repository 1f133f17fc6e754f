//! Reads `.jlprof` files.

use super::error::JlprofError;
use super::graph::Nodes;
use super::layout::{BYTE_ORDER, GRAPH, MAGIC, SAMPLES};
use super::source::Source;
use stackglass_profile::{Data, Dictionary};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The content of a file, by its form.
#[derive(Debug)]
pub enum Content<R> {
    /// Form 1.
    Samples(Samples),
    /// Form 2, a flame graph.
    Graph(Nodes<R>),
}

impl<R> Content<R> {
    /// The samples.
    ///
    /// # Errors
    /// [`JlprofError::IsGraph`] if it is a flame graph.
    pub fn samples(self) -> Result<Samples, JlprofError> {
        match self {
            Content::Samples(samples) => Ok(samples),
            Content::Graph(_) => Err(JlprofError::IsGraph),
        }
    }
}

/// A buffer and the names of its addresses.
#[derive(Clone, Debug)]
pub struct Samples {
    /// The buffer.
    pub data: Data,
    /// Frames of its addresses.
    pub dictionary: Dictionary,
    /// The first eight bytes of the file if they are wrong. Julia does not check them.
    pub magic: Option<[u8; 8]>,
}

/// Reads a file. A file that begins like another well-known kind is refused; other first bytes are accepted, as in Julia.
///
/// # Errors
/// See [`JlprofError`].
pub fn read(path: impl AsRef<Path>) -> Result<Content<File>, JlprofError> {
    let content = read_from(File::open(path).map_err(|source| JlprofError::Read { at: 0, source })?)?;
    let magic = match &content {
        Content::Samples(samples) => samples.magic,
        Content::Graph(nodes) => nodes.magic(),
    };
    match magic.and_then(other_kind) {
        Some(kind) => Err(JlprofError::OtherKind { kind }),
        None => Ok(content),
    }
}

fn other_kind(magic: [u8; 8]) -> Option<&'static str> {
    const KINDS: [(&[u8], &str); 7] = [
        (b"\x89PNG", "a PNG picture"),
        (b"\x8eGLASS\r\n", "a .glass recording"),
        (b"\x7fELF", "a program (ELF)"),
        (b"\x1f\x8b", "something packed with gzip"),
        (b"\x28\xb5\x2f\xfd", "something packed with zstd"),
        (b"PK\x03\x04", "a zip archive"),
        (b"%PDF", "a PDF document"),
    ];
    KINDS.iter().find(|(bytes, _)| magic.starts_with(bytes)).map(|(_, kind)| *kind)
}

/// Reads from any reader, whatever the first eight bytes. Samples are read at once, the nodes of a graph on demand.
///
/// Memory grows with the actual data, not with declared counts.
///
/// # Errors
/// See [`JlprofError`].
pub fn read_from<R: Read>(input: R) -> Result<Content<R>, JlprofError> {
    let mut source = Source::new(input);
    let magic: [u8; 8] = source.bytes("the magic")?;
    match source.u32("the byte order")? {
        BYTE_ORDER => {}
        found if found.swap_bytes() == BYTE_ORDER => source.swapped = true,
        found => return Err(JlprofError::ByteOrder { found }),
    }
    let magic = (magic != MAGIC).then_some(magic);
    match source.bytes("the form")? {
        [SAMPLES] => samples(source, magic).map(Content::Samples),
        [GRAPH] => Ok(Content::Graph(Nodes::new(source, magic))),
        [found] => Err(JlprofError::Form { found }),
    }
}

fn samples<R: Read>(mut source: Source<R>, magic: Option<[u8; 8]>) -> Result<Samples, JlprofError> {
    let data = Data::new(source.words()?);
    let mut dictionary = Dictionary::new();
    // A negative number means 0, here and for the frames of an address.
    for _ in 0..source.i64("the size of the table")? {
        let address = source.i64("an address of the table")? as u64;
        let count = source.u32("the number of frames of an address")? as i32;
        let mut frames = Vec::new();
        for _ in 0..count {
            frames.push(source.frame()?);
        }
        dictionary.set(address, frames);
    }
    Ok(Samples { data, dictionary, magic })
}
