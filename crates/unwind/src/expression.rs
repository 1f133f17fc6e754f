//! A small evaluator of DWARF expressions, as they occur in unwind rules: signal trampolines, the procedure
//! linkage table, realigned stacks. Source: DWARF 5 §2.5.1.
//!
//! Jumps are allowed but steps are counted, so every evaluation ends.

use crate::cursor::{Cursor, Source, Window};
use crate::memory::{ImageMemory, StackMemory};
use crate::registers::{DWARF_RETURN_ADDRESS, RSP};
use crate::rules::Expression;

const STACK: usize = 16;
const STEPS: u32 = 256;

/// Why an expression or a row gave no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// It counts from a register whose value is not known.
    Register(u8),
    /// It reads memory that cannot be read.
    Memory,
    /// It uses something that is not supported, or it is broken.
    Unsupported,
}

/// What an evaluation works on; part of a [`crate::Scratch`].
pub(crate) struct Operands {
    values: [u64; STACK],
    len: usize,
}

/// Evaluates; `first` is put on the stack beforehand (the CFA, for rules about registers).
#[inline(never)]
pub(crate) fn evaluate<I: ImageMemory + ?Sized, S: StackMemory + ?Sized>(
    source: Source<'_, I>,
    window: &mut Window,
    stack: &mut Operands,
    expression: Expression,
    register: &dyn Fn(u8) -> Option<u64>,
    memory: &mut S,
    first: Option<u64>,
) -> Result<u64, Trouble> {
    use Trouble::{Memory, Unsupported};
    let start = source.module.unwind_data().start.saturating_add(u64::from(expression.offset));
    let end = start.saturating_add(u64::from(expression.len));
    let mut cursor = Cursor::new(source, window, start, end);
    stack.len = 0;
    if let Some(first) = first {
        stack.push(first)?;
    }
    let known = |number: u8| register(number).ok_or(Trouble::Register(number));
    for _ in 0..STEPS {
        let Some(op) = cursor.u8() else {
            return if cursor.is_empty() { stack.pop() } else { Err(Unsupported) };
        };
        match op {
            0x03 | 0x0e | 0x0f => stack.push(cursor.u64().ok_or(Unsupported)?)?,
            0x06 => {
                let at = stack.pop()?;
                stack.push(memory.read_u64(at).ok_or(Memory)?)?;
            }
            0x08 => stack.push(u64::from(cursor.u8().ok_or(Unsupported)?))?,
            0x09 => stack.push(cursor.signed(1).ok_or(Unsupported)? as u64)?,
            0x0a => stack.push(u64::from(cursor.u16().ok_or(Unsupported)?))?,
            0x0b => stack.push(cursor.signed(2).ok_or(Unsupported)? as u64)?,
            0x0c => stack.push(u64::from(cursor.u32().ok_or(Unsupported)?))?,
            0x0d => stack.push(cursor.signed(4).ok_or(Unsupported)? as u64)?,
            0x10 => stack.push(cursor.uleb().ok_or(Unsupported)?)?,
            0x11 => stack.push(cursor.sleb().ok_or(Unsupported)? as u64)?,
            0x12 => stack.push(stack.peek(0)?)?,
            0x13 => {
                stack.pop()?;
            }
            0x14 => stack.push(stack.peek(1)?)?,
            0x15 => {
                let index = cursor.u8().ok_or(Unsupported)?;
                stack.push(stack.peek(usize::from(index))?)?;
            }
            0x16 => {
                let (top, below) = (stack.pop()?, stack.pop()?);
                stack.push(top)?;
                stack.push(below)?;
            }
            0x1f => {
                let value = stack.pop()?;
                stack.push(value.wrapping_neg())?;
            }
            0x20 => {
                let value = stack.pop()?;
                stack.push(!value)?;
            }
            0x23 => {
                let addend = cursor.uleb().ok_or(Unsupported)?;
                let value = stack.pop()?;
                stack.push(value.wrapping_add(addend))?;
            }
            0x1a | 0x1c | 0x1e | 0x21 | 0x22 | 0x24..=0x27 | 0x29..=0x2e => {
                let (right, left) = (stack.pop()?, stack.pop()?);
                stack.push(binary(op, left, right))?;
            }
            0x28 | 0x2f => {
                // bra, skip: relative to the next operation, kept inside the expression
                let distance = cursor.signed(2).ok_or(Unsupported)?;
                if op == 0x2f || stack.pop()? != 0 {
                    let to = cursor.position().wrapping_add(distance as u64);
                    if to < start || to > end {
                        return Err(Unsupported);
                    }
                    cursor = Cursor::new(source, window, to, end);
                }
            }
            0x30..=0x4f => stack.push(u64::from(op - 0x30))?,
            0x70..=0x8f => {
                let offset = cursor.sleb().ok_or(Unsupported)?;
                stack.push(known(op - 0x70)?.wrapping_add(offset as u64))?;
            }
            0x92 => {
                let number = u8::try_from(cursor.uleb().ok_or(Unsupported)?).map_err(|_| Unsupported)?;
                let offset = cursor.sleb().ok_or(Unsupported)?;
                stack.push(known(number)?.wrapping_add(offset as u64))?;
            }
            0x96 => {}
            _ => return Err(Unsupported),
        }
    }
    Err(Unsupported)
}

/// If the expression is `rsp + constant` at this pc (whatever it computes from the pc), that constant.
pub(crate) fn distance_from_rsp<I: ImageMemory + ?Sized>(
    source: Source<'_, I>,
    window: &mut Window,
    operands: &mut Operands,
    expression: Expression,
    pc: u64,
) -> Option<i32> {
    // Two stack pointers far apart whose low bits agree; no memory, no other register. Expressions that are
    // not simply a sum give different distances or fail.
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

    fn push(&mut self, value: u64) -> Result<(), Trouble> {
        *self.values.get_mut(self.len).ok_or(Trouble::Unsupported)? = value;
        self.len += 1;
        Ok(())
    }

    fn pop(&mut self) -> Result<u64, Trouble> {
        let value = self.peek(0)?;
        self.len -= 1;
        Ok(value)
    }

    fn peek(&self, depth: usize) -> Result<u64, Trouble> {
        let index = self.len.checked_sub(depth + 1).ok_or(Trouble::Unsupported)?;
        self.values.get(index).copied().ok_or(Trouble::Unsupported)
    }
}

fn binary(op: u8, left: u64, right: u64) -> u64 {
    let (signed_left, signed_right) = (left as i64, right as i64);
    match op {
        0x1a => left & right,
        0x1c => left.wrapping_sub(right),
        0x1e => left.wrapping_mul(right),
        0x21 => left | right,
        0x22 => left.wrapping_add(right),
        0x24 => left.checked_shl(right.min(64) as u32).unwrap_or(0),
        0x25 => left.checked_shr(right.min(64) as u32).unwrap_or(0),
        0x26 => (signed_left >> right.min(63)) as u64,
        0x27 => left ^ right,
        0x29 => u64::from(left == right),
        0x2a => u64::from(signed_left >= signed_right),
        0x2b => u64::from(signed_left > signed_right),
        0x2c => u64::from(signed_left <= signed_right),
        0x2d => u64::from(signed_left < signed_right),
        _ => u64::from(left != right),
    }
}
