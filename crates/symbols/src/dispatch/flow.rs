//! The instructions of a function, and the predecessors of each.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic};
use iced_x86::{OpAccess, Register};

/// A decoded function. Only the starts of its instructions are stored, since few are decoded again.
pub(super) struct Flow<'data> {
    code: &'data [u8],
    start: u64,
    instructions: Vec<InstructionOffset>,
    /// Sorted.
    jumps: Vec<Jump>,
    /// Jumps with unknown targets: through a jump table, or out of the function.
    open_jumps: Vec<Jump>,
}

/// Offset of an instruction in the function, and whether the next instruction can follow it.
#[derive(Clone, Copy)]
struct InstructionOffset(u32);

impl InstructionOffset {
    const FALLS_THROUGH: u32 = 1 << 31;

    fn new(offset: u32, falls_through: bool) -> InstructionOffset {
        InstructionOffset(offset | if falls_through { InstructionOffset::FALLS_THROUGH } else { 0 })
    }

    fn offset(self) -> u32 {
        self.0 & !InstructionOffset::FALLS_THROUGH
    }

    fn falls_through(self) -> bool {
        self.0 & InstructionOffset::FALLS_THROUGH != 0
    }
}

/// A jump, by the indices of instructions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Jump {
    to: u32,
    pub from: u32,
}

/// The predecessors of an instruction.
pub(super) enum Predecessors<'a> {
    /// The caller of the function.
    Caller,
    /// The instruction that falls through to it, and those that jump to it.
    These(Option<u32>, &'a [Jump]),
}

impl<'data> Flow<'data> {
    /// Decodes code of at most 2 GiB.
    pub fn decode(code: &'data [u8], start: u64) -> Flow<'data> {
        let mut decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
        let mut instruction = Instruction::default();
        let mut instructions = Vec::with_capacity(code.len() / 4);
        let (mut targets, mut open_jumps) = (Vec::new(), Vec::new());
        while decoder.can_decode() {
            let (offset, from) = (decoder.position() as u32, instructions.len() as u32);
            decoder.decode_out(&mut instruction);
            let flow = instruction.flow_control();
            match flow {
                FlowControl::ConditionalBranch
                | FlowControl::UnconditionalBranch
                | FlowControl::XbeginXabortXend => {
                    targets.push((instruction.near_branch_target().wrapping_sub(start), from));
                }
                FlowControl::IndirectBranch => open_jumps.push(Jump { to: u32::MAX, from }),
                _ => {}
            }
            instructions
                .push(InstructionOffset::new(offset, falls_through(flow) && !instruction.is_invalid()));
        }
        let mut flow = Flow { code, start, instructions, jumps: Vec::new(), open_jumps };
        flow.jumps = targets
            .into_iter()
            .filter_map(|(target, from)| Some(Jump { to: flow.at(target)?, from }))
            .collect();
        flow.jumps.sort_unstable();
        flow
    }

    pub fn len(&self) -> usize {
        self.instructions.len()
    }

    pub fn instruction(&self, index: u32) -> Instruction {
        let offset = self.instructions[index as usize].offset();
        let address = self.start.wrapping_add(u64::from(offset));
        Decoder::with_ip(64, &self.code[offset as usize..], address, DecoderOptions::NONE).decode()
    }

    /// The instruction that ends at an address.
    pub fn ending_at(&self, end: u64) -> Option<u32> {
        let end = end.checked_sub(self.start)?;
        let next = self.instructions.partition_point(|place| u64::from(place.offset()) < end);
        let index = u32::try_from(next.checked_sub(1)?).ok()?;
        (self.instruction(index).next_ip() == self.start.wrapping_add(end)).then_some(index)
    }

    /// The instruction at an offset in the function.
    fn at(&self, offset: u64) -> Option<u32> {
        let offset = u32::try_from(offset).ok()?;
        let index = self.instructions.binary_search_by_key(&offset, |place| place.offset()).ok()?;
        u32::try_from(index).ok()
    }

    /// The predecessors of an instruction. Without a jump or a fall-through to it, these are all jumps with unknown
    /// targets. (It may also be a landing pad of exceptions, whose predecessors are unknown.)
    pub fn predecessors(&self, index: u32) -> Predecessors<'_> {
        let first = self.jumps.partition_point(|jump| jump.to < index);
        let count = self.jumps[first..].partition_point(|jump| jump.to == index);
        let jumps = &self.jumps[first..first + count];
        let falls = index.checked_sub(1).filter(|before| self.instructions[*before as usize].falls_through());
        if index == 0 {
            Predecessors::Caller
        } else if falls.is_some() || !jumps.is_empty() {
            Predecessors::These(falls, jumps)
        } else if self.instruction(index).mnemonic() == Mnemonic::Nop {
            // Padding before the next block is never executed.
            Predecessors::These(None, &[])
        } else {
            Predecessors::These(None, &self.open_jumps)
        }
    }
}

/// The registers that the instructions of a function write, computed at first use.
pub(super) struct Writes {
    /// A bit for each register, by instruction.
    known: Vec<Option<u16>>,
    factory: InstructionInfoFactory,
}

impl Writes {
    pub fn from_flow(flow: &Flow<'_>) -> Writes {
        Writes { known: vec![None; flow.len()], factory: InstructionInfoFactory::new() }
    }

    /// Whether an instruction can change a 64-bit register.
    pub fn writes(&mut self, flow: &Flow<'_>, index: u32, register: Register) -> bool {
        let written = self.known[index as usize]
            .get_or_insert_with(|| written_by(&flow.instruction(index), &mut self.factory));
        *written & bit(register) != 0
    }
}

/// Whether the next instruction can follow. Calls are assumed to return.
fn falls_through(flow: FlowControl) -> bool {
    use FlowControl::{Exception, IndirectBranch, Return, UnconditionalBranch};
    !matches!(flow, UnconditionalBranch | IndirectBranch | Return | Exception)
}

/// The registers that an instruction writes. A call writes those that the callee need not preserve (System V ABI x86-64,
/// 3.2.1: all but rbx, rsp, rbp and r12 to r15).
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
