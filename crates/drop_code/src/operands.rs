//! Operands of instructions: registers or parts of them, memory, constants, and the stack.

use crate::machine::{Flags, Machine, Step, Stop};
use iced_x86::{Code, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};

/// The lowest bytes.
pub(crate) fn cut(value: u64, size: usize) -> u64 {
    if size >= 8 { value } else { value & ((1 << (size * 8)) - 1) }
}

/// The lowest bytes, with their sign.
pub(crate) fn extended(value: u64, size: usize) -> i64 {
    let unused = 64 - 8 * size.clamp(1, 8) as u32;
    ((value << unused) as i64) >> unused
}

/// Bytes of an operand.
pub(crate) fn size(code: &Instruction, operand: u32) -> usize {
    match (operand < code.op_count()).then(|| code.op_kind(operand)) {
        Some(OpKind::Register) => code.op_register(operand).size(),
        Some(OpKind::Memory) => code.memory_size().size(),
        _ => 8,
    }
}

pub(crate) fn number(register: Register) -> Option<usize> {
    register.is_gpr().then(|| register.full_register().number())
}

pub(crate) fn is_high(register: Register) -> bool {
    matches!(register, Register::AH | Register::CH | Register::DH | Register::BH)
}

pub(crate) fn accumulator(size: usize) -> Register {
    match size {
        1 => Register::AL,
        2 => Register::AX,
        4 => Register::EAX,
        _ => Register::RAX,
    }
}

pub(crate) fn register(machine: &Machine<'_>, register: Register) -> Option<u64> {
    machine.registers[number(register)?].part(usize::from(is_high(register)), register.size().min(8))
}

pub(crate) fn set_register(machine: &mut Machine<'_>, register: Register, value: Option<u64>) {
    let Some(number) = number(register) else { return };
    // Writing the lower half makes the upper half zero.
    if register.size() == 4 {
        machine.registers[number].set(4, 4, Some(0));
    }
    machine.registers[number].set(usize::from(is_high(register)), register.size().min(8), value);
}

/// The address of an operand in memory.
pub(crate) fn address(machine: &Machine<'_>, code: &Instruction, operand: u32) -> Option<u64> {
    code.virtual_address(operand, 0, |register, _, _| match register {
        Register::FS => machine.thread_local,
        Register::GS => None,
        segment if segment.is_segment_register() => Some(0),
        register => self::register(machine, register),
    })
}

pub(crate) fn read(machine: &Machine<'_>, code: &Instruction, operand: u32) -> Step<Option<u64>> {
    match code.op_kind(operand) {
        OpKind::Register => Ok(register(machine, code.op_register(operand))),
        OpKind::Memory => match address(machine, code, operand) {
            Some(address) => Ok(machine.load(address, size(code, operand).min(8))?.map(|value| value as u64)),
            None => Ok(None),
        },
        OpKind::NearBranch64 => Ok(Some(code.near_branch_target())),
        kind if is_immediate(kind) => Ok(Some(code.immediate(operand))),
        _ => Err(Stop),
    }
}

pub(crate) fn is_immediate(kind: OpKind) -> bool {
    use OpKind as K;
    matches!(
        kind,
        K::Immediate8
            | K::Immediate16
            | K::Immediate32
            | K::Immediate64
            | K::Immediate8to16
            | K::Immediate8to32
            | K::Immediate8to64
            | K::Immediate32to64
    )
}

pub(crate) fn write(
    machine: &mut Machine<'_>,
    code: &Instruction,
    operand: u32,
    value: Option<u64>,
) -> Step<()> {
    match code.op_kind(operand) {
        OpKind::Register => {
            set_register(machine, code.op_register(operand), value);
            Ok(())
        }
        OpKind::Memory => {
            let address = address(machine, code, operand).ok_or(Stop)?;
            machine.store(address, size(code, operand).min(8), value.map(u128::from))
        }
        _ => Err(Stop),
    }
}

pub(crate) fn read_wide(machine: &Machine<'_>, code: &Instruction, operand: u32) -> Step<Option<u128>> {
    match code.op_kind(operand) {
        OpKind::Register if code.op_register(operand).is_xmm() => {
            Ok(machine.vectors[code.op_register(operand).number() & 15])
        }
        OpKind::Memory if size(code, operand) <= 16 => match address(machine, code, operand) {
            Some(address) => machine.load(address, size(code, operand)),
            None => Ok(None),
        },
        OpKind::Register if code.op_register(operand).is_gpr() => {
            Ok(register(machine, code.op_register(operand)).map(u128::from))
        }
        _ => Ok(None),
    }
}

/// Writes a vector. `movq` and `movd` write the lowest 8 or 4 bytes, and zeros above them in a register.
pub(crate) fn write_wide(
    machine: &mut Machine<'_>,
    code: &Instruction,
    operand: u32,
    value: Option<u128>,
) -> Step<()> {
    let most = match code.mnemonic() {
        Mnemonic::Movq => 8,
        Mnemonic::Movd => 4,
        _ => 16,
    };
    let value = value.map(|value| if most < 16 { value & ((1 << (most * 8)) - 1) } else { value });
    match code.op_kind(operand) {
        OpKind::Register if code.op_register(operand).is_xmm() => {
            machine.vectors[code.op_register(operand).number() & 15] = value;
            Ok(())
        }
        OpKind::Register if code.op_register(operand).is_gpr() => {
            set_register(machine, code.op_register(operand), value.map(|value| value as u64));
            Ok(())
        }
        OpKind::Memory => {
            let address = address(machine, code, operand).ok_or(Stop)?;
            machine.store(address, size(code, operand).min(most), value)
        }
        _ => forget(machine, code),
    }
}

pub(crate) fn push(machine: &mut Machine<'_>, value: Option<u64>) -> Step<()> {
    let top = machine.register(4).and_then(|top| top.checked_sub(8)).ok_or(Stop)?;
    machine.set_register(4, Some(top));
    machine.store(top, 8, value.map(u128::from))
}

pub(crate) fn pop(machine: &mut Machine<'_>) -> Step<Option<u64>> {
    let top = machine.register(4).ok_or(Stop)?;
    machine.set_register(4, top.checked_add(8));
    Ok(machine.load(top, 8)?.map(|value| value as u64))
}

/// Where a jump or call leads, and the constant address of the word that says so.
pub(crate) fn target(machine: &Machine<'_>, code: &Instruction) -> Step<(u64, Option<u64>)> {
    let target = read(machine, code, 0)?.ok_or(Stop)?;
    let is_constant = code.op_kind(0) == OpKind::Memory && code.is_ip_rel_memory_operand();
    Ok((target, is_constant.then(|| code.ip_rel_memory_address())))
}

/// An instruction whose results are not known.
pub(crate) fn forget(machine: &mut Machine<'_>, code: &Instruction) -> Step<()> {
    if code.code() == Code::INVALID || code.is_string_instruction() {
        return Err(Stop);
    }
    let mut factory = InstructionInfoFactory::new();
    let info = factory.info(code);
    let is_written = |access: OpAccess| {
        matches!(
            access,
            OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
        )
    };
    if info.used_memory().iter().any(|memory| is_written(memory.access())) {
        let stored =
            (0..code.op_count()).find(|operand| code.op_kind(*operand) == OpKind::Memory).ok_or(Stop)?;
        let (start, count) = (address(machine, code, stored).ok_or(Stop)?, size(code, stored));
        if count == 0 || count > 64 {
            return Err(Stop);
        }
        for at in (0..count).step_by(16) {
            machine.store(start.checked_add(at as u64).ok_or(Stop)?, (count - at).min(16), None)?;
        }
    }
    for used in info.used_registers().iter().filter(|used| is_written(used.access())) {
        let register = used.register();
        if register.is_vector_register() {
            machine.vectors[register.number() & 15] = None;
        } else {
            set_register(machine, register.full_register(), None);
        }
    }
    if code.rflags_modified() != 0 {
        machine.flags = Flags::default();
    }
    Ok(())
}
