//! What unwinding would do in a function at a call: its table of call sites says which code then runs, the landing pad.
//!
//! Sources: Itanium C++ ABI, exception handling tables (§7); GCC's `unwind-pe.h`. Compilers of Rust, C++ and C write the same tables to
//! `.gcc_except_table`. A call that cannot unwind is not in the table, or in a range of calls without a landing pad.

use crate::cursor::{Cursor, Source, Window};
use crate::dwarf::DW_EH_PE_OMIT;
use crate::eh_frame::{self, Fde};
use crate::memory::ModuleMemory;
use crate::modules::Module;
use std::ops::Range;

/// Most call sites of a function that are looked at.
const MOST_CALL_SITES: u32 = 1 << 16;
/// Most actions of a call site.
const MOST_ACTIONS: u32 = 64;

/// What unwinding would do in a function that has made a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LandingPad {
    /// It is not known: the call is not in the table. Such a call does not unwind, or the program is aborted.
    Unknown,
    /// The function has no table, so it never needs to do anything. Nor has one in a program that aborts instead of unwinding.
    NoTable,
    /// Nothing needs to be done.
    Nothing,
    /// The code at this address drops what is live, and then the caller is unwound.
    Cleanup(u64),
    /// The code at this address may catch what is thrown.
    Catch(u64),
}

/// An entry of a table: code of a function with one landing pad.
///
/// LLVM makes one entry of calls with the same landing pad. Calls between them that cannot unwind are within it, although nothing that
/// the landing pad drops need be live there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CallSites {
    /// What unwinding would do there.
    pub pad: LandingPad,
    /// Addresses of the code. Empty if the call is in no entry.
    pub range: Range<u64>,
    /// Addresses of the function. Empty if there is none.
    pub function: Range<u64>,
}

impl CallSites {
    /// The entry with a call, by its lookup address. `memory` reads the module.
    pub fn of<M: ModuleMemory + ?Sized>(memory: &M, module: &Module, lookup: u64) -> CallSites {
        let (mut window, mut fde) = (Window::new(), Fde::new());
        let source = Source { memory, module };
        if eh_frame::find(source, &mut window, lookup, &mut fde).is_none() {
            return CallSites { pad: LandingPad::Unknown, range: 0..0, function: 0..0 };
        }
        let without = |pad| CallSites { pad, range: 0..0, function: fde.start..fde.end };
        if fde.cie.table_encoding == DW_EH_PE_OMIT {
            return without(LandingPad::NoTable);
        }
        window.clear();
        let found = match table(source, &mut window, &fde) {
            Some(0) => return without(LandingPad::NoTable),
            Some(table) => {
                window.clear();
                find(source, &mut window, table, fde.start, lookup)
            }
            None => None,
        };
        let Some((pad, range)) = found else { return without(LandingPad::Unknown) };
        CallSites { pad, range, function: fde.start..fde.end }
    }
}

/// The address of a function's table. 0 if there is none.
fn table<M: ModuleMemory + ?Sized>(source: Source<'_, M>, window: &mut Window, fde: &Fde) -> Option<u64> {
    let encoding = fde.cie.table_encoding;
    let mut cursor = Cursor::new(source, window, fde.table_pointer, fde.instructions.0);
    // A null pointer has no base.
    if cursor.pointer_value(encoding)? == 0 {
        return Some(0);
    }
    cursor.seek(fde.table_pointer);
    cursor.pointer(encoding, 0)
}

/// Searches a table. `start` is that of the function.
fn find<M: ModuleMemory + ?Sized>(
    source: Source<'_, M>,
    window: &mut Window,
    table: u64,
    start: u64,
    lookup: u64,
) -> Option<(LandingPad, Range<u64>)> {
    let mut cursor = Cursor::new(source, window, table, u64::MAX);
    let base_encoding = cursor.u8()?;
    let pads = if base_encoding == DW_EH_PE_OMIT { start } else { cursor.pointer(base_encoding, 0)? };
    if cursor.u8()? != DW_EH_PE_OMIT {
        // Where the types are that are caught.
        cursor.uleb()?;
    }
    let encoding = cursor.u8()?;
    let length = cursor.uleb()?;
    let actions = cursor.position().checked_add(length)?;
    let mut sites = 0;
    let (pad, action, range) = loop {
        if cursor.position() >= actions || sites == MOST_CALL_SITES {
            return None;
        }
        sites += 1;
        let first = start.checked_add(cursor.pointer_value(encoding)?)?;
        let count = cursor.pointer_value(encoding)?;
        let (pad, action) = (cursor.pointer_value(encoding)?, cursor.uleb()?);
        if lookup < first {
            // They are in the order of their addresses.
            return None;
        }
        if lookup - first < count {
            break (pad, action, first..first.checked_add(count)?);
        }
    };
    let pad = match (pad, action) {
        (0, _) => LandingPad::Nothing,
        (pad, 0) => LandingPad::Cleanup(pads.checked_add(pad)?),
        (pad, action) => match catches(cursor, actions.checked_add(action - 1)?)? {
            true => LandingPad::Catch(pads.checked_add(pad)?),
            false => LandingPad::Cleanup(pads.checked_add(pad)?),
        },
    };
    Some((pad, range))
}

/// Whether one of the actions from an address on has a filter for what is thrown.
fn catches<M: ModuleMemory + ?Sized>(mut cursor: Cursor<'_, '_, M>, action: u64) -> Option<bool> {
    let mut at = action;
    for _ in 0..MOST_ACTIONS {
        cursor.seek(at);
        if cursor.sleb()? != 0 {
            return Some(true);
        }
        let from = cursor.position();
        match cursor.sleb()? {
            0 => return Some(false),
            next => at = from.checked_add_signed(next)?,
        }
    }
    None
}
