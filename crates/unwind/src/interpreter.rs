//! Executes the call frame instructions of an entry, up to the row for an address.
//!
//! Source: DWARF 5 §6.4.2 (instructions) and §6.4.3 (their evaluation).

use crate::cursor::{Cursor, Source, Window};
use crate::dwarf::*;
use crate::eh_frame::{self, Fde};
use crate::expression::{self, Operands};
use crate::memory::ModuleMemory;
use crate::registers::{RBP, RSP};
use crate::rules::{CFA_LIMIT, Cfa, Expression, RBP_LIMIT, Row, Rule, Saved};

/// Deepest nesting of `DW_CFA_remember_state`; compilers nest it once.
const REMEMBERED: usize = 6;

/// The state of an execution; part of a [`crate::Scratch`].
pub(crate) struct Interpreter {
    pub(crate) window: Window,
    pub(crate) operands: Operands,
    pub(crate) row: Row,
    fde: Fde,
    initial: Row,
    remembered: [Row; REMEMBERED],
}

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

    /// Writes the row for `pc` to `self.row`. False if there is no entry, or one that cannot be read.
    pub(crate) fn evaluate<M: ModuleMemory + ?Sized>(&mut self, source: Source<'_, M>, pc: u64) -> bool {
        self.window.clear();
        self.try_evaluate(source, pc).is_some()
    }

    fn try_evaluate<M: ModuleMemory + ?Sized>(&mut self, source: Source<'_, M>, pc: u64) -> Option<()> {
        eh_frame::find(source, &mut self.window, pc, &mut self.fde)?;
        self.row.reset();
        self.row.is_signal_frame = self.fde.cie.is_signal_frame;
        self.row.function = self.fde.start;
        self.run(source, self.fde.cie.instructions, u64::MAX, true)?;
        self.initial = self.row;
        self.run(source, self.fde.instructions, pc, false)
    }

    /// Executes instructions until the row for `pc` is complete. Each consumes a byte, so the loop ends.
    #[inline(never)]
    fn run<M: ModuleMemory + ?Sized>(
        &mut self,
        source: Source<'_, M>,
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
            let low = opcode & DW_CFA_OPERAND;
            let advance = match opcode {
                DW_CFA_ADVANCE_LOC..DW_CFA_OFFSET => Some(u64::from(low)),
                DW_CFA_ADVANCE_LOC1 => Some(u64::from(cursor.u8()?)),
                DW_CFA_ADVANCE_LOC2 => Some(u64::from(cursor.u16()?)),
                DW_CFA_ADVANCE_LOC4 => Some(u64::from(cursor.u32()?)),
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
                DW_CFA_NOP => {}
                DW_CFA_SET_LOC => {
                    location = cursor.pointer(fde.cie.address_encoding, 0)?;
                    if location > pc {
                        return Some(());
                    }
                }
                DW_CFA_OFFSET..DW_CFA_RESTORE => {
                    let offset = cursor.uleb()?;
                    save(row, u64::from(low), Saved::At(scaled(offset as i64)?));
                }
                DW_CFA_RESTORE.. => restore(row, initial, u64::from(low), in_cie)?,
                DW_CFA_OFFSET_EXTENDED => {
                    let (register, offset) = (cursor.uleb()?, cursor.uleb()?);
                    save(row, register, Saved::At(scaled(offset as i64)?));
                }
                DW_CFA_RESTORE_EXTENDED => restore(row, initial, cursor.uleb()?, in_cie)?,
                DW_CFA_UNDEFINED => save(row, cursor.uleb()?, Saved::Undefined),
                DW_CFA_SAME_VALUE => save(row, cursor.uleb()?, Saved::Same),
                DW_CFA_REGISTER => {
                    let (register, other) = (cursor.uleb()?, cursor.uleb()?);
                    save(row, register, Saved::Register(u8::try_from(other).ok()?));
                }
                DW_CFA_REMEMBER_STATE => {
                    *remembered.get_mut(depth)? = *row;
                    depth += 1;
                }
                DW_CFA_RESTORE_STATE => {
                    depth = depth.checked_sub(1)?;
                    let set_at = row.frame_pointer_set_at;
                    *row = *remembered.get(depth)?;
                    if row.frame_pointer_set_at == 0 {
                        row.frame_pointer_set_at = set_at;
                    }
                }
                DW_CFA_DEF_CFA => {
                    let (register, offset) = (cursor.uleb()?, cursor.uleb()?);
                    row.cfa = Cfa::Offset(u8::try_from(register).ok()?, i32::try_from(offset).ok()?);
                }
                DW_CFA_DEF_CFA_REGISTER => {
                    let register = u8::try_from(cursor.uleb()?).ok()?;
                    let Cfa::Offset(_, offset) = row.cfa else { return None };
                    row.cfa = Cfa::Offset(register, offset);
                }
                DW_CFA_DEF_CFA_OFFSET => {
                    let offset = i32::try_from(cursor.uleb()?).ok()?;
                    let Cfa::Offset(register, _) = row.cfa else { return None };
                    row.cfa = Cfa::Offset(register, offset);
                }
                DW_CFA_DEF_CFA_EXPRESSION => row.cfa = Cfa::Expression(block(&mut cursor, source)?),
                DW_CFA_EXPRESSION => {
                    let register = cursor.uleb()?;
                    save(row, register, Saved::AtExpression(block(&mut cursor, source)?));
                }
                DW_CFA_OFFSET_EXTENDED_SF => {
                    let (register, offset) = (cursor.uleb()?, cursor.sleb()?);
                    save(row, register, Saved::At(scaled(offset)?));
                }
                DW_CFA_DEF_CFA_SF => {
                    let (register, offset) = (cursor.uleb()?, cursor.sleb()?);
                    row.cfa = Cfa::Offset(u8::try_from(register).ok()?, scaled(offset)?);
                }
                DW_CFA_DEF_CFA_OFFSET_SF => {
                    let offset = scaled(cursor.sleb()?)?;
                    let Cfa::Offset(register, _) = row.cfa else { return None };
                    row.cfa = Cfa::Offset(register, offset);
                }
                DW_CFA_VAL_OFFSET => {
                    let (register, offset) = (cursor.uleb()?, cursor.uleb()?);
                    save(row, register, Saved::Value(scaled(offset as i64)?));
                }
                DW_CFA_VAL_OFFSET_SF => {
                    let (register, offset) = (cursor.uleb()?, cursor.sleb()?);
                    save(row, register, Saved::Value(scaled(offset)?));
                }
                DW_CFA_VAL_EXPRESSION => {
                    let register = cursor.uleb()?;
                    save(row, register, Saved::ValueExpression(block(&mut cursor, source)?));
                }
                DW_CFA_GNU_ARGS_SIZE => {
                    cursor.uleb()?; // needed by exceptions only
                }
                DW_CFA_GNU_NEGATIVE_OFFSET_EXTENDED => {
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
    pub(crate) fn rule<M: ModuleMemory + ?Sized>(&mut self, source: Source<'_, M>, pc: u64) -> Rule {
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
            // The linker's expression for the procedure linkage table depends on rsp and the address only.
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

/// Columns beyond the general registers, such as vector registers, are ignored.
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

fn block<M: ModuleMemory + ?Sized>(
    cursor: &mut Cursor<'_, '_, M>,
    source: Source<'_, M>,
) -> Option<Expression> {
    let len = cursor.uleb()?;
    let offset = cursor.position().checked_sub(source.module.unwind_data().start)?;
    cursor.skip(len)?;
    Some(Expression { offset: u32::try_from(offset).ok()?, len: u16::try_from(len).ok()? })
}
