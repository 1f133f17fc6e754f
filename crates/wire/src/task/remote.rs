//! The pool as another process reads it: copied bytes, each of which may have any value.

use super::{ENTRIES, MARK, TEXT_WORDS, TaskCell, TaskEntry, TaskPool};
use core::mem::offset_of;
use core::ops::Range;

/// Bytes of a pool.
pub const POOL_BYTES: usize = size_of::<TaskPool>();

/// The first bytes of a pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PoolHead {
    /// Highest number of an entry that is or was in use.
    pub entries_used: u32,
    /// The end of each poll is timed.
    pub is_timed: bool,
    /// Tasks for which the table had no room.
    pub lost: u64,
}

impl PoolHead {
    /// Bytes of it.
    pub const BYTES: usize = offset_of!(TaskPool, cells);

    /// Reads it. `None` if this is no pool in use.
    pub fn parse(bytes: &[u8]) -> Option<PoolHead> {
        if word(bytes, offset_of!(TaskPool, mark))? != MARK {
            return None;
        }
        Some(PoolHead {
            entries_used: half(bytes, offset_of!(TaskPool, entries_used))?.min(ENTRIES as u32),
            is_timed: half(bytes, offset_of!(TaskPool, timed))? != 0,
            lost: word(bytes, offset_of!(TaskPool, lost))?,
        })
    }

    /// Where in the pool the entries in use are.
    pub fn entries(&self) -> Range<usize> {
        let start = offset_of!(TaskPool, entries);
        start..start + self.entries_used as usize * ReadEntry::BYTES
    }
}

/// An entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadEntry<'a> {
    /// The task's id.
    pub id: u64,
    /// Number of the cell of the polling thread, 0 while it waits.
    pub polled_by: u32,
    /// CLOCK_MONOTONIC ns at the end of its last poll, if polls are timed; else its creation, or 0.
    pub since: u64,
    /// Address of its future; 0 before its first poll.
    pub future: u64,
    /// Address of the future's vtable.
    pub vtable: u64,
    /// Its name.
    pub name: &'a [u8],
    /// The path of the source file that created it.
    pub file: &'a [u8],
    /// The line.
    pub line: u32,
}

impl<'a> ReadEntry<'a> {
    /// Bytes of an entry.
    pub const BYTES: usize = size_of::<TaskEntry>();

    /// Reads an entry. `None` if it is free.
    pub fn parse(bytes: &'a [u8]) -> Option<ReadEntry<'a>> {
        let id = word(bytes, offset_of!(TaskEntry, id)).filter(|id| *id != 0)?;
        let lengths = word(bytes, offset_of!(TaskEntry, lengths))?;
        let start = offset_of!(TaskEntry, text);
        let text = bytes.get(start..start + TEXT_WORDS * 8)?;
        let (name, rest) = text.split_at_checked((lengths & 0xffff) as usize)?;
        Some(ReadEntry {
            id,
            polled_by: half(bytes, offset_of!(TaskEntry, polled_by))?,
            since: word(bytes, offset_of!(TaskEntry, since))?,
            future: word(bytes, offset_of!(TaskEntry, future))?,
            vtable: word(bytes, offset_of!(TaskEntry, vtable))?,
            name,
            file: rest.get(..(lengths >> 16 & 0xffff) as usize)?,
            line: (lengths >> 32) as u32,
        })
    }

    /// Where in the pool the kernel id of the polling thread is.
    pub fn owner_at(&self) -> Option<usize> {
        let index = (self.polled_by as usize).checked_sub(1).filter(|index| *index < super::CELLS)?;
        Some(offset_of!(TaskPool, cells) + index * size_of::<TaskCell>() + offset_of!(TaskCell, owner))
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::super::TaskText;
    use super::*;
    use std::boxed::Box;

    #[test]
    fn what_was_written_is_read_from_its_bytes() {
        // SAFETY: all zeros is an empty pool.
        let pool: Box<TaskPool> = unsafe { Box::new_zeroed().assume_init() };
        // SAFETY: the bytes of a value that lives on, made of integers.
        let bytes = || unsafe { std::slice::from_raw_parts((&raw const *pool).cast::<u8>(), POOL_BYTES) };
        assert_eq!(PoolHead::parse(bytes()), None, "it is not marked");
        pool.set_mark();
        let number = pool.register(7, &TaskText::new("serve", "src/main.rs", 12), 99);
        let entry = pool.entry(number).unwrap();
        entry.set_future(0x1000, 0x2000);
        let (_, cell) = pool.claim(70).unwrap();
        entry.begin(cell);
        let head = PoolHead::parse(bytes()).unwrap();
        assert_eq!(head, PoolHead { entries_used: 1, is_timed: false, lost: 0 });
        let read = ReadEntry::parse(&bytes()[head.entries()]).unwrap();
        assert_eq!((read.id, read.polled_by, read.since), (7, cell, 99));
        assert_eq!((read.future, read.vtable), (0x1000, 0x2000));
        assert_eq!((read.name, read.file, read.line), (&b"serve"[..], &b"src/main.rs"[..], 12));
        assert_eq!(half(bytes(), read.owner_at().unwrap()), Some(70));
        pool.unregister(7, number);
        assert_eq!(ReadEntry::parse(&bytes()[head.entries()]), None);
    }

    #[test]
    fn any_bytes_are_read_without_a_panic() {
        for fill in [1, 0x7f, 0xff] {
            let bytes = [fill; ReadEntry::BYTES];
            let read = ReadEntry::parse(&bytes);
            assert!(read.is_none_or(|read| read.owner_at().is_none_or(|at| at < POOL_BYTES)));
            assert_eq!(PoolHead::parse(&bytes), None);
        }
        assert_eq!(ReadEntry::parse(&[1; 100]), None);
        assert_eq!(PoolHead::parse(&[]), None);
    }
}
