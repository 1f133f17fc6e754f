//! A walk that reports the registers of each frame. Local variables are read with them. It is slower than [`Walker::walk`].

use super::{Position, Step, Walker};
use crate::memory::{ModuleMemory, StackMemory};
use crate::registers::{DWARF_RETURN_ADDRESS, RBP, RSP, Registers};
use crate::rules::Rule;

/// DWARF's numbers of the registers that a called function keeps (System V ABI x86-64, figure 3.4), and pc.
const KEPT: [u8; 8] = [3, RBP, RSP, 12, 13, 14, 15, DWARF_RETURN_ADDRESS];

/// A frame and its known registers.
#[derive(Clone, Copy)]
pub struct WalkedFrame {
    /// Its lookup address.
    pub lookup: u64,
    /// Its registers. Those that called functions may change are unknown in callers.
    pub registers: Registers,
    /// Its canonical frame address: the stack pointer before the call. `None` for the last frame of a stack.
    pub cfa: Option<u64>,
}

impl<M: ModuleMemory + ?Sized> Walker<'_, M> {
    /// Calls `each` with the frames, innermost first, at most `most` of them.
    pub fn frames<S: StackMemory>(
        &mut self,
        start: &Registers,
        stack: &mut S,
        most: usize,
        each: &mut dyn FnMut(WalkedFrame),
    ) {
        let mut position = Position {
            pc: start.pc(),
            sp: start.sp(),
            rbp: start.rbp(),
            exact: true,
            guessed: None,
            all: true,
        };
        self.scratch.registers = *start;
        for _ in 0..most {
            let mut registers = self.scratch.registers;
            if !position.exact {
                registers.keep(&KEPT);
            }
            let mut lookup = if position.exact { position.pc } else { position.pc.wrapping_sub(1) };
            self.scratch.caller.begin(0, 0, None);
            let (address, frame) = (lookup, &mut lookup);
            let step = self.step(Some(Rule::Complex), address, &mut position, stack, frame);
            let is_caller = matches!(step, Step::Caller);
            each(WalkedFrame { lookup, registers, cfa: is_caller.then_some(position.sp) });
            if !is_caller || position.pc == 0 {
                return;
            }
            let caller = &self.scratch.caller;
            if (caller.pc(), caller.sp()) != (position.pc, position.sp) {
                // The step had no rule: other registers are unknown.
                self.scratch.registers.begin(position.pc, position.sp, position.rbp);
            }
        }
    }
}
