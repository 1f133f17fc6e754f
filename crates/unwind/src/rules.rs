//! Unwind rules: what `.eh_frame` says about finding the caller's registers from a given address.
//!
//! [`Row`] is the complete answer of the call frame instructions; [`Rule`] the short form that nearly all
//! rows have (CFA from `rsp` or `rbp`, `rbp` kept or saved, return address right below the CFA) and that
//! fits into one cached word. Source: DWARF 5 §6.4.2 (instructions), §6.4.3 (their evaluation).

use crate::cursor::{Cursor, Source, Window};
use crate::eh_frame::{self, Fde};
use crate::expression::{self, Operands};
use crate::memory::ImageMemory;
use crate::modules::Module;
use crate::registers::{COLUMNS, DWARF_RETURN_ADDRESS, RBP, RSP};
use crate::scratch::Scratch;
use std::ops::Range;

/// `DW_CFA_remember_state` may be nested this deep; compilers nest it once.
pub(crate) const REMEMBERED: usize = 6;

/// A DWARF expression: where its bytes lie, counted from the start of the module's unwind data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expression {
    pub(crate) offset: u32,
    pub(crate) len: u16,
}

/// How one register of the caller is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Saved {
    /// The callee has not touched it.
    #[default]
    Same,
    /// It is lost. For the return address: this is the outermost frame.
    Undefined,
    /// In memory at CFA + offset.
    At(i32),
    /// It is the CFA + offset itself.
    Value(i32),
    /// In another register.
    Register(u8),
    /// In memory at the address an expression gives (the CFA is on its stack first).
    AtExpression(Expression),
    /// The value an expression gives.
    ValueExpression(Expression),
}

/// How the canonical frame address (`rsp` before the call) is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cfa {
    /// No instruction has said so yet.
    Unset,
    /// A register (DWARF number) plus an offset.
    Offset(u8, i32),
    /// The value an expression gives.
    Expression(Expression),
}

/// The rules in force at one address.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The canonical frame address.
    pub cfa: Cfa,
    pub(crate) saved: [Saved; COLUMNS],
    /// The frame is a signal trampoline: its caller was interrupted, not calling.
    pub is_signal_frame: bool,
    /// Start of the function's entry.
    pub function: u64,
    /// Where the CFA was first given as `rbp + 16`: the address behind `mov rbp, rsp`. Zero if never before here.
    pub(crate) frame_pointer_set_at: u64,
}

impl Row {
    pub(crate) const fn new() -> Row {
        Row {
            cfa: Cfa::Unset,
            saved: [Saved::Same; COLUMNS],
            is_signal_frame: false,
            function: 0,
            frame_pointer_set_at: 0,
        }
    }

    fn reset(&mut self) {
        self.cfa = Cfa::Unset;
        self.saved.fill(Saved::Same);
        self.frame_pointer_set_at = 0;
    }

    /// How the caller's `rbp` is found.
    pub fn rbp(&self) -> Saved {
        self.saved[RBP as usize]
    }

    /// How the return address is found.
    pub fn return_address(&self) -> Saved {
        self.saved[DWARF_RETURN_ADDRESS as usize]
    }
}

/// What the instructions of one entry work on; part of a [`crate::Scratch`].
pub(crate) struct Interpreter {
    pub(crate) window: Window,
    pub(crate) operands: Operands,
    pub(crate) row: Row,
    fde: Fde,
    initial: Row,
    remembered: [Row; REMEMBERED],
}

/// The short form of a row, a pure function of the address; see [`crate::table`] for its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The usual frame. Offsets count words of 8 bytes.
    Frame {
        /// The CFA counts from `rbp` instead of `rsp`.
        from_rbp: bool,
        /// CFA = base + 8 * this.
        cfa: u16,
        /// The caller's `rbp` lies at CFA - 8 * this; zero: it is unchanged. At least 2, or zero.
        rbp: u8,
    },
    /// No caller: the rules call the return address undefined.
    Outermost,
    /// The module has no entry for the address, or one that cannot be understood.
    Missing,
    /// Only the complete row will do.
    Complex,
}

/// Largest [`Rule::Frame`] fields that fit a table word.
pub(crate) const CFA_LIMIT: i32 = 1 << 16;
pub(crate) const RBP_LIMIT: i32 = 1 << 7;

impl Interpreter {
    pub(crate) const fn new() -> Interpreter {
        Interpreter {
            window: Window::new(),
            operands: Operands::new(),
            fde: Fde::new(),
            row: Row::new(),
            initial: Row::new(),
            remembered: [const { Row::new() }; REMEMBERED],
        }
    }

    /// Puts the row for `pc` into `self.row`. False: no entry, unreadable or not understood.
    pub(crate) fn evaluate<I: ImageMemory + ?Sized>(&mut self, source: Source<'_, I>, pc: u64) -> bool {
        self.window.clear();
        self.try_evaluate(source, pc).is_some()
    }

    fn try_evaluate<I: ImageMemory + ?Sized>(&mut self, source: Source<'_, I>, pc: u64) -> Option<()> {
        eh_frame::find(source, &mut self.window, pc, &mut self.fde)?;
        self.row.reset();
        self.row.is_signal_frame = self.fde.cie.is_signal_frame;
        self.row.function = self.fde.start;
        self.run(source, self.fde.cie.instructions, u64::MAX, true)?;
        self.initial = self.row;
        self.run(source, self.fde.instructions, pc, false)
    }

    /// Executes instructions until the row for `pc` stands. Every turn consumes a byte, so it ends.
    #[inline(never)]
    fn run<I: ImageMemory + ?Sized>(
        &mut self,
        source: Source<'_, I>,
        (start, end): (u64, u64),
        pc: u64,
        in_cie: bool,
    ) -> Option<()> {
        let Interpreter { window, row, initial, remembered, fde, .. } = self;
        let mut cursor = Cursor::new(source, window, start, end);
        let mut location = fde.start;
        let mut depth = 0usize;
        let scaled = |factor: i64| i32::try_from(factor.checked_mul(fde.cie.data_align)?).ok();
        while !cursor.is_empty() {
            let opcode = cursor.u8()?;
            let low = opcode & 0x3f;
            let advance = match opcode {
                0x40..=0x7f => Some(u64::from(low)),
                0x02 => Some(u64::from(cursor.u8()?)),
                0x03 => Some(u64::from(cursor.u16()?)),
                0x04 => Some(u64::from(cursor.u32()?)),
                _ => None,
            };
            if let Some(delta) = advance {
                location = location.checked_add(delta.checked_mul(fde.cie.code_align)?)?;
                if location > pc {
                    return Some(());
                }
                continue;
            }
            match opcode {
                0x00 => {}
                0x01 => {
                    // set_loc
                    location = cursor.pointer(fde.cie.address_encoding, 0)?;
                    if location > pc {
                        return Some(());
                    }
                }
                0x80..=0xbf => {
                    let offset = cursor.uleb()?;
                    save(row, u64::from(low), Saved::At(scaled(offset as i64)?));
                }
                0xc0..=0xff => restore(row, initial, u64::from(low), in_cie)?,
                0x05 => {
                    let (register, offset) = (cursor.uleb()?, cursor.uleb()?);
                    save(row, register, Saved::At(scaled(offset as i64)?));
                }
                0x06 => restore(row, initial, cursor.uleb()?, in_cie)?,
                0x07 => save(row, cursor.uleb()?, Saved::Undefined),
                0x08 => save(row, cursor.uleb()?, Saved::Same),
                0x09 => {
                    let (register, other) = (cursor.uleb()?, cursor.uleb()?);
                    save(row, register, Saved::Register(u8::try_from(other).ok()?));
                }
                0x0a => {
                    *remembered.get_mut(depth)? = *row;
                    depth += 1;
                }
                0x0b => {
                    depth = depth.checked_sub(1)?;
                    let set_at = row.frame_pointer_set_at;
                    *row = *remembered.get(depth)?;
                    if row.frame_pointer_set_at == 0 {
                        row.frame_pointer_set_at = set_at;
                    }
                }
                0x0c => {
                    let (register, offset) = (cursor.uleb()?, cursor.uleb()?);
                    row.cfa = Cfa::Offset(u8::try_from(register).ok()?, i32::try_from(offset).ok()?);
                }
                0x0d => {
                    let register = u8::try_from(cursor.uleb()?).ok()?;
                    let Cfa::Offset(_, offset) = row.cfa else { return None };
                    row.cfa = Cfa::Offset(register, offset);
                }
                0x0e => {
                    let offset = i32::try_from(cursor.uleb()?).ok()?;
                    let Cfa::Offset(register, _) = row.cfa else { return None };
                    row.cfa = Cfa::Offset(register, offset);
                }
                0x0f => row.cfa = Cfa::Expression(block(&mut cursor, source)?),
                0x10 => {
                    let register = cursor.uleb()?;
                    save(row, register, Saved::AtExpression(block(&mut cursor, source)?));
                }
                0x11 => {
                    let (register, offset) = (cursor.uleb()?, cursor.sleb()?);
                    save(row, register, Saved::At(scaled(offset)?));
                }
                0x12 => {
                    let (register, offset) = (cursor.uleb()?, cursor.sleb()?);
                    row.cfa = Cfa::Offset(u8::try_from(register).ok()?, scaled(offset)?);
                }
                0x13 => {
                    let offset = scaled(cursor.sleb()?)?;
                    let Cfa::Offset(register, _) = row.cfa else { return None };
                    row.cfa = Cfa::Offset(register, offset);
                }
                0x14 => {
                    let (register, offset) = (cursor.uleb()?, cursor.uleb()?);
                    save(row, register, Saved::Value(scaled(offset as i64)?));
                }
                0x15 => {
                    let (register, offset) = (cursor.uleb()?, cursor.sleb()?);
                    save(row, register, Saved::Value(scaled(offset)?));
                }
                0x16 => {
                    let register = cursor.uleb()?;
                    save(row, register, Saved::ValueExpression(block(&mut cursor, source)?));
                }
                0x2e => {
                    cursor.uleb()?; // GNU_args_size: matters to exceptions only
                }
                0x2f => {
                    // GNU_negative_offset_extended
                    let (register, offset) = (cursor.uleb()?, cursor.uleb()?);
                    save(row, register, Saved::At(scaled((offset as i64).checked_neg()?)?));
                }
                _ => return None,
            }
            if row.frame_pointer_set_at == 0 && row.cfa == Cfa::Offset(RBP, 16) {
                row.frame_pointer_set_at = location;
            }
        }
        Some(())
    }

    /// The short form of `self.row` at `pc`.
    pub(crate) fn rule<I: ImageMemory + ?Sized>(&mut self, source: Source<'_, I>, pc: u64) -> Rule {
        let row = &self.row;
        match row.return_address() {
            Saved::Undefined => return Rule::Outermost,
            Saved::At(-8) => {}
            _ => return Rule::Complex,
        }
        if row.saved[RSP as usize] != Saved::Same || row.is_signal_frame {
            return Rule::Complex;
        }
        let (from_rbp, offset) = match row.cfa {
            Cfa::Offset(RSP, offset) => (false, offset),
            Cfa::Offset(RBP, offset) => (true, offset),
            // The linker's expression for the procedure linkage table depends on rsp and the address alone.
            Cfa::Expression(e) => {
                match expression::distance_from_rsp(source, &mut self.window, &mut self.operands, e, pc) {
                    Some(offset) => (false, offset),
                    None => return Rule::Complex,
                }
            }
            _ => return Rule::Complex,
        };
        let rbp = match row.rbp() {
            Saved::Same => 0,
            Saved::At(at) if at <= -16 && at % 8 == 0 && at > -8 * RBP_LIMIT => (-at / 8) as u8,
            _ => return Rule::Complex,
        };
        if offset <= 0 || offset % 8 != 0 || offset / 8 >= CFA_LIMIT {
            return Rule::Complex;
        }
        Rule::Frame { from_rbp, cfa: (offset / 8) as u16, rbp }
    }
}

/// Columns beyond the general registers (vector registers and the like) are of no use here.
fn save(row: &mut Row, register: u64, how: Saved) {
    if let Some(place) = row.saved.get_mut(register as usize) {
        *place = how;
    }
}

fn restore(row: &mut Row, initial: &Row, register: u64, in_cie: bool) -> Option<()> {
    if in_cie {
        return None;
    }
    if let Some(how) = initial.saved.get(register as usize) {
        save(row, register, *how);
    }
    Some(())
}

fn block<I: ImageMemory + ?Sized>(
    cursor: &mut Cursor<'_, '_, I>,
    source: Source<'_, I>,
) -> Option<Expression> {
    let len = cursor.uleb()?;
    let offset = cursor.position().checked_sub(source.module.unwind_data().start)?;
    cursor.skip(len)?;
    Some(Expression { offset: u32::try_from(offset).ok()?, len: u16::try_from(len).ok()? })
}

impl Expression {
    /// Where its bytes lie in the module's memory.
    pub fn range(self, module: &Module) -> Range<u64> {
        let start = module.unwind_data().start.saturating_add(u64::from(self.offset));
        start..start.saturating_add(u64::from(self.len))
    }
}

/// The complete row in force at `address`, or `None` if the module has no (readable, understood) entry for it.
pub fn row_at<'s, I: ImageMemory + ?Sized>(
    module: &Module,
    images: &I,
    address: u64,
    scratch: &'s mut Scratch,
) -> Option<&'s Row> {
    scratch.interpreter.evaluate(Source { images, module }, address).then_some(&scratch.interpreter.row)
}

/// The short rule for `address`: what the table remembers.
pub fn rule_at<I: ImageMemory + ?Sized>(
    module: &Module,
    images: &I,
    address: u64,
    scratch: &mut Scratch,
) -> Rule {
    let source = Source { images, module };
    if scratch.interpreter.evaluate(source, address) {
        scratch.interpreter.rule(source, address)
    } else {
        Rule::Missing
    }
}
