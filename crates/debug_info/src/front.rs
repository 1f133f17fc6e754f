//! The front of a section that is compressed with zlib. Such a stream is decompressed from its start only, so what lies
//! behind the last byte that is needed costs nothing.
//!
//! The checksum is at the end of the stream, and is not compared. Sections without compression have none at all.

use crate::decompress::size_of_zlib;
use crate::elf::{Method, RawSection};

/// A section, decompressed as far as it was asked for.
pub struct Front<'data> {
    stream: &'data [u8],
    /// As long as the whole section. The kernel gives no memory for the part that is not written.
    bytes: Vec<u8>,
    /// Number of bytes that are decompressed.
    known: usize,
    inflate: flate2::Decompress,
}

impl<'data> Front<'data> {
    /// Whether a section is compressed with zlib.
    pub fn is_possible(section: RawSection<'data>) -> bool {
        section.compression.is_some_and(|compression| compression.method == Method::Zlib)
    }

    /// `None` if the section is not compressed with zlib, or if its size is not possible.
    pub fn new(section: RawSection<'data>) -> Option<Front<'data>> {
        let compression = section.compression.filter(|_| Front::is_possible(section))?;
        let size = size_of_zlib(compression.size, section.bytes.len() as u64).ok()?;
        let inflate = flate2::Decompress::new(true);
        Some(Front { stream: section.bytes, bytes: vec![0; size], known: 0, inflate })
    }

    /// The bytes up to `end` at least. `None` if the section is shorter, or damaged before `end`.
    pub fn until(&mut self, end: usize) -> Option<&[u8]> {
        while self.known < end {
            let input = self.stream.get(usize::try_from(self.inflate.total_in()).ok()?..)?;
            let output = self.bytes.get_mut(self.known..end)?;
            self.inflate.decompress(input, output, flate2::FlushDecompress::None).ok()?;
            let known = usize::try_from(self.inflate.total_out()).ok()?;
            if known == self.known {
                return None;
            }
            self.known = known;
        }
        self.bytes.get(..self.known)
    }

    /// The bytes up to the end of the unit or line table that starts at `start`. Both start with their length.
    pub fn until_end_of_unit(&mut self, start: usize) -> Option<&[u8]> {
        const LONG: [u8; 4] = [0xff; 4];
        let field = |front: &mut Self, at: usize, size: usize| {
            let end = at.checked_add(size)?;
            let mut value = [0; 8];
            value[..size].copy_from_slice(front.until(end)?.get(at..end)?);
            Some(value)
        };
        let mut length = field(self, start, 4)?;
        let mut body = start + 4;
        if length[..4] == LONG {
            length = field(self, body, 8)?;
            body += 8;
        }
        self.until(body.checked_add(usize::try_from(u64::from_le_bytes(length)).ok()?)?)
    }

    /// The bytes so far.
    pub fn into_bytes(mut self) -> Vec<u8> {
        self.bytes.truncate(self.known);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf::Compression;
    use std::io::Write;

    fn compressed(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn front(stream: &[u8], size: usize) -> Front<'_> {
        let compression = Some(Compression { method: Method::Zlib, size: size as u64 });
        Front::new(RawSection { bytes: stream, compression }).unwrap()
    }

    /// Bytes that compress to about half their size.
    fn sample() -> Vec<u8> {
        let mut state = 1u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 28) as u8
        };
        (0..200_000).map(|_| next()).collect()
    }

    #[test]
    fn grows_to_the_same_bytes() {
        let bytes = sample();
        let stream = compressed(&bytes);
        let mut front = front(&stream, bytes.len());
        for end in [0, 1, 300, 299, 70_000, 70_001, 199_999, 200_000] {
            let known = front.until(end).unwrap();
            assert!(known.len() >= end && known == &bytes[..known.len()], "{end}");
        }
        assert!(front.until(200_001).is_none());
        assert!(front.into_bytes() == bytes);
    }

    #[test]
    fn damage_counts_where_it_is_reached() {
        let bytes = sample();
        let stream = compressed(&bytes);
        let mut front = front(&stream[..stream.len() / 2], bytes.len());
        assert!(front.until(50_000).unwrap() == &bytes[..50_000]);
        assert!(front.until(200_000).is_none());
    }

    #[test]
    fn a_unit_states_its_length() {
        let mut bytes = sample();
        bytes[1000..1004].copy_from_slice(&500u32.to_le_bytes());
        bytes[2000..2004].fill(0xff);
        bytes[2004..2012].copy_from_slice(&600u64.to_le_bytes());
        bytes[3000..3004].copy_from_slice(&200_000u32.to_le_bytes());
        bytes[4000..4012].fill(0xff);
        let stream = compressed(&bytes);
        let until = |start| front(&stream, bytes.len()).until_end_of_unit(start).map(<[u8]>::len);
        assert_eq!(until(1000), Some(1504));
        assert_eq!(until(2000), Some(2612));
        assert_eq!([3000, 4000, 199_998, 300_000, usize::MAX].map(until), [None; 5]);
    }

    #[test]
    fn only_zlib_of_a_possible_size() {
        let stream = compressed(&[0; 10]);
        let with = |method, size| {
            let compression = Some(Compression { method, size });
            Front::new(RawSection { bytes: &stream, compression }).is_some()
        };
        assert!(with(Method::Zlib, 10));
        assert!(!with(Method::Zlib, 1 << 30));
        assert!(!with(Method::Zstd, 10));
        assert!(Front::new(RawSection { bytes: &stream, compression: None }).is_none());
    }
}
