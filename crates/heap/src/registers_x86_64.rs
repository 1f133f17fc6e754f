//! The state of a function from which a walk can start.

use core::arch::asm;
use stackglass_unwind::stack_cache::Start;

/// The state of the calling function at this point. The stack may be walked from here until that function returns.
#[inline(always)]
pub fn here() -> Start {
    let (pc, sp, rbp): (u64, u64, u64);
    // SAFETY: reads three registers.
    unsafe {
        asm!("lea {0}, [rip]", "mov {1}, rsp", "mov {2}, rbp", out(reg) pc, out(reg) sp, out(reg) rbp,
            options(nomem, nostack, preserves_flags));
    }
    // A walk looks up the byte before a return address: that of an instruction of this function.
    Start { pc, sp, rbp }
}
