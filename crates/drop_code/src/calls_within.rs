//! Whether the landing pad of an entry of a table of call sites is that of a call in the entry.
//!
//! LLVM makes one entry of all calls from the first to the last one with a landing pad, if no call between them may unwind without it
//! (`EHStreamer::computeCallSiteTable`). So calls of functions of C are within entries, as are those of functions whose code the
//! compiler has seen, and which cannot panic. What the landing pad drops need not be live there.

use crate::Drops;
use iced_x86::{FlowControl, Instruction, OpKind};
use stackglass_layouts::KnownFunction;
use stackglass_process_view::{CallSites, LandingPad, LandingPads};
use std::cell::Cell;

/// Most instructions that are looked at for one call.
const MOST: u32 = 20_000;
/// Most functions that call each other.
const DEEPEST: usize = 6;

/// Whether a landing pad is that of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IsPad {
    /// It is.
    Yes,
    /// It is if the function is one of Rust: its code is in another object file.
    IfRust,
    /// That is not known: the call may be one that cannot unwind.
    Unknown,
}

/// Where a call or a jump leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Target {
    /// To code of the same object file.
    Own(u64),
    /// By a slot of the linker's table, or by what the linker has made of that.
    Other(u64),
    /// To what a register says.
    Any,
}

impl Drops<'_> {
    /// Whether the landing pad of an entry is that of the call with this lookup address.
    pub fn is_pad_of(&self, pads: &LandingPads<'_>, entry: &CallSites, lookup: u64) -> IsPad {
        let back = lookup.saturating_add(1);
        // An entry begins and ends with a call that may unwind.
        if entry.range.end == back {
            return IsPad::Yes;
        }
        let left = Cell::new(MOST);
        let (mut at, mut is_first) = (entry.range.start, true);
        while at < back {
            let Some(code) = self.next(at, &left) else { return IsPad::Unknown };
            at = code.next_ip();
            if !matches!(code.flow_control(), FlowControl::Call | FlowControl::IndirectCall) {
                continue;
            }
            if at == back {
                return match self.target(&code) {
                    _ if is_first => IsPad::Yes,
                    // The compiler does not know what is called.
                    Target::Any => IsPad::Yes,
                    Target::Other(to) if self.is_followed(to) => IsPad::IfRust,
                    Target::Own(to) if self.may_unwind(pads, to, &left, 0) => IsPad::Yes,
                    _ => IsPad::Unknown,
                };
            }
            is_first = false;
        }
        IsPad::Unknown
    }

    fn next(&self, at: u64, left: &Cell<u32>) -> Option<Instruction> {
        left.set(left.get().checked_sub(1)?);
        self.code.decoded(at).ok()
    }

    fn is_followed(&self, address: u64) -> bool {
        self.code.modules.iter().any(|module| module.contains(&address))
    }

    /// Where a call or a jump leads.
    fn target(&self, code: &Instruction) -> Target {
        match code.op0_kind() {
            OpKind::NearBranch64 => {
                let mut first = [0];
                // `call *slot(%rip)` is one byte longer than the call that the linker makes of it.
                let is_made = self.code.pages.read(code.ip(), &mut first).is_some() && first == [0x67];
                let to = code.near_branch64();
                if is_made { Target::Other(to) } else { Target::Own(to) }
            }
            OpKind::Memory if code.is_ip_rel_memory_operand() => {
                let to = self.code.pages.word(code.memory_displacement64());
                to.map_or(Target::Any, Target::Other)
            }
            _ => Target::Any,
        }
    }

    /// Whether a function may unwind its caller, as a compiler that sees its code knows.
    fn may_unwind(&self, pads: &LandingPads<'_>, function: u64, left: &Cell<u32>, depth: usize) -> bool {
        match self.code.functions.get(&function) {
            Some(KnownFunction::Resume | KnownFunction::NoReturn) => return true,
            Some(KnownFunction::Lock) | None => {}
            Some(_) => return false,
        }
        if !self.is_followed(function) || depth >= DEEPEST {
            return false;
        }
        let Some(entry) = pads.of_function(function) else { return false };
        // It has a landing pad, so it calls what may unwind.
        if entry.pad != LandingPad::NoTable && !entry.function.is_empty() {
            return true;
        }
        let mut at = function;
        while entry.function.contains(&at) {
            let Some(code) = self.next(at, left) else { return false };
            at = code.next_ip();
            let leaves = match code.flow_control() {
                FlowControl::Call | FlowControl::IndirectCall => true,
                FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch => {
                    !entry.function.contains(&code.near_branch64())
                }
                FlowControl::IndirectBranch => code.is_ip_rel_memory_operand(),
                _ => false,
            };
            if !leaves {
                continue;
            }
            let unwinds = match self.target(&code) {
                Target::Own(to) => self.may_unwind(pads, to, left, depth + 1),
                Target::Other(to) => self.is_followed(to),
                Target::Any => !self.is_loaded_from_elsewhere(&entry, &code, left),
            };
            if unwinds {
                return true;
            }
        }
        false
    }

    /// Whether the register of a call was loaded from a slot of the linker's table with the address of a function that is not followed.
    fn is_loaded_from_elsewhere(&self, entry: &CallSites, call: &Instruction, left: &Cell<u32>) -> bool {
        if call.op0_kind() != OpKind::Register {
            return false;
        }
        let mut at = entry.function.start;
        while at < call.ip() {
            let Some(code) = self.next(at, left) else { return false };
            at = code.next_ip();
            let loads = code.op0_kind() == OpKind::Register && code.op0_register() == call.op0_register();
            if loads && code.op1_kind() == OpKind::Memory && code.is_ip_rel_memory_operand() {
                let to = self.code.pages.word(code.memory_displacement64());
                return to.is_some_and(|to| !self.is_followed(to));
            }
        }
        false
    }
}
