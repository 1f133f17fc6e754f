//! The program's registers in a sample (`PERF_SAMPLE_REGS_USER`).

use stackglass_unwind::{Register, Registers};

/// The registers that are requested, in the order of their bits.
const REGISTERS: [(u32, Option<Register>); 17] = [
    (0, Some(Register::Rax)),
    (1, Some(Register::Rbx)),
    (2, Some(Register::Rcx)),
    (3, Some(Register::Rdx)),
    (4, Some(Register::Rsi)),
    (5, Some(Register::Rdi)),
    (6, Some(Register::Rbp)),
    (7, Some(Register::Rsp)),
    // The program counter.
    (8, None),
    (16, Some(Register::R8)),
    (17, Some(Register::R9)),
    (18, Some(Register::R10)),
    (19, Some(Register::R11)),
    (20, Some(Register::R12)),
    (21, Some(Register::R13)),
    (22, Some(Register::R14)),
    (23, Some(Register::R15)),
];

/// Number of registers in a sample, eight bytes each.
pub const COUNT: usize = REGISTERS.len();

/// The value of `sample_regs_user`: one bit for each requested register.
pub fn mask() -> u64 {
    REGISTERS.iter().fold(0, |mask, (bit, _)| mask | 1 << bit)
}

/// The registers with the first four arguments of a call, and with what it returns: rax, rcx, rdx, rsi, rdi.
pub fn of_calls() -> u64 {
    1 << 0 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 5
}

/// Reads the registers of a sample: eight bytes each, in the order of [`mask`]. `None` if there are too few bytes.
pub fn of_sample(words: &[u8]) -> Option<Registers> {
    let value = |bit: u32| {
        let index = REGISTERS.iter().position(|(other, _)| *other == bit)?;
        Some(u64::from_le_bytes(words.get(index * 8..index * 8 + 8)?.try_into().ok()?))
    };
    let (pc, sp) = (value(8)?, value(7)?);
    let mut registers = Registers::new(pc, sp, None);
    for (bit, register) in REGISTERS {
        if let Some(register) = register {
            registers = registers.with(register, value(bit)?);
        }
    }
    Some(registers)
}
