//! Putting an interrupted system call back, so that our signal leaves no trace.
//!
//! `SA_RESTART` lets the kernel resume most calls after a handler, but not `poll`, `select`, `epoll_wait`,
//! `nanosleep`, waits with a time-out and a few more (signal(7)): they come back with `EINTR`. We never
//! signal a thread that is known to sleep in such a call, but a running one may enter it while the signal is
//! on its way. Then the handler finds the thread right behind a `syscall` instruction with `-EINTR` in its
//! result register, and steps it back to that instruction with the number of the call: the same as if the
//! signal had come a microsecond earlier. A time-out begins anew, by the microseconds that had passed.
//!
//! The number is gone from the registers, but callers nearly always load it right before the instruction
//! (`mov $nr, %eax; syscall`, at most one load from the stack between them); where they do not, the call returns
//! `EINTR` as usual. Of glibc 2.36 that leaves its own waits on futexes, which begin again by themselves.

/// `-EINTR` as the kernel returns it.
const INTERRUPTED: i64 = -(libc::EINTR as i64);
/// `syscall`.
const SYSCALL: [u8; 2] = [0x0f, 0x05];
/// `mov $imm32, %eax`, without the number.
const MOV_EAX: u8 = 0xb8;
/// `xor %eax, %eax`: the number of `read`.
const XOR_EAX_EAX: [u8; 2] = [0x31, 0xc0];
/// Above every number there is.
const NUMBERS: u32 = 1024;

/// The bytes looked at before the program counter.
pub const BEFORE: usize = 12;

/// The number of the call that was made by the instructions right before the program counter, of which
/// `before` are the bytes. `None` when these are not the usual ones.
pub fn number_of(before: &[u8; BEFORE]) -> Option<u32> {
    let before = before.strip_suffix(&SYSCALL)?;
    if before.ends_with(&XOR_EAX_EAX) {
        return Some(0);
    }
    // Nothing between, or `mov disp8(%rsp), %reg` without and with a prefix.
    let before = match before {
        [rest @ .., 0x40..=0x4f, 0x8b, modrm, 0x24, _] if modrm & 0xc7 == 0x44 => rest,
        [rest @ .., 0x8b, modrm, 0x24, _] if modrm & 0xc7 == 0x44 => rest,
        _ => before,
    };
    let [.., MOV_EAX, a, b, c, d] = *before else { return None };
    let number = u32::from_le_bytes([a, b, c, d]);
    (number < NUMBERS).then_some(number)
}

/// Puts the call back in `context` if one was interrupted; true when it did.
///
/// # Safety
/// `context` must be the third argument of a signal handler, which runs now.
#[inline]
pub unsafe fn put_back(context: &mut libc::ucontext_t) -> bool {
    let registers = &mut context.uc_mcontext.gregs;
    if registers[libc::REG_RAX as usize] != INTERRUPTED {
        return false;
    }
    let pc = registers[libc::REG_RIP as usize];
    let mut before = [0u8; BEFORE];
    if stackglass_unwind::memory::read_own((pc as u64).wrapping_sub(BEFORE as u64), &mut before) != BEFORE {
        return false;
    }
    match number_of(&before) {
        Some(number) => {
            registers[libc::REG_RAX as usize] = number as i64;
            registers[libc::REG_RIP as usize] = pc - SYSCALL.len() as i64;
            true
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(code: &[u8]) -> Option<u32> {
        let mut before = [0x90; BEFORE];
        before[BEFORE - code.len()..].copy_from_slice(code);
        number_of(&before)
    }

    #[test]
    fn the_number_is_read_from_the_usual_instructions_only() {
        assert_eq!(of(&[0xb8, 7, 0, 0, 0, 0x0f, 0x05]), Some(7));
        assert_eq!(of(&[0xb8, 0xe8, 0, 0, 0, 0x0f, 0x05]), Some(232));
        assert_eq!(of(&[0x31, 0xc0, 0x0f, 0x05]), Some(0));
        assert_eq!(of(&[0xb8, 0x0e, 1, 0, 0, 0x8b, 0x7c, 0x24, 0x1c, 0x0f, 0x05]), Some(270));
        assert_eq!(of(&[0xb8, 45, 0, 0, 0, 0x48, 0x8b, 0x74, 0x24, 8, 0x0f, 0x05]), Some(45));
        for other in [
            &[0xb9, 7, 0, 0, 0, 0x0f, 0x05][..],
            &[0xb8, 7, 0, 0, 0, 0xcd, 0x80],
            &[0xb8, 7, 0, 0, 1, 0x0f, 0x05],
            &[0x31, 0xc9, 0x0f, 0x05],
            &[0x44, 0x89, 0xc8, 0x0f, 0x05],
            &[],
        ] {
            assert_eq!(of(other), None, "{other:x?}");
        }
    }
}
