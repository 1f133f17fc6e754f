//! Finds calls through a register that always holds the same function.
//!
//! Compilers load a slot of the dynamic linker's table into a register and call through it, mostly in loops. If the linker
//! knows the function, the register has its address. Such a call is bound as early as a call through the slot.
//!
//! To distinguish it from a call of a function pointer, all paths through the function are searched backwards from the call
//! for the instruction that wrote the register. If all known paths end at the same slot or function, there is no choice. A
//! value from the arguments, from memory, or from a call is a choice.
//!
//! Registers that were saved on the stack are not tracked. Hardly any holds a slot, and an object with a function pointer
//! looks the same.

use super::flow::{Flow, Predecessors, Writes};
use super::{Code, functions, slots::Slots};
use foldhash::HashSet;
use iced_x86::{Code as Kind, Instruction, OpKind, Register};
use stackglass_debug_info::elf::Elf;

/// Largest function in bytes that is decoded. (The largest of LLVM has 0.8 MB.)
const LARGEST: u64 = 1 << 20;

/// Most instructions visited for all calls in a function, as a multiple of its own. Real searches are short; the bound is for
/// hostile code.
const VISITS: usize = 64;

/// For calls through a register, by their sorted return addresses: whether the callee is always the same.
pub(super) fn bound_once(elf: &Elf<'_>, code: &Code<'_>, ends: &[u64]) -> Vec<bool> {
    if ends.is_empty() {
        return Vec::new();
    }
    // After a call that never returns, the return address may be behind the end of the function.
    let inside: Vec<u64> = ends.iter().map(|end| end - 1).collect();
    let around = functions::around(elf, &inside);
    let slots = Slots::from_elf(elf);
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

/// The search for the value of a register, in one function.
struct Search<'a> {
    flow: Flow<'a>,
    writes: Writes,
    elf: &'a Elf<'a>,
    slots: &'a Slots,
    visits_left: usize,
}

/// The value that an instruction writes to a register.
enum Source {
    /// The function at this address, or the function in the slot at this address.
    Fixed(u64),
    /// The value of another register.
    Copy(Register),
    Other,
}

impl<'a> Search<'a> {
    fn new(flow: Flow<'a>, elf: &'a Elf<'a>, slots: &'a Slots) -> Self {
        let visits_left = flow.len().saturating_mul(VISITS);
        Search { writes: Writes::from_flow(&flow), flow, elf, slots, visits_left }
    }

    /// Whether the call that ends at an address goes through a register that can hold only one function.
    fn is_bound_once(&mut self, end: u64) -> bool {
        let Some(call) = self.flow.ending_at(end) else { return false };
        let instruction = self.flow.instruction(call);
        if instruction.code() != Kind::Call_rm64 || instruction.op0_kind() != OpKind::Register {
            return false;
        }
        // Instructions, each with the register whose value before it is searched.
        let mut open = vec![(call, instruction.op0_register())];
        let mut known: HashSet<_> = open.iter().copied().collect();
        let mut function = None;
        while let Some((index, register)) = open.pop() {
            let (falls, jumps) = match self.flow.predecessors(index) {
                Predecessors::Caller => return false,
                Predecessors::These(falls, jumps) => (falls, jumps),
            };
            for before in falls.into_iter().chain(jumps.iter().map(|jump| jump.from)) {
                let Some(left) = self.visits_left.checked_sub(1) else { return false };
                self.visits_left = left;
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
            // Linkers write this instead of a load from a slot when they know the function.
            Kind::Lea_r64_m if from_here => constant(instruction.ip_rel_memory_address()),
            Kind::Mov_r32_imm32 => constant(u64::from(instruction.immediate32())),
            Kind::Mov_r64_imm64 => constant(instruction.immediate64()),
            Kind::Mov_rm64_imm32 => constant(instruction.immediate32to64() as u64),
            _ => Source::Other,
        }
    }
}
