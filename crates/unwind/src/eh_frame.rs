//! From an address to its unwind entry: the sorted table in `.eh_frame_hdr`, the entry (FDE) that it points to,
//! and the common part (CIE) that the entry shares with others.
//!
//! Source: Linux Standard Base 5 core §10.6. Only what a walk needs is kept. Each step is a function that writes its
//! result to memory of its caller and returns before the next: the stack belongs to a signal handler.

use crate::cursor::{Cursor, Source, Window};
use crate::dwarf::*;
use crate::memory::ModuleMemory;

/// The only table encoding that linkers write: 4 bytes, signed, relative to the header.
const SORTED_TABLE: u8 = DW_EH_PE_DATAREL | DW_EH_PE_SDATA4;
/// Most entries read where there is no sorted table, so that a handler does not loop for long.
const LINEAR_LIMIT: u32 = 200_000;
/// Most bytes of instructions in one entry; the largest known have some 30 KiB.
const INSTRUCTIONS_LIMIT: u64 = 1 << 20;

/// The part that the entries of one compilation share.
#[derive(Clone, Copy)]
pub(crate) struct Cie {
    pub(crate) code_align: u64,
    pub(crate) data_align: i64,
    pub(crate) address_encoding: u8,
    pub(crate) is_signal_frame: bool,
    has_augmentation_data: bool,
    /// Encoding of the pointers to tables of call sites.
    pub(crate) table_encoding: u8,
    /// Addresses of the initial instructions.
    pub(crate) instructions: (u64, u64),
}

/// The entry of a function, or of a part of one.
#[derive(Clone, Copy)]
pub(crate) struct Fde {
    pub(crate) cie: Cie,
    /// First address covered.
    pub(crate) start: u64,
    /// First address no longer covered.
    pub(crate) end: u64,
    /// Where the pointer to its table of call sites is, if the encoding says that there is one.
    pub(crate) table_pointer: u64,
    /// Addresses of its instructions.
    pub(crate) instructions: (u64, u64),
}

impl Fde {
    pub(crate) const fn new() -> Fde {
        let cie = Cie {
            code_align: 0,
            data_align: 0,
            address_encoding: 0,
            is_signal_frame: false,
            has_augmentation_data: false,
            table_encoding: DW_EH_PE_OMIT,
            instructions: (0, 0),
        };
        Fde { cie, start: 0, end: 0, table_pointer: 0, instructions: (0, 0) }
    }

    fn covers(&self, pc: u64) -> bool {
        self.start <= pc && pc < self.end
    }
}

/// Result of a search in `.eh_frame_hdr`.
enum Located {
    /// The entry lies here.
    Entry(u64),
    /// There is no sorted table: the entries start here.
    Unsorted(u64),
}

/// Fills `fde` with the entry that covers `pc`. `None` if there is none, or if it cannot be read.
pub(crate) fn find<M: ModuleMemory + ?Sized>(
    source: Source<'_, M>,
    window: &mut Window,
    pc: u64,
    fde: &mut Fde,
) -> Option<()> {
    let eh_frame = source.module.eh_frame();
    if source.module.eh_frame_hdr().is_empty() {
        return scan(source, window, eh_frame.start, eh_frame.end, pc, fde);
    }
    match locate(source, window, pc)? {
        Located::Entry(at) => read_entry(source, window, at, fde)?,
        Located::Unsorted(start) => scan(source, window, start, u64::MAX, pc, fde)?,
    }
    fde.covers(pc).then_some(())
}

/// Searches the sorted table for the last entry that starts at or before `pc`.
#[inline(never)]
fn locate<M: ModuleMemory + ?Sized>(source: Source<'_, M>, window: &mut Window, pc: u64) -> Option<Located> {
    let header = source.module.eh_frame_hdr();
    let mut cursor = Cursor::new(source, window, header.start, header.end);
    if cursor.u8()? != 1 {
        return None;
    }
    let (frame_encoding, count_encoding, table_encoding) = (cursor.u8()?, cursor.u8()?, cursor.u8()?);
    let eh_frame = cursor.pointer(frame_encoding, header.start)?;
    if count_encoding == DW_EH_PE_OMIT || table_encoding != SORTED_TABLE {
        return Some(Located::Unsorted(eh_frame));
    }
    let count = cursor.pointer_value(count_encoding)?;
    let table = cursor.position();
    let relative = i32::try_from(pc.wrapping_sub(header.start) as i64).ok()?;

    // Each round halves the range: at most 32 of them.
    let (mut low, mut high) = (0u64, count.min((cursor.end() - table) / 8));
    while low < high {
        let middle = low + (high - low) / 2;
        cursor.seek(table + middle * 8);
        if cursor.signed(4)? as i32 <= relative {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    cursor.seek(table + low.checked_sub(1)? * 8 + 4);
    let offset = cursor.signed(4)?;
    Some(Located::Entry(header.start.wrapping_add(offset as u64)))
}

/// Searches entry by entry, in modules without a sorted table.
#[cold]
#[inline(never)]
fn scan<M: ModuleMemory + ?Sized>(
    source: Source<'_, M>,
    window: &mut Window,
    start: u64,
    end: u64,
    pc: u64,
    fde: &mut Fde,
) -> Option<()> {
    let mut at = start;
    for _ in 0..LINEAR_LIMIT {
        let mut cursor = Cursor::new(source, window, at, end);
        let (_, next) = entry_body(&mut cursor)?;
        let is_fde = cursor.u32()? != 0;
        if is_fde && read_entry(source, window, at, fde).is_some() && fde.covers(pc) {
            return Some(());
        }
        at = next;
    }
    None
}

/// Reads the length field and gives the start of the body and of the next entry.
/// `None` for the terminator (length 0) and for impossible lengths.
fn entry_body<M: ModuleMemory + ?Sized>(cursor: &mut Cursor<'_, '_, M>) -> Option<(u64, u64)> {
    let mut length = u64::from(cursor.u32()?);
    if length == 0xffff_ffff {
        length = cursor.u64()?;
    }
    let body = cursor.position();
    let next = body.checked_add(length)?;
    (length >= 4 && next <= cursor.end()).then_some((body, next))
}

/// Reads an FDE and its CIE.
fn read_entry<M: ModuleMemory + ?Sized>(
    source: Source<'_, M>,
    window: &mut Window,
    at: u64,
    fde: &mut Fde,
) -> Option<()> {
    let (body, next) = read_cie_of(source, window, at, &mut fde.cie)?;
    read_fde(source, window, body, next, fde)
}

/// Reads the CIE that an FDE points to and gives the start and end of the FDE's body.
#[inline(never)]
fn read_cie_of<M: ModuleMemory + ?Sized>(
    source: Source<'_, M>,
    window: &mut Window,
    at: u64,
    cie: &mut Cie,
) -> Option<(u64, u64)> {
    let mut cursor = Cursor::new(source, window, at, u64::MAX);
    let (body, next) = entry_body(&mut cursor)?;
    let back = u64::from(cursor.u32()?);
    if back == 0 {
        return None; // a CIE where an FDE should be
    }
    *cie = read_cie(source, window, body.checked_sub(back)?)?;
    Some((body, next))
}

#[inline(never)]
fn read_fde<M: ModuleMemory + ?Sized>(
    source: Source<'_, M>,
    window: &mut Window,
    body: u64,
    next: u64,
    fde: &mut Fde,
) -> Option<()> {
    let mut cursor = Cursor::new(source, window, body.checked_add(4)?, next);
    fde.start = cursor.pointer(fde.cie.address_encoding, 0)?;
    fde.end = fde.start.checked_add(cursor.pointer_value(fde.cie.address_encoding)?)?;
    if fde.cie.has_augmentation_data {
        let skip = cursor.uleb()?;
        fde.table_pointer = cursor.position();
        cursor.skip(skip)?;
    }
    let first = cursor.position();
    fde.instructions = (first, next.min(first.saturating_add(INSTRUCTIONS_LIMIT)));
    Some(())
}

fn read_cie<M: ModuleMemory + ?Sized>(source: Source<'_, M>, window: &mut Window, at: u64) -> Option<Cie> {
    let mut cursor = Cursor::new(source, window, at, u64::MAX);
    let (_, next) = entry_body(&mut cursor)?;
    cursor.limit(next);
    if cursor.u32()? != 0 {
        return None; // not a CIE
    }
    let version = cursor.u8()?;
    if version != 1 && version != 3 {
        return None;
    }
    // The augmentation string: at most "zPLRSB" in practice.
    let mut augmentation = [0u8; 8];
    let mut augmentation_len = 0usize;
    loop {
        let character = cursor.u8()?;
        if character == 0 {
            break;
        }
        *augmentation.get_mut(augmentation_len)? = character;
        augmentation_len += 1;
    }
    let code_align = cursor.uleb()?;
    let data_align = cursor.sleb()?;
    let return_register = if version == 1 { u64::from(cursor.u8()?) } else { cursor.uleb()? };
    if return_register != u64::from(crate::registers::DWARF_RETURN_ADDRESS) {
        return None;
    }
    let mut cie = Cie {
        code_align,
        data_align,
        address_encoding: 0,
        is_signal_frame: false,
        has_augmentation_data: false,
        table_encoding: DW_EH_PE_OMIT,
        instructions: (0, 0),
    };
    let mut first = cursor.position();
    for (i, character) in augmentation.iter().take(augmentation_len).enumerate() {
        match (i, character) {
            (0, b'z') => {
                let length = cursor.uleb()?;
                first = cursor.position().checked_add(length)?;
                cie.has_augmentation_data = true;
            }
            (0, _) => return None, // without 'z' the length of what follows is unknown
            (_, b'R') => cie.address_encoding = cursor.u8()?,
            (_, b'L') => cie.table_encoding = cursor.u8()?,
            (_, b'P') => {
                let encoding = cursor.u8()?;
                cursor.pointer_value(encoding)?;
            }
            (_, b'S') => cie.is_signal_frame = true,
            (_, b'B') => {}
            _ => break, // the rest is skipped by its length
        }
    }
    if cie.address_encoding == DW_EH_PE_OMIT || first > next {
        return None;
    }
    cie.instructions = (first, next.min(first.saturating_add(INSTRUCTIONS_LIMIT)));
    Some(cie)
}
