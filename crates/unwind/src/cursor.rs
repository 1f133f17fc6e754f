//! Reading unwind data byte by byte, bounded on both sides, never faulting, never panicking.
//!
//! The bytes belong to a loaded module that may be closed at any moment, or to another process, so they
//! come in small windows through an [`ImageMemory`] instead of being borrowed.

use crate::memory::ImageMemory;
use crate::modules::Module;

/// Bytes held at a time: most unwind entries fit, and refilling is cheap.
const WINDOW: usize = 128;

/// The few bytes last read from a module.
pub(crate) struct Window {
    base: u64,
    len: usize,
    bytes: [u8; WINDOW],
}

impl Window {
    pub(crate) const fn new() -> Window {
        Window { base: 0, len: 0, bytes: [0; WINDOW] }
    }

    /// Forgets what was read: needed before the window serves another module.
    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }
}

/// Where the bytes come from; copied freely.
pub(crate) struct Source<'a, I: ?Sized> {
    pub(crate) images: &'a I,
    pub(crate) module: &'a Module,
}

impl<I: ?Sized> Clone for Source<'_, I> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<I: ?Sized> Copy for Source<'_, I> {}

/// A position in a module's unwind data, limited to `end`.
pub(crate) struct Cursor<'a, 'w, I: ?Sized> {
    source: Source<'a, I>,
    window: &'w mut Window,
    start: u64,
    at: u64,
    end: u64,
}

impl<'a, 'w, I: ImageMemory + ?Sized> Cursor<'a, 'w, I> {
    /// A cursor over `[at, end)`, cut to the part of the module that holds unwind data.
    pub(crate) fn new(source: Source<'a, I>, window: &'w mut Window, at: u64, end: u64) -> Self {
        let readable = source.module.unwind_data();
        // A start outside leaves an empty range: every read then answers `None`.
        let end = end.min(readable.end);
        let at = if at < readable.start { end.max(at) } else { at };
        Cursor { source, window, start: at, at, end }
    }

    pub(crate) fn position(&self) -> u64 {
        self.at
    }

    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.at >= self.end
    }

    /// Shortens the range; never widens it.
    pub(crate) fn limit(&mut self, end: u64) {
        self.end = self.end.min(end);
    }

    #[inline(always)]
    pub(crate) fn u8(&mut self) -> Option<u8> {
        if self.at >= self.end {
            return None;
        }
        let mut index = self.at.wrapping_sub(self.window.base);
        if index >= self.window.len as u64 {
            self.fill()?;
            index = 0;
        }
        self.at += 1;
        self.window.bytes.get(index as usize).copied()
    }

    #[cold]
    #[inline(never)]
    fn fill(&mut self) -> Option<()> {
        let want = (self.end - self.at).min(WINDOW as u64) as usize;
        let got = self.source.images.read(self.source.module, self.at, self.window.bytes.get_mut(..want)?);
        self.window.base = self.at;
        self.window.len = got.min(want);
        (got > 0).then_some(())
    }

    #[inline(never)]
    fn little_endian(&mut self, bytes: u32) -> Option<u64> {
        let mut value = 0u64;
        for i in 0..bytes.min(8) {
            value |= u64::from(self.u8()?) << (8 * i);
        }
        Some(value)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.little_endian(2).map(|v| v as u16)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.little_endian(4).map(|v| v as u32)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.little_endian(8)
    }

    /// A two's complement number of 1, 2, 4 or 8 bytes.
    #[inline(never)]
    pub(crate) fn signed(&mut self, bytes: u32) -> Option<i64> {
        let value = self.little_endian(bytes)?;
        let unused = 64 - 8 * bytes.clamp(1, 8);
        Some(((value << unused) as i64) >> unused)
    }

    /// LEB128; bits beyond 64 are dropped, more than ten bytes are an error.
    #[inline(never)]
    pub(crate) fn uleb(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for i in 0..10 {
            let byte = self.u8()?;
            value |= u64::from(byte & 0x7f) << (7 * i);
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// Signed LEB128, same limits.
    #[inline(never)]
    pub(crate) fn sleb(&mut self) -> Option<i64> {
        let mut value = 0i64;
        for i in 0..10 {
            let byte = self.u8()?;
            let shift = 7 * i;
            value |= i64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                let used = shift + 7;
                if byte & 0x40 != 0 && used < 64 {
                    value |= -1i64 << used;
                }
                return Some(value);
            }
        }
        None
    }

    /// Goes to an address inside the range; elsewhere the cursor is at its end.
    pub(crate) fn seek(&mut self, to: u64) {
        self.at = if to < self.start { self.end } else { to };
    }

    pub(crate) fn skip(&mut self, bytes: u64) -> Option<()> {
        let to = self.at.checked_add(bytes)?;
        if to > self.end {
            return None;
        }
        self.at = to;
        Some(())
    }

    /// A pointer in the encoding of the Linux Standard Base (`DW_EH_PE_*`). `data` is what data-relative
    /// ones count from. Indirect, text- and function-relative ones are not produced for x86-64 code ranges.
    pub(crate) fn pointer(&mut self, encoding: u8, data: u64) -> Option<u64> {
        let base = match encoding & 0x70 {
            0x00 => 0,
            0x10 => self.at,
            0x30 => data,
            _ => return None,
        };
        if encoding & 0x80 != 0 {
            return None;
        }
        let value = self.pointer_value(encoding)?;
        Some(value.wrapping_add(base))
    }

    /// The number alone, as for a length: the low four bits of the encoding.
    pub(crate) fn pointer_value(&mut self, encoding: u8) -> Option<u64> {
        Some(match encoding & 0x0f {
            0x00 | 0x04 | 0x0c => self.u64()?,
            0x01 => self.uleb()?,
            0x02 => u64::from(self.u16()?),
            0x03 => u64::from(self.u32()?),
            0x09 => self.sleb()? as u64,
            0x0a => self.signed(2)? as u64,
            0x0b => self.signed(4)? as u64,
            _ => return None,
        })
    }
}
