//! Reads the samples of a `.jlprof` file.

use super::{BYTE_ORDER, GRAPH, MAGIC, SAMPLES};
use stackglass_profile::{Data, Dictionary, Frame};
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

/// What a file holds.
#[derive(Clone, Debug)]
pub struct Samples {
    /// The buffer.
    pub data: Data,
    /// Frames of its addresses.
    pub dictionary: Dictionary,
    /// The file's first eight bytes where they are not the right ones; Julia does not look at them.
    pub magic: Option<[u8; 8]>,
}

/// A file that is refused. Offsets are those of the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JlprofError {
    /// The system failed.
    #[error("cannot read at byte {at}: {source}")]
    Read {
        /// How far it was read.
        at: u64,
        /// Why.
        source: io::Error,
    },
    /// Too short.
    #[error("ends at byte {at}, in the middle of {inside}")]
    Cut {
        /// Its size.
        at: u64,
        /// What is not whole.
        inside: &'static str,
    },
    /// Not 0x01020304 in either order.
    #[error("byte 8 should tell the byte order (0x01020304), but is 0x{found:08x}")]
    ByteOrder {
        /// What stands there.
        found: u32,
    },
    /// A flame graph, or a form of later versions.
    #[error("form {found} at byte 12: {}", form(*found))]
    Form {
        /// What stands there.
        found: u8,
    },
    /// A size that cannot be.
    #[error("{count} {what} at byte {at}")]
    Count {
        /// Where it stands.
        at: u64,
        /// What is counted.
        what: &'static str,
        /// The size.
        count: i64,
    },
    /// Names end where their length says, not at a zero byte, and have none.
    #[error("the name at byte {at} has a zero byte in it")]
    ZeroInName {
        /// Where it begins.
        at: u64,
    },
    /// By its first bytes, something else with a wrong name.
    #[error("its first bytes are those of {kind}")]
    OtherKind {
        /// What.
        kind: &'static str,
    },
}

fn form(found: u8) -> &'static str {
    match found {
        GRAPH => "a flame graph; only samples (form 1) can be read here",
        _ => "not known; samples have form 1",
    }
}

/// Opens a file by its name, as Julia does: one that begins like another well-known kind of file
/// is refused, any other that is named so is read.
///
/// # Errors
/// See [`JlprofError`].
pub fn read(path: impl AsRef<Path>) -> Result<Samples, JlprofError> {
    let samples = read_from(File::open(path).map_err(|source| JlprofError::Read { at: 0, source })?)?;
    match samples.magic.and_then(other_kind) {
        Some(kind) => Err(JlprofError::OtherKind { kind }),
        None => Ok(samples),
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

/// Reads samples from anything, whatever its first eight bytes are.
///
/// Memory grows with what is really there, not with what is announced.
///
/// # Errors
/// See [`JlprofError`].
pub fn read_from(input: impl Read) -> Result<Samples, JlprofError> {
    let mut source = Source { input: BufReader::new(input), at: 0, swapped: false, names: HashSet::new() };
    let magic: [u8; 8] = source.bytes("the magic")?;
    match source.u32("the byte order")? {
        BYTE_ORDER => {}
        found if found.swap_bytes() == BYTE_ORDER => source.swapped = true,
        found => return Err(JlprofError::ByteOrder { found }),
    }
    let [form] = source.bytes("the form")?;
    if form != SAMPLES {
        return Err(JlprofError::Form { found: form });
    }
    let data = Data::new(source.words()?);
    let mut dictionary = Dictionary::new();
    // A negative number counts as none, here and for the frames of an address.
    for _ in 0..source.i64("the size of the table")? {
        let address = source.i64("an address of the table")? as u64;
        let count = source.u32("the number of frames of an address")? as i32;
        let mut frames = Vec::new();
        for _ in 0..count {
            frames.push(source.frame()?);
        }
        dictionary.set(address, frames);
    }
    Ok(Samples { data, dictionary, magic: (magic != MAGIC).then_some(magic) })
}

struct Source<R> {
    input: BufReader<R>,
    at: u64,
    swapped: bool,
    /// Names so far: most of them come again and again.
    names: HashSet<Arc<str>>,
}

impl<R: Read> Source<R> {
    fn bytes<const N: usize>(&mut self, inside: &'static str) -> Result<[u8; N], JlprofError> {
        let mut bytes = [0; N];
        self.fill(&mut bytes, inside)?;
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8], inside: &'static str) -> Result<(), JlprofError> {
        let mut done = 0;
        while done < bytes.len() {
            match self.input.read(&mut bytes[done..]) {
                Ok(0) => return Err(JlprofError::Cut { at: self.at, inside }),
                Ok(n) => {
                    done += n;
                    self.at += n as u64;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(JlprofError::Read { at: self.at, source }),
            }
        }
        Ok(())
    }

    fn u32(&mut self, inside: &'static str) -> Result<u32, JlprofError> {
        let n = u32::from_le_bytes(self.bytes(inside)?);
        Ok(if self.swapped { n.swap_bytes() } else { n })
    }

    fn i64(&mut self, inside: &'static str) -> Result<i64, JlprofError> {
        let n = i64::from_le_bytes(self.bytes(inside)?);
        Ok(if self.swapped { n.swap_bytes() } else { n })
    }

    fn words(&mut self) -> Result<Vec<u64>, JlprofError> {
        let at = self.at;
        let count = self.i64("the number of words")?;
        let Ok(mut missing) = usize::try_from(count) else {
            return Err(JlprofError::Count { at, what: "words", count });
        };
        let mut words = Vec::new();
        let mut block = [0; 1 << 13];
        while missing > 0 {
            let block = &mut block[..missing.min(1 << 10) * 8];
            self.fill(block, "the samples")?;
            missing -= block.len() / 8;
            let (eights, _) = block.as_chunks::<8>();
            let swapped = self.swapped;
            words.extend(eights.iter().map(|b| match swapped {
                false => u64::from_le_bytes(*b),
                true => u64::from_be_bytes(*b),
            }));
        }
        Ok(words)
    }

    fn frame(&mut self) -> Result<Frame, JlprofError> {
        let func = self.name("the name of a function")?;
        let file = self.name("the name of a file")?;
        let line = self.i64("a line number")?;
        let [foreign, inlined] = self.bytes("the properties of a frame")?;
        let (foreign, inlined) = (foreign != 0, inlined != 0);
        Ok(Frame { func, file, line, foreign, inlined, ..Frame::unknown(0) })
    }

    fn name(&mut self, inside: &'static str) -> Result<Arc<str>, JlprofError> {
        let at = self.at;
        let count = self.u32(inside)? as i32;
        let Ok(length) = u64::try_from(count) else {
            return Err(JlprofError::Count { at, what: "bytes of a name", count: count.into() });
        };
        let mut bytes = Vec::new();
        let read = (&mut self.input).take(length).read_to_end(&mut bytes);
        self.at += bytes.len() as u64;
        match read {
            Err(source) => return Err(JlprofError::Read { at: self.at, source }),
            Ok(_) if bytes.contains(&0) => return Err(JlprofError::ZeroInName { at: at + 4 }),
            Ok(n) if (n as u64) < length => return Err(JlprofError::Cut { at: self.at, inside }),
            Ok(_) => {}
        }
        let name = String::from_utf8_lossy(&bytes);
        if let Some(known) = self.names.get(&*name) {
            return Ok(known.clone());
        }
        let name: Arc<str> = name.into();
        self.names.insert(name.clone());
        Ok(name)
    }
}
