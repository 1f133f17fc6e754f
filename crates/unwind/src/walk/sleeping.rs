//! Recovers `rbp` where only pc and sp are known: in threads that sleep in a system call and are not woken.

use super::{Position, Walker};
use crate::call_site;
use crate::cursor::Source;
use crate::memory::{ModuleMemory, StackMemory};
use crate::prologue;
use std::ops::Range;

impl<M: ModuleMemory + ?Sized> Walker<'_, M> {
    /// `rbp` in the frame at `position`. If it is unknown, it is recovered from the prologue.
    pub(super) fn rbp<S: StackMemory>(
        &mut self,
        source: Source<'_, M>,
        lookup: u64,
        position: &Position,
        stack: &mut S,
    ) -> Option<u64> {
        if position.rbp.is_some() {
            return position.rbp;
        }
        let interpreter = &mut self.scratch.interpreter;
        if !interpreter.evaluate(source, lookup) {
            return None;
        }
        let body = interpreter.row.frame_pointer_set_at;
        if body == 0 || body > lookup {
            return None;
        }
        // A damaged table may tell of a function that begins anywhere.
        let is_in_code = |range: Range<u64>| range.contains(&body) && range.contains(&lookup);
        if !source.module.executable().any(is_in_code) {
            return None;
        }
        let mut code = [0u8; prologue::LOOK];
        let len = (lookup - body).min(code.len() as u64) as usize;
        let code = code.get_mut(..len)?;
        let len = self.memory.read(source.module, body, code);
        let depth = prologue::frame_depth(code.get(..len)?);
        // A realigned stack leaves a few candidates; exactly one must be confirmed.
        let lowest = position.sp.checked_add(depth.bytes)?;
        let mut found = None;
        for candidate in (lowest..lowest.checked_add(depth.align.min(128))?).step_by(8) {
            let confirmed = candidate.is_multiple_of(8)
                && stack.read_u64(candidate.wrapping_add(8)).is_some_and(|ra| self.is_behind_call(ra));
            if confirmed && found.replace(candidate).is_some() {
                return None;
            }
        }
        found
    }

    /// Whether the address is in code, right behind a call instruction.
    pub(super) fn is_behind_call(&self, address: u64) -> bool {
        let last = address.wrapping_sub(1);
        let Some(module) = self.modules.find(last) else { return false };
        let mut bytes = [0u8; call_site::LONGEST];
        let Some(code) = module.executable().find(|r| r.contains(&last)) else { return false };
        let len = (address - code.start).min(bytes.len() as u64) as usize;
        let Some(bytes) = bytes.get_mut(..len) else { return false };
        self.memory.read(module, address - len as u64, bytes) == len
            && call_site::before(bytes, address, |to| self.modules.find(to).is_some()).is_some()
    }
}
