//! The registers of an x86-64 thread, each known or unknown.
//!
//! A walk starts with pc and sp. A stopped or signalled thread gives all other registers; a sleeping thread, read
//! through `/proc/self/task/T/syscall`, gives none. Numbers are DWARF's (System V ABI x86-64, figure 3.36).

/// DWARF's number for the return address column.
pub(crate) const DWARF_RETURN_ADDRESS: u8 = 16;
pub(crate) const RBP: u8 = 6;
pub(crate) const RSP: u8 = 7;

/// Columns of a row of unwind rules: sixteen registers and the return address.
pub(crate) const COLUMNS: usize = 17;

/// A general register by its DWARF number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs, reason = "the names are the CPU's")]
pub enum Register {
    Rax = 0,
    Rdx = 1,
    Rcx = 2,
    Rbx = 3,
    Rsi = 4,
    Rdi = 5,
    Rbp = 6,
    Rsp = 7,
    R8 = 8,
    R9 = 9,
    R10 = 10,
    R11 = 11,
    R12 = 12,
    R13 = 13,
    R14 = 14,
    R15 = 15,
}

impl Register {
    /// The places of registers in the kernel's `struct user_regs_struct`, in words: all but the program counter and `rsp`.
    pub const IN_USER_REGS: [(Register, usize); 15] = [
        (Register::R15, 0),
        (Register::R14, 1),
        (Register::R13, 2),
        (Register::R12, 3),
        (Register::Rbp, 4),
        (Register::Rbx, 5),
        (Register::R11, 6),
        (Register::R10, 7),
        (Register::R9, 8),
        (Register::R8, 9),
        (Register::Rax, 10),
        (Register::Rcx, 11),
        (Register::Rdx, 12),
        (Register::Rsi, 13),
        (Register::Rdi, 14),
    ];
}

/// Register values at one moment: always pc and sp, others where known.
#[derive(Clone, Copy)]
pub struct Registers {
    values: [u64; COLUMNS],
    known: u32,
}

impl Registers {
    /// Program counter, stack pointer and, if it is known, `rbp`.
    pub const fn new(pc: u64, sp: u64, rbp: Option<u64>) -> Registers {
        let mut registers = Registers { values: [0; COLUMNS], known: 1 << RSP | 1 << DWARF_RETURN_ADDRESS };
        registers.values[DWARF_RETURN_ADDRESS as usize] = pc;
        registers.values[RSP as usize] = sp;
        if let Some(rbp) = rbp {
            registers.values[RBP as usize] = rbp;
            registers.known |= 1 << RBP;
        }
        registers
    }

    /// The same with one more register known. Few functions need this: their rules depend on a register other than `rsp`
    /// and `rbp` (lazy binding in `ld.so`, stack realignment).
    #[must_use]
    pub fn with(mut self, register: Register, value: u64) -> Registers {
        self.set(register as u8, Some(value));
        self
    }

    /// All registers at the interrupted instruction, from the third argument of a signal handler.
    pub fn of_signal(context: &libc::ucontext_t) -> Registers {
        let g = &context.uc_mcontext.gregs;
        let at = |index: i32| g[index as usize] as u64;
        Registers {
            // In DWARF's order, the return address column being rip.
            values: [
                at(libc::REG_RAX),
                at(libc::REG_RDX),
                at(libc::REG_RCX),
                at(libc::REG_RBX),
                at(libc::REG_RSI),
                at(libc::REG_RDI),
                at(libc::REG_RBP),
                at(libc::REG_RSP),
                at(libc::REG_R8),
                at(libc::REG_R9),
                at(libc::REG_R10),
                at(libc::REG_R11),
                at(libc::REG_R12),
                at(libc::REG_R13),
                at(libc::REG_R14),
                at(libc::REG_R15),
                at(libc::REG_RIP),
            ],
            known: (1 << COLUMNS) - 1,
        }
    }

    /// All registers of a thread that ptrace has stopped.
    pub fn of_stopped(r: &libc::user_regs_struct) -> Registers {
        Registers {
            values: [
                r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8, r.r9, r.r10, r.r11, r.r12,
                r.r13, r.r14, r.r15, r.rip,
            ],
            known: (1 << COLUMNS) - 1,
        }
    }

    /// The registers of the calling function.
    #[inline(always)]
    pub fn here() -> Registers {
        let (pc, sp, rbp): (u64, u64, u64);
        // SAFETY: only reads registers; no memory, no stack, no flags.
        unsafe {
            core::arch::asm!(
                "lea {pc}, [rip]", "mov {sp}, rsp", "mov {bp}, rbp",
                pc = out(reg) pc, sp = out(reg) sp, bp = out(reg) rbp,
                options(nomem, nostack, preserves_flags),
            );
        }
        Registers::new(pc, sp, Some(rbp))
    }

    /// The program counter.
    pub const fn pc(&self) -> u64 {
        self.values[DWARF_RETURN_ADDRESS as usize]
    }

    /// The stack pointer.
    pub const fn sp(&self) -> u64 {
        self.values[RSP as usize]
    }

    /// `rbp`, if it is known.
    pub fn rbp(&self) -> Option<u64> {
        self.get(RBP)
    }

    /// Sets these registers; all others become unknown.
    pub(crate) fn begin(&mut self, pc: u64, sp: u64, rbp: Option<u64>) {
        self.known = 0;
        self.set(DWARF_RETURN_ADDRESS, Some(pc));
        self.set(RSP, Some(sp));
        self.set(RBP, rbp);
    }

    /// The value of a column by its DWARF number; `None` if it is unknown or does not exist.
    pub fn get(&self, column: u8) -> Option<u64> {
        let value = *self.values.get(usize::from(column))?;
        (self.known >> column & 1 == 1).then_some(value)
    }

    /// Makes all other columns unknown.
    pub(crate) fn keep(&mut self, columns: &[u8]) {
        self.known &= columns.iter().fold(0, |kept, column| kept | 1 << column);
    }

    pub(crate) fn set(&mut self, column: u8, value: Option<u64>) {
        let Some(place) = self.values.get_mut(usize::from(column)) else { return };
        match value {
            Some(value) => {
                *place = value;
                self.known |= 1 << column;
            }
            None => self.known &= !(1 << column),
        }
    }
}

/// The thread pointer: the address of the C library's description of the calling thread.
pub(crate) fn thread_pointer() -> u64 {
    let address;
    // SAFETY: reads the word at the thread pointer, which holds its own address (ABI for x86-64, thread-local storage).
    unsafe {
        std::arch::asm!("mov {}, qword ptr fs:[0]", out(reg) address, options(nostack, preserves_flags, readonly));
    }
    address
}
