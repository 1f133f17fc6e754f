//! The calls of a program by full disassembly. For calls through registers, the values of registers are propagated forward
//! through the function to a fixed point.

use gimli::{BaseAddresses, CieOrFde, EhFrame, LittleEndian, UnwindSection};
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory};
use iced_x86::{Mnemonic, OpAccess, OpKind, Register};
use object::{Object, ObjectSection, RelocationFlags, elf};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

/// A call, by its return address.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub end: u64,
    pub kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A function's address, or a slot relative to the instruction.
    Direct,
    Memory,
    Register,
    /// Through a register that can hold one function only, which the linker knows.
    BoundRegister,
}

impl Call {
    pub fn dispatches(&self) -> bool {
        matches!(self.kind, Kind::Memory | Kind::Register)
    }
}

/// All calls of the functions that have unwind rules, sorted.
pub fn calls(bytes: &[u8]) -> Vec<Call> {
    let file = object::File::parse(bytes).unwrap();
    let known = Known::from_file(&file);
    let section = file.section_by_name(".eh_frame").unwrap();
    let eh_frame = EhFrame::new(section.data().unwrap(), LittleEndian);
    let bases = BaseAddresses::default().set_eh_frame(section.address());
    let mut found = BTreeMap::new();
    let mut entries = eh_frame.entries(&bases);
    while let Some(entry) = entries.next().unwrap() {
        let CieOrFde::Fde(partial) = entry else { continue };
        let fde = partial.parse(|section, bases, offset| section.cie_from_offset(bases, offset)).unwrap();
        let range = fde.initial_address()..fde.initial_address() + fde.len();
        let code = known.code.iter().find_map(|(start, code)| {
            let at = |address: u64| usize::try_from(address.checked_sub(*start)?).ok();
            code.get(at(range.start)?..at(range.end)?)
        });
        found.extend(of_function(code.unwrap_or_default(), range.start, &known));
    }
    found.into_iter().map(|(end, kind)| Call { end, kind }).collect()
}

/// The functions that the linker knows.
struct Known<'data> {
    code: Vec<(u64, &'data [u8])>,
    /// Slots that the dynamic linker fills with a function's address.
    slots: HashSet<u64>,
}

impl<'data> Known<'data> {
    fn from_file(file: &object::File<'data>) -> Known<'data> {
        let text = file.sections().filter(|section| section.kind() == object::SectionKind::Text);
        let code = text.filter_map(|section| Some((section.address(), section.data().ok()?))).collect();
        let table = |section: &object::Section| section.name().is_ok_and(|name| name.starts_with(".got"));
        let tables: Vec<Range<u64>> = file
            .sections()
            .filter(table)
            .map(|section| section.address()..section.address() + section.size())
            .collect();
        let slots = file.dynamic_relocations().into_iter().flatten().filter(|(address, relocation)| {
            let RelocationFlags::Elf { r_type } = relocation.flags() else { return false };
            match r_type {
                elf::R_X86_64_GLOB_DAT | elf::R_X86_64_JUMP_SLOT => true,
                // Functions of the file.
                elf::R_X86_64_RELATIVE | elf::R_X86_64_IRELATIVE => {
                    tables.iter().any(|table| table.contains(address))
                }
                _ => false,
            }
        });
        Known { code, slots: slots.map(|(address, _)| address).collect() }
    }

    fn is_code(&self, address: u64) -> bool {
        self.code.iter().any(|(start, code)| (*start..start + code.len() as u64).contains(&address))
    }
}

fn of_function(code: &[u8], start: u64, known: &Known) -> Vec<(u64, Kind)> {
    let instructions: Vec<Instruction> =
        Decoder::with_ip(64, code, start, DecoderOptions::NONE).into_iter().collect();
    let mut ahead = None;
    let calls = instructions.iter().enumerate().filter(|(_, call)| call.mnemonic() == Mnemonic::Call);
    let kind = |(index, call): (usize, &Instruction)| {
        let kind = match call.op0_kind() {
            OpKind::NearBranch64 => Kind::Direct,
            OpKind::Memory if call.memory_base() == Register::RIP => Kind::Direct,
            OpKind::Memory => Kind::Memory,
            _ => {
                let ahead = ahead.get_or_insert_with(|| contents(&instructions, known));
                match ahead[index][call.op0_register().number()] {
                    Content::One(_) => Kind::BoundRegister,
                    Content::None | Content::Any => Kind::Register,
                }
            }
        };
        (call.next_ip(), kind)
    };
    calls.map(kind).collect()
}

/// The possible values of a register before an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Content {
    /// No known path leads there.
    None,
    /// The function at this address, or in the slot at this address.
    One(u64),
    Any,
}

impl Content {
    fn or(self, other: Content) -> Content {
        match (self, other) {
            (Content::None, one) | (one, Content::None) => one,
            (one, other) if one == other => one,
            _ => Content::Any,
        }
    }
}

type Registers = [Content; 16];

/// The possible values of the registers before each instruction.
fn contents(instructions: &[Instruction], known: &Known) -> Vec<Registers> {
    let by_address: HashMap<u64, usize> =
        instructions.iter().enumerate().map(|(index, one)| (one.ip(), index)).collect();
    let mut factory = InstructionInfoFactory::new();
    let mut after: Vec<Vec<usize>> = Vec::new();
    let mut indirect = Vec::new();
    for (index, one) in instructions.iter().enumerate() {
        let target = || by_address.get(&one.near_branch_target()).copied();
        let next = Some(index + 1).filter(|next| *next < instructions.len());
        let (next, target) = match one.flow_control() {
            FlowControl::Next | FlowControl::Call | FlowControl::IndirectCall | FlowControl::Interrupt => {
                (next.filter(|_| !one.is_invalid()), None)
            }
            FlowControl::ConditionalBranch | FlowControl::XbeginXabortXend => (next, target()),
            FlowControl::UnconditionalBranch => (None, target()),
            FlowControl::IndirectBranch => {
                indirect.push(index);
                (None, None)
            }
            FlowControl::Return | FlowControl::Exception => (None, None),
        };
        after.push(next.into_iter().chain(target).collect());
    }
    let mut is_reached = vec![false; instructions.len()];
    after.iter().flatten().for_each(|to| is_reached[*to] = true);
    is_reached[0] = true;
    // Indirect jumps can reach all code without other predecessors, except padding.
    let is_case = |index: &usize| !is_reached[*index] && instructions[*index].mnemonic() != Mnemonic::Nop;
    let cases: Vec<usize> = (0..instructions.len()).filter(is_case).collect();
    indirect.into_iter().for_each(|jump| after[jump].clone_from(&cases));

    let mut ahead = vec![[Content::None; 16]; instructions.len()];
    ahead[0] = [Content::Any; 16];
    // All, since code may be reached only from another function and loop from there.
    let mut changed: Vec<usize> = (0..instructions.len()).rev().collect();
    while let Some(index) = changed.pop() {
        let behind = execute(&instructions[index], ahead[index], known, &mut factory);
        for to in &after[index] {
            let mut merged = ahead[*to];
            merged.iter_mut().zip(behind).for_each(|(one, other)| *one = one.or(other));
            if merged != ahead[*to] {
                ahead[*to] = merged;
                changed.push(*to);
            }
        }
    }
    ahead
}

/// The values of the registers after an instruction.
fn execute(
    one: &Instruction,
    mut registers: Registers,
    known: &Known,
    factory: &mut InstructionInfoFactory,
) -> Registers {
    let linked = |address: u64, is_one: bool| if is_one { Content::One(address) } else { Content::Any };
    let relative = one.memory_base() == Register::RIP && one.segment_prefix() == Register::None;
    let content = match (one.code(), one.op1_kind()) {
        (Code::Mov_r64_rm64, OpKind::Memory) if relative => {
            let slot = one.memory_displacement64();
            Some(linked(slot, known.slots.contains(&slot)))
        }
        (Code::Mov_r64_rm64 | Code::Mov_rm64_r64, OpKind::Register) => {
            Some(registers[one.op1_register().number()])
        }
        (Code::Lea_r64_m, _) if relative => {
            Some(linked(one.memory_displacement64(), known.is_code(one.memory_displacement64())))
        }
        (Code::Mov_r32_imm32 | Code::Mov_r64_imm64 | Code::Mov_rm64_imm32, _) => {
            Some(linked(one.immediate(1), known.is_code(one.immediate(1))))
        }
        _ => None,
    };
    for used in factory.info(one).used_registers() {
        let reads = matches!(used.access(), OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess);
        if used.register().is_gpr() && !reads {
            registers[used.register().full_register().number()] = Content::Any;
        }
    }
    let calls =
        matches!(one.flow_control(), FlowControl::Call | FlowControl::IndirectCall | FlowControl::Interrupt);
    if calls {
        // rbx, rsp, rbp and r12 to r15 are preserved.
        [0, 1, 2, 6, 7, 8, 9, 10, 11].iter().for_each(|lost| registers[*lost] = Content::Any);
    }
    if let (Some(content), OpKind::Register) = (content, one.op0_kind()) {
        registers[one.op0_register().full_register().number()] = content;
    }
    registers
}
