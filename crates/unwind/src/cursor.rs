//! Reads unwind data byte by byte within bounds, without faults or panics.
//!
//! The bytes belong to a loaded module that may be unloaded at any moment, or to another process. They are therefore
//! copied in small windows through an [`ModuleMemory`], not borrowed.

use crate::dwarf::*;
use crate::memory::ModuleMemory;
use crate::modules::Module;

/// Bytes copied at a time. Most unwind entries fit, and a refill is cheap.
const WINDOW: usize = 128;

/// The bytes last read from a module.
pub(crate) struct Window {
    base: u64,
    len: usize,
    bytes: [u8; WINDOW],
}

impl Window {
    pub(crate) const fn new() -> Window {
        Window { base: 0, len: 0, bytes: [0; WINDOW] }
    }

    /// Empties the window, as needed before it serves another module.
    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }
}

/// Where the bytes come from.
pub(crate) struct Source<'a, M: ?Sized> {
    pub(crate) memory: &'a M,
    pub(crate) module: &'a Module,
}

impl<M: ?Sized> Clone for Source<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<M: ?Sized> Copy for Source<'_, M> {}

/// A position in a module's unwind data, limited to `end`.
pub(crate) struct Cursor<'a, 'w, M: ?Sized> {
    source: Source<'a, M>,
    window: &'w mut Window,
    start: u64,
    at: u64,
    end: u64,
}

impl<'a, 'w, M: ModuleMemory + ?Sized> Cursor<'a, 'w, M> {
    /// A cursor over `[at, end)`, cut to the part of the module that holds unwind data.
    pub(crate) fn new(source: Source<'a, M>, window: &'w mut Window, at: u64, end: u64) -> Self {
        let readable = source.module.unwind_data();
        // A start outside leaves an empty range, in which every read gives `None`.
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
        let got = self.source.memory.read(self.source.module, self.at, self.window.bytes.get_mut(..want)?);
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

    /// Moves to an address inside the range, or to the end if it lies elsewhere.
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

    /// A pointer in an encoding of the Linux Standard Base. `data` is the base of data-relative pointers. Indirect,
    /// text-relative and function-relative pointers are not produced for x86-64 code ranges.
    pub(crate) fn pointer(&mut self, encoding: u8, data: u64) -> Option<u64> {
        let base = match encoding & DW_EH_PE_BASE {
            DW_EH_PE_ABSPTR => 0,
            DW_EH_PE_PCREL => self.at,
            DW_EH_PE_DATAREL => data,
            _ => return None,
        };
        if encoding & DW_EH_PE_INDIRECT != 0 {
            return None;
        }
        let value = self.pointer_value(encoding)?;
        Some(value.wrapping_add(base))
    }

    /// The number alone, without its base, as for a length.
    pub(crate) fn pointer_value(&mut self, encoding: u8) -> Option<u64> {
        Some(match encoding & DW_EH_PE_FORMAT {
            DW_EH_PE_ABSPTR | DW_EH_PE_UDATA8 | DW_EH_PE_SDATA8 => self.u64()?,
            DW_EH_PE_ULEB128 => self.uleb()?,
            DW_EH_PE_UDATA2 => u64::from(self.u16()?),
            DW_EH_PE_UDATA4 => u64::from(self.u32()?),
            DW_EH_PE_SLEB128 => self.sleb()? as u64,
            DW_EH_PE_SDATA2 => self.signed(2)? as u64,
            DW_EH_PE_SDATA4 => self.signed(4)? as u64,
            _ => return None,
        })
    }
}
