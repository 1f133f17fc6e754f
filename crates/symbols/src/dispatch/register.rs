//! Calls through a register that always holds the same function.
//!
//! Compilers load a slot of the dynamic linker's table (or, where the linker knew the function by then, its
//! address) into a register and call through that, in loops mostly. Such a call is bound as early as one
//! through the slot itself. It is told from a call of a function pointer by what can have put the value there:
//! a search from the call backwards, over all ways through the function, for what wrote the register. Only where
//! each way that is known ends at the same slot or function is there no choice; what came in with the function's
//! arguments, from memory, or from a call is one.
//!
//! Registers that were kept on the stack meanwhile are not followed: hardly any is a slot's, and what looks alike
//! is an object with a function pointer in it.

use super::flow::{Before, Flow, Writes};
use super::{Code, functions, slots::Slots};
use crate::elf::Elf;
use foldhash::HashSet;
use iced_x86::{Code as Kind, Instruction, OpKind, Register};

/// Functions with more code than this are not read. (The largest one of LLVM has 0.8 MB.)
const LARGEST: u64 = 1 << 20;

/// Instructions that may be looked at for all the calls asked of a function, times its own. Searches end soon;
/// code that was made to keep them going does not hold up a report.
const LOOKS: usize = 64;

/// Of calls through a register, by their sorted return addresses: whether the callee is the same each time.
pub(super) fn bound_once(elf: &Elf<'_>, code: &Code<'_>, ends: &[u64]) -> Vec<bool> {
    if ends.is_empty() {
        return Vec::new();
    }
    // The return address may lie behind the function's end: after a call that never returns.
    let inside: Vec<u64> = ends.iter().map(|end| end - 1).collect();
    let around = functions::around(elf, &inside);
    let slots = Slots::of(elf);
    let mut bound = vec![false; ends.len()];
    let mut first = 0;
    for calls in around.chunk_by(|one, other| one == other) {
        let range = first..first + calls.len();
        first = range.end;
        let Some(function) = calls[0].clone().filter(|function| function.end - function.start <= LARGEST)
        else {
            continue;
        };
        let bytes = code.from(function.start);
        let size = usize::try_from(function.end - function.start).unwrap_or(usize::MAX);
        let Some(bytes) = bytes.get(..size) else { continue };
        let mut search = Search::new(Flow::decode(bytes, function.start), elf, &slots);
        for index in range {
            bound[index] = search.is_bound_once(ends[index]);
        }
    }
    bound
}

/// The search for what a register holds, in one function.
struct Search<'a> {
    flow: Flow<'a>,
    writes: Writes,
    elf: &'a Elf<'a>,
    slots: &'a Slots,
    looks_left: usize,
}

/// What an instruction puts into a register.
enum Source {
    /// The function at this address, or the one whose address is in the slot at this address.
    Fixed(u64),
    /// What another register holds.
    Copy(Register),
    Other,
}

impl<'a> Search<'a> {
    fn new(flow: Flow<'a>, elf: &'a Elf<'a>, slots: &'a Slots) -> Self {
        let looks_left = flow.len().saturating_mul(LOOKS);
        Search { writes: Writes::of(&flow), flow, elf, slots, looks_left }
    }

    /// Whether the call that ends at an address is made through a register that can hold one function only.
    fn is_bound_once(&mut self, end: u64) -> bool {
        let Some(call) = self.flow.ending_at(end) else { return false };
        let instruction = self.flow.instruction(call);
        if instruction.code() != Kind::Call_rm64 || instruction.op0_kind() != OpKind::Register {
            return false;
        }
        // Instructions, each with the register whose content ahead of it is asked for.
        let mut open = vec![(call, instruction.op0_register())];
        let mut known: HashSet<_> = open.iter().copied().collect();
        let mut function = None;
        while let Some((index, register)) = open.pop() {
            let (falls, jumps) = match self.flow.before(index) {
                Before::Caller => return false,
                Before::These(falls, jumps) => (falls, jumps),
            };
            for before in falls.into_iter().chain(jumps.iter().map(|jump| jump.from)) {
                let Some(left) = self.looks_left.checked_sub(1) else { return false };
                self.looks_left = left;
                let mut asked = register;
                if self.writes.writes(&self.flow, before, register) {
                    match self.source(&self.flow.instruction(before)) {
                        Source::Fixed(found) if *function.get_or_insert(found) == found => continue,
                        Source::Copy(from) => asked = from,
                        Source::Fixed(_) | Source::Other => return false,
                    }
                }
                if known.insert((before, asked)) {
                    open.push((before, asked));
                }
            }
        }
        function.is_some()
    }

    fn source(&self, instruction: &Instruction) -> Source {
        let known = |address, is_one: bool| if is_one { Source::Fixed(address) } else { Source::Other };
        let constant = |address| known(address, self.elf.is_code(address));
        let from_here =
            instruction.is_ip_rel_memory_operand() && instruction.segment_prefix() == Register::None;
        match instruction.code() {
            Kind::Mov_r64_rm64 if from_here => {
                let slot = instruction.ip_rel_memory_address();
                known(slot, self.slots.contains(slot))
            }
            Kind::Mov_r64_rm64 | Kind::Mov_rm64_r64 if instruction.op1_kind() == OpKind::Register => {
                Source::Copy(instruction.op1_register())
            }
            // What linkers make of a load from a slot when they know the function.
            Kind::Lea_r64_m if from_here => constant(instruction.ip_rel_memory_address()),
            Kind::Mov_r32_imm32 => constant(u64::from(instruction.immediate32())),
            Kind::Mov_r64_imm64 => constant(instruction.immediate64()),
            Kind::Mov_rm64_imm32 => constant(instruction.immediate32to64() as u64),
            _ => Source::Other,
        }
    }
}
