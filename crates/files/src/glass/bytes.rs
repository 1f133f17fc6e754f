//! Numbers and texts inside an unpacked chunk: LEB128 varints, zigzag for signed numbers, and a bounds-checked source.
//!
//! The source also enforces the *budget* of a chunk. Every item that needs memory has a weight, and a chunk must have at
//! least as many stored bytes as its items weigh. So a small hostile file cannot require much memory, however well it
//! compresses.

use std::fmt;

/// Unpacked size at which a chunk is closed. It is small enough that readers need little memory, and large enough that
/// more would not compress better.
pub(crate) const CHUNK_TARGET: usize = 1 << 20;

/// What is wrong inside a chunk, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Malformed {
    /// Offset in the unpacked chunk.
    pub at: usize,
    pub what: String,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (byte {} of the unpacked chunk)", self.what, self.at)
    }
}

/// Maps small negative numbers to small positive ones: 0, -1, 1, -2 → 0, 1, 2, 3.
pub(crate) fn zigzag(n: i64) -> u64 {
    ((n << 1) ^ (n >> 63)) as u64
}

/// The reverse of [`zigzag`].
pub(crate) fn unzigzag(n: u64) -> i64 {
    (n >> 1) as i64 ^ -((n & 1) as i64)
}

/// A chunk under construction: its uncompressed bytes and the weight of its items.
#[derive(Default)]
pub(crate) struct Body {
    pub raw: Vec<u8>,
    pub weight: u64,
}

impl Body {
    /// Whether the chunk should be closed.
    pub fn is_full(&self) -> bool {
        self.raw.len() >= CHUNK_TARGET || self.weight >= CHUNK_TARGET as u64
    }

    /// A LEB128 varint: seven bits a byte, lowest first, high bit set on all but the last.
    pub fn number(&mut self, n: u64) {
        push_number(&mut self.raw, n);
    }

    /// A varint of one more than the number, 0 for none.
    pub fn optional(&mut self, n: Option<u64>) {
        // `u64::MAX` does not fit after adding one. As a time or id it may be one less.
        self.number(n.map_or(0, |n| n.saturating_add(1)));
    }

    /// Appends length and bytes of a text, and adds the weight of a stored text.
    pub fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// Appends length and bytes, and adds the weight of stored bytes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.raw.extend_from_slice(bytes);
        self.weight += weight_of_text(bytes.len());
    }
}

/// Appends a varint.
pub(crate) fn push_number(to: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        to.push(n as u8 | 0x80);
        n >>= 7;
    }
    to.push(n as u8);
}

/// The weight of a text of this many bytes.
pub(crate) fn weight_of_text(len: usize) -> u64 {
    1 + len as u64 / 16
}

/// The bytes of an unpacked chunk, or of one of its columns, read from the front.
#[derive(Clone)]
pub(crate) struct Source<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Offset of `bytes` in the chunk.
    base: usize,
    budget: u64,
}

impl<'a> Source<'a> {
    /// A source of a whole chunk with `budget` stored bytes.
    pub fn new(bytes: &'a [u8], budget: u64) -> Source<'a> {
        Source { bytes, at: 0, base: 0, budget }
    }

    /// An error at the current offset.
    pub fn malformed(&self, what: impl Into<String>) -> Malformed {
        Malformed { at: self.base + self.at, what: what.into() }
    }

    /// Number of unread bytes.
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Subtracts the weight of items that need memory from the budget.
    pub fn spend(&mut self, weight: u64) -> Result<(), Malformed> {
        match self.budget.checked_sub(weight) {
            Some(left) => {
                self.budget = left;
                Ok(())
            }
            None => Err(self.malformed("more items than its stored bytes allow")),
        }
    }

    /// One byte.
    pub fn byte(&mut self) -> Result<u8, Malformed> {
        let Some(byte) = self.bytes.get(self.at) else {
            return Err(self.malformed("ends inside an item"));
        };
        self.at += 1;
        Ok(*byte)
    }

    /// A varint.
    pub fn number(&mut self) -> Result<u64, Malformed> {
        let mut n = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            n |= bits << shift;
            if byte < 0x80 {
                return Ok(n);
            }
        }
        Err(self.malformed("a number of more than 64 bits"))
    }

    /// A zigzag varint.
    pub fn signed(&mut self) -> Result<i64, Malformed> {
        Ok(unzigzag(self.number()?))
    }

    /// A varint that must fit into 32 bits.
    pub fn number32(&mut self) -> Result<u32, Malformed> {
        let n = self.number()?;
        u32::try_from(n).map_err(|_| self.malformed(format!("{n} where a 32-bit number belongs")))
    }

    /// See [`Body::optional`].
    pub fn optional(&mut self) -> Result<Option<u64>, Malformed> {
        Ok(self.number()?.checked_sub(1))
    }

    /// The number of items that follow. Each has at least one byte, so it cannot exceed the number of unread bytes.
    pub fn count(&mut self, of: &str) -> Result<usize, Malformed> {
        let n = self.number()?;
        match usize::try_from(n) {
            Ok(count) if count <= self.remaining() => Ok(count),
            _ => Err(self.malformed(format!("counts {n} {of} in {} bytes", self.remaining()))),
        }
    }

    /// Length and bytes.
    pub fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let len = self.count("bytes of text")?;
        self.spend(weight_of_text(len))?;
        self.at += len;
        Ok(&self.bytes[self.at - len..self.at])
    }

    /// Length and UTF-8.
    pub fn text(&mut self) -> Result<&'a str, Malformed> {
        let at = self.at;
        let bytes = self.bytes()?;
        std::str::from_utf8(bytes)
            .map_err(|_| Malformed { at: self.base + at, what: "a text that is not UTF-8".into() })
    }

    /// The next `len` bytes, a column, as a source without budget.
    pub fn column(&mut self, len: usize) -> Result<Source<'a>, Malformed> {
        if len > self.remaining() {
            return Err(self.malformed(format!("a column of {len} bytes in {} bytes", self.remaining())));
        }
        let column = Source {
            bytes: &self.bytes[self.at..self.at + len],
            at: 0,
            base: self.base + self.at,
            budget: 0,
        };
        self.at += len;
        Ok(column)
    }

    /// Returns an error unless everything was read.
    pub fn end(&self) -> Result<(), Malformed> {
        if self.remaining() == 0 {
            return Ok(());
        }
        Err(self.malformed(format!("{} bytes too many", self.remaining())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_come_back(n: u64, s: i64) {
            let mut body = Body::default();
            body.number(n);
            body.number(zigzag(s));
            let mut source = Source::new(&body.raw, 0);
            prop_assert_eq!(source.number().unwrap(), n);
            prop_assert_eq!(source.signed().unwrap(), s);
            source.end().unwrap();
        }
    }

    #[test]
    fn a_number_of_more_than_64_bits_is_refused() {
        let mut most = vec![0xff; 9];
        most.push(1);
        assert_eq!(Source::new(&most, 0).number().unwrap(), u64::MAX);
        *most.last_mut().unwrap() = 2;
        assert!(Source::new(&most, 0).number().is_err());
        assert!(Source::new(&[0x80; 11], 0).number().is_err());
        assert!(Source::new(&[0x80; 3], 0).number().is_err());
    }

    #[test]
    fn counts_are_checked_against_what_is_left() {
        let mut body = Body::default();
        body.number(4);
        body.raw.extend([0; 3]);
        assert!(Source::new(&body.raw, 100).count("things").is_err());
        assert!(Source::new(&body.raw, 100).bytes().is_err());
        body.raw.push(0);
        assert_eq!(Source::new(&body.raw, 100).count("things").unwrap(), 4);
        assert!(Source::new(&body.raw, 0).bytes().is_err(), "no budget, no memory");
    }
}
