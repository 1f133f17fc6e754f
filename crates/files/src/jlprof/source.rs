//! Reads numbers, names and frames from a file. Memory grows with the actual data.

use super::error::JlprofError;
use foldhash::HashSet;
use stackglass_profile::Frame;
use std::io::{self, BufReader, Read};
use std::sync::Arc;

/// A file and the current offset.
#[derive(Debug)]
pub(super) struct Source<R> {
    input: BufReader<R>,
    pub at: u64,
    /// The file has the other byte order.
    pub swapped: bool,
    /// Names so far, since most of them repeat.
    names: HashSet<Arc<str>>,
}

impl<R: Read> Source<R> {
    pub fn new(input: R) -> Source<R> {
        Source { input: BufReader::new(input), at: 0, swapped: false, names: HashSet::default() }
    }

    /// The next byte; `None` at the end.
    pub fn byte(&mut self) -> Result<Option<u8>, JlprofError> {
        match self.bytes("a tag") {
            Ok([byte]) => Ok(Some(byte)),
            Err(JlprofError::Cut { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub fn bytes<const N: usize>(&mut self, inside: &'static str) -> Result<[u8; N], JlprofError> {
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

    pub fn u32(&mut self, inside: &'static str) -> Result<u32, JlprofError> {
        let n = u32::from_le_bytes(self.bytes(inside)?);
        Ok(if self.swapped { n.swap_bytes() } else { n })
    }

    pub fn i64(&mut self, inside: &'static str) -> Result<i64, JlprofError> {
        let n = i64::from_le_bytes(self.bytes(inside)?);
        Ok(if self.swapped { n.swap_bytes() } else { n })
    }

    /// A count of words, and the words.
    pub fn words(&mut self) -> Result<Vec<u64>, JlprofError> {
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

    pub fn frame(&mut self) -> Result<Frame, JlprofError> {
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
