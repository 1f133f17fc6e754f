//! A reader of JSON for heap snapshots: values in the order of the file, with offsets, in constant memory.
//!
//! Snapshots are almost nothing but numbers, up to some hundred megabytes of them, which no tree of values should hold.

use crate::fault::Fault;
use std::io::Read;

const BUFFER: usize = 1 << 18;

/// Reads JSON from front to back.
pub(super) struct Scanner<R> {
    input: R,
    buffer: Box<[u8]>,
    /// Next byte in the buffer.
    at: usize,
    /// End of the valid bytes in the buffer.
    end: usize,
    /// Offset of the buffer in the file.
    before: u64,
}

impl<R: Read> Scanner<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, buffer: vec![0; BUFFER].into(), at: 0, end: 0, before: 0 }
    }

    /// Offset of the next byte.
    pub(super) fn offset(&self) -> u64 {
        self.before + self.at as u64
    }

    pub(super) fn fault<T>(&self, what: impl Into<String>) -> Result<T, Fault> {
        Err(Fault::at(self.offset(), what))
    }

    /// Fills an empty buffer. Returns false at the end of the file.
    #[cold]
    fn fill(&mut self) -> Result<bool, Fault> {
        self.before += self.end as u64;
        (self.at, self.end) = (0, 0);
        loop {
            match self.input.read(&mut self.buffer) {
                Ok(count) => {
                    self.end = count;
                    return Ok(count > 0);
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    #[inline]
    fn byte(&mut self) -> Result<Option<u8>, Fault> {
        if self.at == self.end && !self.fill()? {
            return Ok(None);
        }
        Ok(Some(self.buffer[self.at]))
    }

    fn some_byte(&mut self) -> Result<u8, Fault> {
        match self.byte()? {
            Some(byte) => Ok(byte),
            None => self.fault("the file ends too early: it is truncated"),
        }
    }

    /// The next byte that is no white space, which stays.
    #[inline]
    pub(super) fn peek(&mut self) -> Result<u8, Fault> {
        loop {
            match self.some_byte()? {
                b' ' | b'\t' | b'\n' | b'\r' => self.at += 1,
                byte => return Ok(byte),
            }
        }
    }

    /// Takes this byte, after white space.
    pub(super) fn expect(&mut self, expected: u8) -> Result<(), Fault> {
        let found = self.peek()?;
        if found != expected {
            return self.fault(format!("expected {:?}, found {:?}", expected as char, found as char));
        }
        self.at += 1;
        Ok(())
    }

    /// Begins the next element of an array or object that ends with `close`. Returns false after its last one. `first`
    /// must be true before the first element, and is changed.
    pub(super) fn element(&mut self, close: u8, first: &mut bool) -> Result<bool, Fault> {
        let found = self.peek()?;
        if found == close {
            self.at += 1;
            return Ok(false);
        }
        if !std::mem::take(first) {
            if found != b',' {
                return self
                    .fault(format!("expected a comma or {:?}, found {:?}", close as char, found as char));
            }
            self.at += 1;
        }
        Ok(true)
    }

    /// The key of the next member of an object.
    pub(super) fn key(&mut self, first: &mut bool) -> Result<Option<String>, Fault> {
        if !self.element(b'}', first)? {
            return Ok(None);
        }
        let key = self.string()?;
        self.expect(b':')?;
        Ok(Some(key))
    }

    /// A number without sign, fraction and exponent.
    #[inline]
    pub(super) fn number(&mut self) -> Result<u64, Fault> {
        let first = self.peek()?.wrapping_sub(b'0');
        if first > 9 {
            return self.fault("expected a number without sign");
        }
        self.at += 1;
        let mut value = u64::from(first);
        while let Some(byte) = self.byte()? {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                if matches!(byte, b'.' | b'e' | b'E') {
                    return self.fault("expected a number without fraction and exponent");
                }
                break;
            }
            let Some(next) = value.checked_mul(10).and_then(|tens| tens.checked_add(u64::from(digit))) else {
                return self.fault("a number is larger than 64 bits");
            };
            value = next;
            self.at += 1;
        }
        Ok(value)
    }

    /// The next numbers of an array, as many as the slice has. Returns false at the end of the array.
    #[inline]
    pub(super) fn record(&mut self, record: &mut [u64], first: &mut bool) -> Result<bool, Fault> {
        if !self.element(b']', first)? {
            return Ok(false);
        }
        for (index, value) in record.iter_mut().enumerate() {
            if index > 0 {
                self.expect(b',')?;
            }
            *value = self.number()?;
        }
        Ok(true)
    }

    /// A string. Invalid UTF-8 and lone surrogates become U+FFFD.
    pub(super) fn string(&mut self) -> Result<String, Fault> {
        let mut bytes = Vec::new();
        self.string_bytes(&mut bytes)?;
        Ok(match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        })
    }

    /// Appends the bytes of a string.
    pub(super) fn string_bytes(&mut self, bytes: &mut Vec<u8>) -> Result<(), Fault> {
        self.expect(b'"')?;
        loop {
            self.some_byte()?;
            let rest = &self.buffer[self.at..self.end];
            let plain = rest.iter().position(|byte| matches!(byte, b'"' | b'\\')).unwrap_or(rest.len());
            bytes.extend_from_slice(&rest[..plain]);
            self.at += plain;
            if plain == rest.len() {
                continue;
            }
            let byte = self.buffer[self.at];
            self.at += 1;
            if byte == b'"' {
                return Ok(());
            }
            let escape = self.some_byte()?;
            self.at += 1;
            match escape {
                b'"' | b'\\' | b'/' => bytes.push(escape),
                b'b' => bytes.push(8),
                b'f' => bytes.push(12),
                b'n' => bytes.push(b'\n'),
                b'r' => bytes.push(b'\r'),
                b't' => bytes.push(b'\t'),
                b'u' => self.unicode(bytes)?,
                _ => return self.fault("an unknown escape in a string"),
            }
        }
    }

    fn unicode(&mut self, bytes: &mut Vec<u8>) -> Result<(), Fault> {
        let mut unit = self.hex()?;
        // A high surrogate needs a low one behind it. Without one it stands for U+FFFD.
        while (0xd800..0xdc00).contains(&unit) {
            if self.some_byte()? != b'\\' {
                break;
            }
            self.at += 1;
            if self.some_byte()? != b'u' {
                // Another escape: puts the backslash back, which is still in the buffer, or begins it.
                push_char(bytes, char::REPLACEMENT_CHARACTER);
                return self.escape_after_surrogate(bytes);
            }
            self.at += 1;
            let low = self.hex()?;
            if (0xdc00..0xe000).contains(&low) {
                let code = 0x10000 + ((u32::from(unit) - 0xd800) << 10) + (u32::from(low) - 0xdc00);
                push_char(bytes, char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                return Ok(());
            }
            push_char(bytes, char::REPLACEMENT_CHARACTER);
            unit = low;
        }
        push_char(bytes, char::from_u32(unit.into()).unwrap_or(char::REPLACEMENT_CHARACTER));
        Ok(())
    }

    /// An escape of one letter, of which the backslash is taken.
    fn escape_after_surrogate(&mut self, bytes: &mut Vec<u8>) -> Result<(), Fault> {
        let escape = self.some_byte()?;
        self.at += 1;
        bytes.push(match escape {
            b'"' | b'\\' | b'/' => escape,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            _ => return self.fault("an unknown escape in a string"),
        });
        Ok(())
    }

    fn hex(&mut self) -> Result<u16, Fault> {
        let mut unit = 0;
        for _ in 0..4 {
            let Some(digit) = (self.some_byte()? as char).to_digit(16) else {
                return self.fault("expected four hexadecimal digits");
            };
            unit = unit << 4 | digit as u16;
            self.at += 1;
        }
        Ok(unit)
    }

    /// Skips a value of any kind. Nesting costs no memory.
    pub(super) fn skip(&mut self) -> Result<(), Fault> {
        let mut depth = 0_u64;
        loop {
            match self.peek()? {
                b'"' => self.skip_string()?,
                b'[' | b'{' => {
                    depth += 1;
                    self.at += 1;
                }
                b']' | b'}' => {
                    let Some(less) = depth.checked_sub(1) else {
                        return self.fault("expected a value");
                    };
                    depth = less;
                    self.at += 1;
                }
                b',' | b':' if depth > 0 => {
                    self.at += 1;
                    continue;
                }
                byte if byte.is_ascii_alphanumeric() || byte == b'-' => {
                    while let Some(byte) = self.byte()?
                        && (byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
                    {
                        self.at += 1;
                    }
                }
                _ => return self.fault("expected a value"),
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }

    fn skip_string(&mut self) -> Result<(), Fault> {
        self.expect(b'"')?;
        loop {
            let byte = self.some_byte()?;
            self.at += 1;
            match byte {
                b'"' => return Ok(()),
                b'\\' => {
                    self.some_byte()?;
                    self.at += 1;
                }
                _ => {}
            }
        }
    }

    /// Checks that only white space is left.
    pub(super) fn finish(&mut self) -> Result<(), Fault> {
        while let Some(byte) = self.byte()? {
            if !byte.is_ascii_whitespace() && byte != 0 {
                return self.fault("bytes after the end of the snapshot");
            }
            self.at += 1;
        }
        Ok(())
    }
}

fn push_char(bytes: &mut Vec<u8>, char: char) {
    bytes.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
}
