//! One function's instructions, and which of them come before which.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic};
use iced_x86::{OpAccess, Register};

/// A function, decoded from its first byte to its last.
pub(super) struct Flow {
    instructions: Vec<Instruction>,
    /// Sorted.
    jumps: Vec<Jump>,
    /// Jumps whose targets are not in the code: by a table of cases, or out of the function.
    open_jumps: Vec<Jump>,
}

/// A jump, by the indexes of instructions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Jump {
    to: u32,
    pub from: u32,
}

/// What comes right before an instruction.
pub(super) enum Before<'a> {
    /// Whoever calls the function.
    Caller,
    /// These: the one that falls through, and those that jump.
    These(Option<u32>, &'a [Jump]),
}

impl Flow {
    pub fn decode(code: &[u8], start: u64) -> Flow {
        let instructions: Vec<Instruction> =
            Decoder::with_ip(64, code, start, DecoderOptions::NONE).into_iter().collect();
        let (mut jumps, mut open_jumps) = (Vec::new(), Vec::new());
        for (from, instruction) in (0..).zip(&instructions) {
            match instruction.flow_control() {
                FlowControl::ConditionalBranch
                | FlowControl::UnconditionalBranch
                | FlowControl::XbeginXabortXend => {
                    jumps.extend(
                        at(&instructions, instruction.near_branch_target()).map(|to| Jump { to, from }),
                    );
                }
                FlowControl::IndirectBranch => open_jumps.push(Jump { to: u32::MAX, from }),
                _ => {}
            }
        }
        jumps.sort_unstable();
        Flow { instructions, jumps, open_jumps }
    }

    pub fn len(&self) -> usize {
        self.instructions.len()
    }

    pub fn instruction(&self, index: u32) -> &Instruction {
        &self.instructions[index as usize]
    }

    /// The instruction that ends at an address.
    pub fn ending_at(&self, end: u64) -> Option<u32> {
        let index = self.instructions.partition_point(|instruction| instruction.next_ip() < end);
        let found = self.instructions.get(index)?;
        (found.next_ip() == end && !found.is_invalid()).then_some(index as u32)
    }

    /// What comes before an instruction. Where nothing jumps to and nothing falls through to, that is any of the
    /// jumps whose targets are not known (or the end of an exception's way, of which nothing is known).
    pub fn before(&self, index: u32) -> Before<'_> {
        let first = self.jumps.partition_point(|jump| jump.to < index);
        let count = self.jumps[first..].partition_point(|jump| jump.to == index);
        let jumps = &self.jumps[first..first + count];
        let falls = index.checked_sub(1).filter(|before| falls_through(self.instruction(*before)));
        if index == 0 {
            Before::Caller
        } else if falls.is_some() || !jumps.is_empty() {
            Before::These(falls, jumps)
        } else if self.instruction(index).mnemonic() == Mnemonic::Nop {
            // Nobody goes there: it fills the room up to the next block.
            Before::These(None, &[])
        } else {
            Before::These(None, &self.open_jumps)
        }
    }
}

/// Which registers the instructions of a function write, each found out when it is first asked for.
pub(super) struct Writes {
    /// A bit for each register, by instruction.
    known: Vec<Option<u16>>,
    factory: InstructionInfoFactory,
}

impl Writes {
    pub fn of(flow: &Flow) -> Writes {
        Writes { known: vec![None; flow.len()], factory: InstructionInfoFactory::new() }
    }

    /// Whether an instruction changes a register (one of 64 bits), or may do so.
    pub fn writes(&mut self, flow: &Flow, index: u32, register: Register) -> bool {
        let written = self.known[index as usize]
            .get_or_insert_with(|| written_by(flow.instruction(index), &mut self.factory));
        *written & bit(register) != 0
    }
}

/// The index of the instruction at an address.
fn at(instructions: &[Instruction], address: u64) -> Option<u32> {
    let index = instructions.binary_search_by_key(&address, Instruction::ip).ok()?;
    u32::try_from(index).ok()
}

/// Whether the next instruction may follow. A call is thought to return.
fn falls_through(instruction: &Instruction) -> bool {
    use FlowControl::{Exception, IndirectBranch, Return, UnconditionalBranch};
    !matches!(instruction.flow_control(), UnconditionalBranch | IndirectBranch | Return | Exception)
        && !instruction.is_invalid()
}

/// The registers that an instruction writes. One that calls takes those with it which the callee need not keep
/// (System V ABI for x86-64, 3.2.1: all but rbx, rsp, rbp and r12 to r15).
fn written_by(instruction: &Instruction, factory: &mut InstructionInfoFactory) -> u16 {
    use Register::{R8, R9, R10, R11, RAX, RCX, RDI, RDX, RSI};
    const LOST: [Register; 9] = [RAX, RCX, RDX, RSI, RDI, R8, R9, R10, R11];
    let mut written = 0;
    if matches!(
        instruction.flow_control(),
        FlowControl::Call | FlowControl::IndirectCall | FlowControl::Interrupt
    ) {
        written = LOST.iter().fold(0, |bits, register| bits | bit(*register));
    }
    for used in factory.info(instruction).used_registers() {
        let writes = matches!(
            used.access(),
            OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
        );
        if writes && used.register().is_gpr() {
            written |= bit(used.register().full_register());
        }
    }
    written
}

fn bit(register: Register) -> u16 {
    if register.is_gpr64() { 1 << register.number() } else { 0 }
}
