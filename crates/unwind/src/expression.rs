//! Evaluates DWARF expressions in unwind rules: signal trampolines, the procedure linkage table, realigned stacks.
//! Source: DWARF 5 §2.5.1.
//!
//! Jumps are allowed. Steps are counted, so every evaluation ends.

use crate::cursor::{Cursor, Source, Window};
use crate::dwarf::*;
use crate::memory::{ModuleMemory, StackMemory};
use crate::registers::{DWARF_RETURN_ADDRESS, RSP};
use crate::rules::Expression;
use std::ops::Range;

const STACK: usize = 16;
const STEPS: u32 = 256;

/// Why an expression or a row gave no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EvaluationError {
    /// It depends on a register of unknown value.
    Register(u8),
    /// It reads memory that cannot be read.
    Memory,
    /// It is malformed, or uses an unsupported operation.
    Unsupported,
}

/// The stack of an evaluation; part of a [`crate::Scratch`].
pub(crate) struct Operands {
    values: [u64; STACK],
    len: usize,
}

/// Evaluates an expression. `first` is on the stack at the start (the CFA, for rules about registers).
#[inline(never)]
pub(crate) fn evaluate<M: ModuleMemory + ?Sized, S: StackMemory + ?Sized>(
    source: Source<'_, M>,
    window: &mut Window,
    stack: &mut Operands,
    expression: Expression,
    register: &dyn Fn(u8) -> Option<u64>,
    memory: &mut S,
    first: Option<u64>,
) -> Result<u64, EvaluationError> {
    use EvaluationError::{Memory, Unsupported};
    let Range { start, end } = expression.range(source.module);
    let mut cursor = Cursor::new(source, window, start, end);
    stack.len = 0;
    if let Some(first) = first {
        stack.push(first)?;
    }
    let known = |number: u8| register(number).ok_or(EvaluationError::Register(number));
    for _ in 0..STEPS {
        let Some(op) = cursor.u8() else {
            return if cursor.is_empty() { stack.pop() } else { Err(Unsupported) };
        };
        match op {
            DW_OP_ADDR | DW_OP_CONST8U | DW_OP_CONST8S => stack.push(cursor.u64().ok_or(Unsupported)?)?,
            DW_OP_DEREF => {
                let at = stack.pop()?;
                stack.push(memory.read_u64(at).ok_or(Memory)?)?;
            }
            DW_OP_CONST1U => stack.push(u64::from(cursor.u8().ok_or(Unsupported)?))?,
            DW_OP_CONST1S => stack.push(cursor.signed(1).ok_or(Unsupported)? as u64)?,
            DW_OP_CONST2U => stack.push(u64::from(cursor.u16().ok_or(Unsupported)?))?,
            DW_OP_CONST2S => stack.push(cursor.signed(2).ok_or(Unsupported)? as u64)?,
            DW_OP_CONST4U => stack.push(u64::from(cursor.u32().ok_or(Unsupported)?))?,
            DW_OP_CONST4S => stack.push(cursor.signed(4).ok_or(Unsupported)? as u64)?,
            DW_OP_CONSTU => stack.push(cursor.uleb().ok_or(Unsupported)?)?,
            DW_OP_CONSTS => stack.push(cursor.sleb().ok_or(Unsupported)? as u64)?,
            DW_OP_DUP => stack.push(stack.peek(0)?)?,
            DW_OP_DROP => {
                stack.pop()?;
            }
            DW_OP_OVER => stack.push(stack.peek(1)?)?,
            DW_OP_PICK => {
                let index = cursor.u8().ok_or(Unsupported)?;
                stack.push(stack.peek(usize::from(index))?)?;
            }
            DW_OP_SWAP => {
                let (top, below) = (stack.pop()?, stack.pop()?);
                stack.push(top)?;
                stack.push(below)?;
            }
            DW_OP_NEG => {
                let value = stack.pop()?;
                stack.push(value.wrapping_neg())?;
            }
            DW_OP_NOT => {
                let value = stack.pop()?;
                stack.push(!value)?;
            }
            DW_OP_PLUS_UCONST => {
                let addend = cursor.uleb().ok_or(Unsupported)?;
                let value = stack.pop()?;
                stack.push(value.wrapping_add(addend))?;
            }
            DW_OP_AND
            | DW_OP_MINUS
            | DW_OP_MUL
            | DW_OP_OR
            | DW_OP_PLUS
            | DW_OP_SHL..=DW_OP_XOR
            | DW_OP_EQ..=DW_OP_NE => {
                let (right, left) = (stack.pop()?, stack.pop()?);
                stack.push(binary(op, left, right))?;
            }
            DW_OP_BRA | DW_OP_SKIP => {
                // The distance counts from the next operation. The target must lie inside the expression.
                let distance = cursor.signed(2).ok_or(Unsupported)?;
                if op == DW_OP_SKIP || stack.pop()? != 0 {
                    let to = cursor.position().wrapping_add(distance as u64);
                    if to < start || to > end {
                        return Err(Unsupported);
                    }
                    cursor = Cursor::new(source, window, to, end);
                }
            }
            DW_OP_LIT0..=DW_OP_LIT31 => stack.push(u64::from(op - DW_OP_LIT0))?,
            DW_OP_BREG0..=DW_OP_BREG31 => {
                let offset = cursor.sleb().ok_or(Unsupported)?;
                stack.push(known(op - DW_OP_BREG0)?.wrapping_add(offset as u64))?;
            }
            DW_OP_BREGX => {
                let number = u8::try_from(cursor.uleb().ok_or(Unsupported)?).map_err(|_| Unsupported)?;
                let offset = cursor.sleb().ok_or(Unsupported)?;
                stack.push(known(number)?.wrapping_add(offset as u64))?;
            }
            DW_OP_NOP => {}
            _ => return Err(Unsupported),
        }
    }
    Err(Unsupported)
}

/// The constant, if the expression is `rsp + constant` at this pc. It may depend on the pc.
pub(crate) fn distance_from_rsp<M: ModuleMemory + ?Sized>(
    source: Source<'_, M>,
    window: &mut Window,
    operands: &mut Operands,
    expression: Expression,
    pc: u64,
) -> Option<i32> {
    // Evaluated for two distant stack pointers with equal low bits, without memory or other registers. An expression
    // that is not a plain sum gives two distances, or fails.
    let mut at = |sp: u64| {
        let register = |number: u8| match number {
            RSP => Some(sp),
            DWARF_RETURN_ADDRESS => Some(pc),
            _ => None,
        };
        let value = evaluate(source, window, operands, expression, &register, &mut NoMemory, None).ok()?;
        i32::try_from(value.wrapping_sub(sp) as i64).ok()
    };
    let (low, high) = (at(0x1000)?, at(0x6fff_ffff_f008)?);
    (low == high).then_some(low)
}

struct NoMemory;

impl StackMemory for NoMemory {
    fn read_u64(&mut self, _: u64) -> Option<u64> {
        None
    }
}

impl Operands {
    pub(crate) const fn new() -> Operands {
        Operands { values: [0; STACK], len: 0 }
    }

    fn push(&mut self, value: u64) -> Result<(), EvaluationError> {
        *self.values.get_mut(self.len).ok_or(EvaluationError::Unsupported)? = value;
        self.len += 1;
        Ok(())
    }

    fn pop(&mut self) -> Result<u64, EvaluationError> {
        let value = self.peek(0)?;
        self.len -= 1;
        Ok(value)
    }

    fn peek(&self, depth: usize) -> Result<u64, EvaluationError> {
        let index = self.len.checked_sub(depth + 1).ok_or(EvaluationError::Unsupported)?;
        self.values.get(index).copied().ok_or(EvaluationError::Unsupported)
    }
}

fn binary(op: u8, left: u64, right: u64) -> u64 {
    let (signed_left, signed_right) = (left as i64, right as i64);
    match op {
        DW_OP_AND => left & right,
        DW_OP_MINUS => left.wrapping_sub(right),
        DW_OP_MUL => left.wrapping_mul(right),
        DW_OP_OR => left | right,
        DW_OP_PLUS => left.wrapping_add(right),
        DW_OP_SHL => left.checked_shl(right.min(64) as u32).unwrap_or(0),
        DW_OP_SHR => left.checked_shr(right.min(64) as u32).unwrap_or(0),
        DW_OP_SHRA => (signed_left >> right.min(63)) as u64,
        DW_OP_XOR => left ^ right,
        DW_OP_EQ => u64::from(left == right),
        DW_OP_GE => u64::from(signed_left >= signed_right),
        DW_OP_GT => u64::from(signed_left > signed_right),
        DW_OP_LE => u64::from(signed_left <= signed_right),
        DW_OP_LT => u64::from(signed_left < signed_right),
        _ => u64::from(left != right),
    }
}
