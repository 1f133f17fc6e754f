//! One instruction of x86-64.
//!
//! The results of instructions that are not listed are not known. A jump that depends on something unknown ends the
//! interpretation, as does a store to an unknown address.

use crate::machine::{Flags, Machine, Step, Stop};
use crate::operands::{
    accumulator, address, cut, extended, forget, pop, push, read, read_wide, set_register, size, target,
    write, write_wide,
};
use iced_x86::{ConditionCode, Instruction, Mnemonic, OpKind, Register};

/// Numbers of registers.
const RAX: usize = 0;
const RDX: usize = 2;

/// Where the code continues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flow {
    /// Behind the instruction.
    Next,
    /// Elsewhere.
    Jump {
        /// Where.
        target: u64,
        /// The address of the word that held the target, if it is a constant.
        slot: Option<u64>,
    },
    /// In a function, and later behind the instruction.
    Call {
        /// The function.
        target: u64,
        /// The address of the word that held the target, if it is a constant.
        slot: Option<u64>,
    },
    /// Where the caller continues.
    Return,
}

/// Executes an instruction.
pub fn execute(machine: &mut Machine<'_>, code: &Instruction) -> Step<Flow> {
    use Mnemonic as M;
    let size = size(code, 0);
    match code.mnemonic() {
        M::Mov | M::Movzx => {
            let value = read(machine, code, 1)?;
            write(machine, code, 0, value)?;
        }
        M::Movsx | M::Movsxd => {
            let value = read(machine, code, 1)?.map(|value| extended(value, self::size(code, 1)) as u64);
            write(machine, code, 0, value)?;
        }
        M::Lea => {
            let value = address(machine, code, 1);
            write(machine, code, 0, value)?;
        }
        M::Add | M::Xadd => {
            let (left, right) = (read(machine, code, 0)?, read(machine, code, 1)?);
            let sum = both(left, right).map(|(left, right)| left.wrapping_add(right));
            machine.flags = of_sum(left, right, size);
            if code.mnemonic() == M::Xadd {
                write(machine, code, 1, left)?;
            }
            write(machine, code, 0, sum)?;
        }
        M::Sub | M::Cmp => {
            let (left, right) = (read(machine, code, 0)?, read(machine, code, 1)?);
            let same = code.op_kind(0) == OpKind::Register
                && code.op_kind(1) == OpKind::Register
                && code.op0_register() == code.op1_register();
            let (left, right) = if same { (Some(0), Some(0)) } else { (left, right) };
            machine.flags = of_difference(left, right, size);
            if code.mnemonic() == M::Sub {
                write(machine, code, 0, both(left, right).map(|(left, right)| left.wrapping_sub(right)))?;
            }
        }
        M::Inc | M::Dec => {
            let value = read(machine, code, 0)?;
            let carry = machine.flags.carry;
            let (flags, value) = match code.mnemonic() {
                M::Inc => (of_sum(value, Some(1), size), value.map(|value| value.wrapping_add(1))),
                _ => (of_difference(value, Some(1), size), value.map(|value| value.wrapping_sub(1))),
            };
            machine.flags = Flags { carry, ..flags };
            write(machine, code, 0, value)?;
        }
        M::Neg => {
            let value = read(machine, code, 0)?;
            machine.flags = of_difference(Some(0), value, size);
            write(machine, code, 0, value.map(u64::wrapping_neg))?;
        }
        M::Not => {
            let value = read(machine, code, 0)?;
            write(machine, code, 0, value.map(|value| !value))?;
        }
        M::And | M::Test | M::Or | M::Xor => {
            let (left, right) = (read(machine, code, 0)?, read(machine, code, 1)?);
            let same = code.op_kind(1) == OpKind::Register && code.op0_register() == code.op1_register();
            let result = match (code.mnemonic(), both(left, right)) {
                (M::Xor, _) if same => Some(0),
                (M::And | M::Test, None) if left == Some(0) || right == Some(0) => Some(0),
                (_, None) => None,
                (M::Or, Some((left, right))) => Some(left | right),
                (M::Xor, Some((left, right))) => Some(left ^ right),
                (_, Some((left, right))) => Some(left & right),
            };
            machine.flags = of_result(result, size);
            if code.mnemonic() != M::Test {
                write(machine, code, 0, result)?;
            }
        }
        M::Shl | M::Shr | M::Sar => {
            let (value, count) = (read(machine, code, 0)?, read(machine, code, 1)?);
            let count = count.map(|count| count & if size == 8 { 63 } else { 31 });
            let result = both(value, count).map(|(value, count)| match code.mnemonic() {
                M::Shl => value << count,
                M::Shr => cut(value, size) >> count,
                _ => (extended(value, size) >> count) as u64,
            });
            if count != Some(0) {
                machine.flags = Flags { carry: None, overflow: None, ..of_result(result, size) };
            }
            write(machine, code, 0, result)?;
        }
        M::Imul if code.op_count() >= 2 => {
            let first = u32::from(code.op_count() == 3);
            let (left, right) = (read(machine, code, first)?, read(machine, code, first + 1)?);
            machine.flags = Flags::default();
            write(machine, code, 0, both(left, right).map(|(left, right)| left.wrapping_mul(right)))?;
        }
        M::Mul | M::Div if size >= 4 => {
            let of = |number: usize| machine.registers[number].part(0, size);
            let (low, high, operand) = (of(RAX), of(RDX), read(machine, code, 0)?);
            let bits = size as u32 * 8;
            let wide = |low: u64, high: u64| u128::from(high) << bits | u128::from(low);
            let results = match (code.mnemonic(), low, high, operand) {
                (M::Mul, Some(low), _, Some(operand)) => {
                    let product = u128::from(low) * u128::from(operand);
                    Some((product as u64, (product >> bits) as u64))
                }
                (M::Div, Some(low), Some(high), Some(operand)) => {
                    let (value, by) = (wide(low, high), u128::from(operand));
                    // Otherwise the processor would raise an exception.
                    let quotient =
                        value.checked_div(by).filter(|quotient| *quotient >> bits == 0).ok_or(Stop)?;
                    Some((quotient as u64, (value % by) as u64))
                }
                _ => None,
            };
            let is_large = results.map(|(_, high)| cut(high, size) != 0);
            machine.flags = match code.mnemonic() {
                M::Mul => Flags { carry: is_large, overflow: is_large, ..Flags::default() },
                _ => Flags::default(),
            };
            let registers =
                if size == 8 { [Register::RAX, Register::RDX] } else { [Register::EAX, Register::EDX] };
            set_register(machine, registers[0], results.map(|(low, _)| low));
            set_register(machine, registers[1], results.map(|(_, high)| high));
        }
        M::Bts | M::Btr if code.op_kind(0) == OpKind::Register => {
            let (value, bit) = (read(machine, code, 0)?, read(machine, code, 1)?);
            let changed = both(value, bit).map(|(value, bit)| (value, 1u64 << (bit % (size as u64 * 8))));
            machine.flags.carry = changed.map(|(value, bit)| value & bit != 0);
            let set = code.mnemonic() == M::Bts;
            let result = changed.map(|(value, bit)| if set { value | bit } else { value & !bit });
            write(machine, code, 0, result)?;
        }
        M::Rol | M::Ror if size >= 4 => {
            let (value, count) = (read(machine, code, 0)?, read(machine, code, 1)?);
            let result = both(value, count).map(|(value, count)| {
                let count = (count & if size == 8 { 63 } else { 31 }) as u32;
                let left = code.mnemonic() == M::Rol;
                match (size, left) {
                    (8, true) => value.rotate_left(count),
                    (8, false) => value.rotate_right(count),
                    (_, true) => u64::from((value as u32).rotate_left(count)),
                    (_, false) => u64::from((value as u32).rotate_right(count)),
                }
            });
            machine.flags = Flags { carry: None, overflow: None, ..machine.flags };
            write(machine, code, 0, result)?;
        }
        M::Bsr => {
            let value = read(machine, code, 1)?.filter(|value| *value != 0);
            machine.flags = Flags { zero: value.map(|_| false), ..Flags::default() };
            write(machine, code, 0, value.map(|value| 63 - u64::from(value.leading_zeros())))?;
        }
        M::Bt => {
            let (value, bit) = (read(machine, code, 0)?, read(machine, code, 1)?);
            // A bit of memory may be outside of the operand.
            let is_register = code.op_kind(0) == OpKind::Register;
            let bit = both(value, bit).filter(|_| is_register);
            machine.flags.carry = bit.map(|(value, bit)| value >> (bit % (size as u64 * 8)) & 1 == 1);
        }
        M::Tzcnt | M::Bsf => {
            let value = read(machine, code, 1)?.filter(|value| *value != 0);
            // Only `tzcnt` sets the flag by its result, and says that there is a bit.
            machine.flags = match code.mnemonic() {
                M::Tzcnt => Flags {
                    zero: value.map(|value| value & 1 == 1),
                    carry: value.map(|_| false),
                    ..Flags::default()
                },
                _ => Flags { zero: value.map(|_| false), ..Flags::default() },
            };
            write(machine, code, 0, value.map(|value| u64::from(value.trailing_zeros())))?;
        }
        M::Cdqe => {
            let value = machine.registers[0].part(0, 4).map(|value| extended(value, 4) as u64);
            machine.set_register(0, value);
        }
        M::Xchg => {
            let (left, right) = (read(machine, code, 0)?, read(machine, code, 1)?);
            write(machine, code, 0, right)?;
            write(machine, code, 1, left)?;
        }
        M::Cmpxchg => {
            let (now, new) = (read(machine, code, 0)?, read(machine, code, 1)?);
            let expected = machine.registers[0].part(0, size.min(8));
            machine.flags = of_difference(expected, now, size);
            match machine.flags.zero.ok_or(Stop)? {
                true => write(machine, code, 0, new)?,
                false => set_register(machine, accumulator(size), now),
            }
        }
        M::Push => {
            let value = read(machine, code, 0)?;
            push(machine, value)?;
        }
        M::Pop => {
            let value = pop(machine)?;
            write(machine, code, 0, value)?;
        }
        M::Leave => {
            machine.registers[4] = machine.registers[5];
            let frame = pop(machine)?;
            machine.set_register(5, frame);
        }
        M::Movaps | M::Movups | M::Movdqa | M::Movdqu | M::Movapd | M::Movupd | M::Movq | M::Movd => {
            let value = read_wide(machine, code, 1)?;
            write_wide(machine, code, 0, value)?;
        }
        M::Xorps | M::Xorpd | M::Pxor
            if code.op_kind(1) == OpKind::Register && code.op0_register() == code.op1_register() =>
        {
            write_wide(machine, code, 0, Some(0))?;
        }
        M::Pcmpeqb | M::Pcmpgtb => {
            let (left, right) = (read_wide(machine, code, 0)?, read_wide(machine, code, 1)?);
            let compare = |left: u8, right: u8| match code.mnemonic() {
                M::Pcmpeqb => left == right,
                _ => (left as i8) > (right as i8),
            };
            let result =
                left.zip(right).map(|(left, right)| {
                    let (left, right) = (left.to_le_bytes(), right.to_le_bytes());
                    u128::from_le_bytes(std::array::from_fn(|at| {
                        if compare(left[at], right[at]) { 0xff } else { 0 }
                    }))
                });
            write_wide(machine, code, 0, result)?;
        }
        M::Pand | M::Andps | M::Por | M::Orps | M::Pxor | M::Xorps | M::Pandn | M::Andnps => {
            let (left, right) = (read_wide(machine, code, 0)?, read_wide(machine, code, 1)?);
            let result = left.zip(right).map(|(left, right)| match code.mnemonic() {
                M::Pand | M::Andps => left & right,
                M::Por | M::Orps => left | right,
                M::Pxor | M::Xorps => left ^ right,
                _ => !left & right,
            });
            write_wide(machine, code, 0, result)?;
        }
        M::Pmovmskb => {
            let bits = read_wide(machine, code, 1)?.map(|value| {
                let bytes = value.to_le_bytes();
                (0..16).fold(0, |bits, at| bits | u64::from(bytes[at] >> 7) << at)
            });
            write(machine, code, 0, bits)?;
        }
        M::Jmp => {
            let (target, slot) = target(machine, code)?;
            return Ok(Flow::Jump { target, slot });
        }
        M::Call => {
            let (target, slot) = target(machine, code)?;
            return Ok(Flow::Call { target, slot });
        }
        M::Ret => return Ok(Flow::Return),
        M::Nop | M::Endbr64 | M::Pause | M::Mfence | M::Lfence | M::Sfence => {}
        M::Ud2 | M::Int3 | M::Int | M::Syscall | M::Hlt => return Err(Stop),
        _ if code.is_jcc_short_or_near() => {
            return Ok(match condition(&machine.flags, code.condition_code()).ok_or(Stop)? {
                true => Flow::Jump { target: code.near_branch_target(), slot: None },
                false => Flow::Next,
            });
        }
        _ if code.condition_code() != ConditionCode::None && code.op_count() == 1 => {
            let set = condition(&machine.flags, code.condition_code());
            write(machine, code, 0, set.map(u64::from))?;
        }
        _ if code.condition_code() != ConditionCode::None && code.op_count() == 2 => {
            let (old, new) = (read(machine, code, 0)?, read(machine, code, 1)?);
            let value = match condition(&machine.flags, code.condition_code()) {
                Some(true) => new,
                Some(false) => old,
                None if old == new => old,
                None => None,
            };
            write(machine, code, 0, value)?;
        }
        _ => forget(machine, code)?,
    }
    Ok(Flow::Next)
}

/// Whether a condition holds.
fn condition(flags: &Flags, condition: ConditionCode) -> Option<bool> {
    let Flags { zero, sign, carry, overflow } = *flags;
    let differ = |left: Option<bool>, right: Option<bool>| Some(left? != right?);
    let any = |left: Option<bool>, right: Option<bool>| match (left, right) {
        (Some(true), _) | (_, Some(true)) => Some(true),
        (Some(false), Some(false)) => Some(false),
        _ => None,
    };
    let not = |value: Option<bool>| value.map(|value| !value);
    match condition {
        ConditionCode::e => zero,
        ConditionCode::ne => not(zero),
        ConditionCode::b => carry,
        ConditionCode::ae => not(carry),
        ConditionCode::be => any(carry, zero),
        ConditionCode::a => not(any(carry, zero)),
        ConditionCode::s => sign,
        ConditionCode::ns => not(sign),
        ConditionCode::o => overflow,
        ConditionCode::no => not(overflow),
        ConditionCode::l => differ(sign, overflow),
        ConditionCode::ge => not(differ(sign, overflow)),
        ConditionCode::le => any(zero, differ(sign, overflow)),
        ConditionCode::g => not(any(zero, differ(sign, overflow))),
        _ => None,
    }
}

fn of_result(result: Option<u64>, size: usize) -> Flags {
    Flags {
        zero: result.map(|value| cut(value, size) == 0),
        sign: result.map(|value| extended(value, size) < 0),
        carry: Some(false),
        overflow: Some(false),
    }
}

fn of_sum(left: Option<u64>, right: Option<u64>, size: usize) -> Flags {
    let Some((left, right)) = both(left, right) else { return Flags::default() };
    let sum = cut(left.wrapping_add(right), size);
    let overflow = (extended(left, size) < 0) == (extended(right, size) < 0)
        && (extended(sum, size) < 0) != (extended(left, size) < 0);
    Flags { carry: Some(sum < cut(left, size)), overflow: Some(overflow), ..of_result(Some(sum), size) }
}

fn of_difference(left: Option<u64>, right: Option<u64>, size: usize) -> Flags {
    let Some((left, right)) = both(left, right) else { return Flags::default() };
    let difference = cut(left.wrapping_sub(right), size);
    let overflow = (extended(left, size) < 0) != (extended(right, size) < 0)
        && (extended(difference, size) < 0) != (extended(left, size) < 0);
    let carry = cut(left, size) < cut(right, size);
    Flags { carry: Some(carry), overflow: Some(overflow), ..of_result(Some(difference), size) }
}

fn both(left: Option<u64>, right: Option<u64>) -> Option<(u64, u64)> {
    left.zip(right)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Register as Value;
    use iced_x86::{Decoder, DecoderOptions};
    use stackglass_process_view::core_image::{CoreImage, Memory};
    use stackglass_process_view::pages::Pages;

    struct Nothing;

    impl Memory for Nothing {
        fn read(&self, _: u64, _: &mut [u8]) -> usize {
            0
        }
    }

    /// Executes code with `rax`, `rcx` and `rdx` set, and returns the machine's registers and flags.
    fn run(code: &[u8], registers: [Option<u64>; 3]) -> ([Option<u64>; 3], Flags, Step<Flow>) {
        let image = CoreImage {
            pid: 1,
            executable: String::new(),
            mappings: Vec::new(),
            threads: Vec::new(),
            memory: Box::new(Nothing),
        };
        let pages = Pages::new(&image);
        let mut machine = Machine::new(&pages, None);
        for (number, value) in registers.into_iter().enumerate() {
            machine.registers[number] = value.map_or_else(Value::default, Value::from_value);
        }
        let mut flow = Ok(Flow::Next);
        for instruction in &mut Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE) {
            flow = execute(&mut machine, &instruction);
        }
        ([0, 1, 2].map(|number| machine.register(number)), machine.flags, flow)
    }

    #[test]
    fn flags_of_sums_and_differences() {
        const NUMBERS: [u64; 8] = [0, 1, 0x7f, 0x80, 0xff, 0x7fff_ffff, 0x8000_0000, u64::MAX];
        macro_rules! check {
            ($compare:expr, $add:expr, $unsigned:ty, $signed:ty) => {
                for (a, b) in NUMBERS.iter().flat_map(|a| NUMBERS.iter().map(|b| (*a, *b))) {
                    let (left, right) = (a as $unsigned, b as $unsigned);
                    let (_, flags, _) = run($compare, [Some(a), Some(b), None]);
                    let (difference, carry) = left.overflowing_sub(right);
                    let overflow = (left as $signed).overflowing_sub(right as $signed).1;
                    assert_eq!((flags.carry, flags.overflow), (Some(carry), Some(overflow)), "{a} {b}");
                    let sign = (difference as $signed) < 0;
                    assert_eq!((flags.zero, flags.sign), (Some(difference == 0), Some(sign)), "{a} {b}");
                    assert_eq!(
                        condition(&flags, ConditionCode::l),
                        Some((left as $signed) < (right as $signed))
                    );
                    assert_eq!(condition(&flags, ConditionCode::be), Some(left <= right));
                    let (registers, flags, _) = run($add, [Some(a), Some(b), None]);
                    let (sum, carry) = left.overflowing_add(right);
                    let overflow = (left as $signed).overflowing_add(right as $signed).1;
                    assert_eq!((flags.carry, flags.overflow), (Some(carry), Some(overflow)), "{a} {b}");
                    assert_eq!(registers[0].map(|value| value as $unsigned), Some(sum));
                }
            };
        }
        check!(&[0x38, 0xc8], &[0x00, 0xc8], u8, i8);
        check!(&[0x66, 0x39, 0xc8], &[0x66, 0x01, 0xc8], u16, i16);
        check!(&[0x39, 0xc8], &[0x01, 0xc8], u32, i32);
        check!(&[0x48, 0x39, 0xc8], &[0x48, 0x01, 0xc8], u64, i64);
    }

    #[test]
    fn unknown_parts_of_registers() {
        // mov cl, 5; movzx eax, cl: known, although the rest of rcx is not.
        assert_eq!(run(&[0xb1, 5, 0x0f, 0xb6, 0xc1], [None; 3]).0, [Some(5), None, None]);
        // mov al, cl: the rest is not known.
        assert_eq!(run(&[0x88, 0xc8], [None, Some(7), None]).0[0], None);
        // xor eax, eax; sub ecx, ecx.
        assert_eq!(run(&[0x31, 0xc0, 0x29, 0xc9], [None; 3]).0, [Some(0), Some(0), None]);
        // cmp rax, rcx; je: not known.
        assert_eq!(run(&[0x48, 0x39, 0xc8, 0x74, 0x10], [None, Some(1), None]).2, Err(Stop));
        // mov [rax], rcx: it is not known what changes.
        assert_eq!(run(&[0x48, 0x89, 0x08], [None, Some(1), None]).2, Err(Stop));
        // rdtsc: not listed.
        assert_eq!(run(&[0x0f, 0x31], [Some(1), Some(2), Some(3)]).0, [None, Some(2), None]);
    }

    #[test]
    fn products_and_quotients() {
        // mul rcx.
        let (registers, flags, _) = run(&[0x48, 0xf7, 0xe1], [Some(1 << 63), Some(6), None]);
        assert_eq!((registers, flags.overflow), ([Some(0), Some(6), Some(3)], Some(true)));
        // div ecx.
        assert_eq!(run(&[0xf7, 0xf1], [Some(17), Some(5), Some(0)]).0, [Some(3), Some(5), Some(2)]);
        assert_eq!(run(&[0xf7, 0xf1], [Some(17), Some(0), Some(0)]).2, Err(Stop));
    }
}
