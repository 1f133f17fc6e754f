//! Which functions the calls of a file reach: those of other files by the slots of the dynamic linker, and those of the file by
//! their symbols.

use foldhash::HashMap;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, OpKind, Register};
use stackglass_debug_info::elf::Elf;
use stackglass_debug_info::functions;
use stackglass_debug_info::locate::Files;

/// Where a call or jump leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Target {
    Function(u64),
    Slot(u64),
    Unknown,
}

impl Target {
    pub fn of(code: &Instruction) -> Target {
        match code.flow_control() {
            FlowControl::Call | FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch => {
                Target::Function(code.near_branch_target())
            }
            FlowControl::IndirectCall | FlowControl::IndirectBranch
                if code.op0_kind() == OpKind::Memory && code.memory_base() == Register::RIP =>
            {
                Target::Slot(code.ip_rel_memory_address())
            }
            _ => Target::Unknown,
        }
    }
}

/// The functions of a file by name.
pub(crate) struct Callees<'data> {
    functions: HashMap<u64, &'data str>,
    slots: HashMap<u64, &'data str>,
}

impl<'data> Callees<'data> {
    /// Reads symbols and slots.
    pub fn from_files(files: &'data Files) -> Callees<'data> {
        Callees {
            functions: functions::defined(files).map(|(addresses, name)| (addresses.start, name)).collect(),
            slots: functions::slots(files).collect(),
        }
    }

    /// The symbol of a target. `elf` is the file with the code.
    pub fn name(&self, elf: &Elf<'_>, target: Target) -> Option<&'data str> {
        match target {
            Target::Slot(slot) => self.slots.get(&slot).copied(),
            Target::Function(start) => match self.functions.get(&start) {
                Some(name) => Some(name),
                None => self.slots.get(&stub(elf, start)?).copied(),
            },
            Target::Unknown => None,
        }
    }
}

/// The slot of an entry of the procedure linkage table, which has no symbol.
fn stub(elf: &Elf<'_>, start: u64) -> Option<u64> {
    let bytes = elf.bytes_at(start)?;
    let decoder = Decoder::with_ip(64, bytes.get(..16)?, start, DecoderOptions::NONE);
    let jump = decoder.into_iter().take(3).find(|code| code.flow_control() == FlowControl::IndirectBranch)?;
    (jump.memory_base() == Register::RIP).then(|| jump.ip_rel_memory_address())
}
