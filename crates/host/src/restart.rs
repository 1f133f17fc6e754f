//! Which interrupted system calls leave no trace, and which are put back.
//!
//! `SA_RESTART` lets the kernel resume most calls after a handler ([`restarts_by_itself`]), but not `poll`, `select`,
//! `epoll_wait`, `nanosleep`, waits with a time-out and a few more (signal(7)): they come back with `EINTR`. A thread
//! that sleeps in such a call is never signalled, but a running one may enter it while the signal is on its way.
//!
//! Then the handler finds the thread right behind a `syscall` instruction with `-EINTR` in its result register.
//! It steps the thread back to that instruction, with the number of the call, only where nobody else can have caused that
//! interruption and nothing is lost by a second call:
//! - no handler of the program is or was installed, but for faults, which end no call. Else one may have run before ours, in the very call: put
//!   back, `sigsuspend` or `ppoll` would wait for ever for what has happened. The hooks of the preload library tell of a
//!   handler before it is installed ([`program_has_a_handler`]); the kernel is asked at the start and again at the moment
//!   itself. Without hooks (in the crate) nothing is put back.
//! - the call is one of a list ([`is_safe_to_repeat`]): `EINTR` says that it has done nothing yet.
//!
//! The number is gone from the registers, but callers nearly always load it right before the instruction
//! (`mov $nr, %eax; syscall`, at most one load from the stack between them); where they do not, the call returns
//! `EINTR`. A time-out begins anew, by the microseconds that had passed.

use crate::{action, program_actions};
use core::sync::atomic::{AtomicU32, Ordering::*};

/// Whether a call may be put back in this process. A forked child inherits it with the handlers.
static KNOWN: AtomicU32 = AtomicU32::new(NO_HOOKS);
/// Nobody tells of new handlers.
const NO_HOOKS: u32 = 0;
/// The hooks are in place and there has never been a handler.
const NO_HANDLER: u32 = 1;
/// The program has, or had, a handler.
const HANDLER: u32 = 2;

/// From now on the program's handlers are told before they are installed.
pub fn hooks_are_in_place() {
    let known = if program_actions::program_has_handlers() { HANDLER } else { NO_HANDLER };
    let _ = KNOWN.compare_exchange(NO_HOOKS, known, AcqRel, Acquire);
}

/// The program is about to install a handler for this signal: no call is put back any more.
pub fn program_has_a_handler(number: i32) {
    if !action::is_fault(number) {
        KNOWN.store(HANDLER, Release);
    }
}

/// Whether an interrupted call can be put back, as far as is known without asking the kernel.
pub fn may_put_back() -> bool {
    KNOWN.load(Acquire) == NO_HANDLER
}

/// Whether the kernel resumes this call after a handler with `SA_RESTART`, as read in a thread's `syscall` file: its number and
/// its first arguments. Sockets with a time-out do not resume; `is_socket` is asked where that matters.
pub fn restarts_by_itself(number: i64, arguments: [u64; 6], is_socket: impl FnOnce(u64) -> bool) -> bool {
    const LOCK: u64 = libc::F_SETLKW as u64;
    const OPEN_FILE_LOCK: u64 = libc::F_OFD_SETLKW as u64;
    /// FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME.
    const FUTEX_FLAGS: u64 = 128 | 256;
    match number {
        libc::SYS_read | libc::SYS_write | libc::SYS_readv | libc::SYS_writev => !is_socket(arguments[0]),
        libc::SYS_wait4 | libc::SYS_waitid | libc::SYS_flock => true,
        libc::SYS_fcntl => matches!(arguments[1], LOCK | OPEN_FILE_LOCK),
        // FUTEX_WAIT and FUTEX_WAIT_BITSET without a time-out.
        libc::SYS_futex => matches!(arguments[1] & !FUTEX_FLAGS, 0 | 9) && arguments[3] == 0,
        _ => false,
    }
}

/// Whether a call that returned `EINTR` has done nothing yet, so that it may be made once more.
pub fn is_safe_to_repeat(number: u32) -> bool {
    matches!(
        i64::from(number),
        libc::SYS_poll
            | libc::SYS_ppoll
            | libc::SYS_select
            | libc::SYS_pselect6
            | libc::SYS_epoll_wait
            | libc::SYS_epoll_pwait
            | libc::SYS_epoll_pwait2
            | libc::SYS_nanosleep
            | libc::SYS_clock_nanosleep
            | libc::SYS_futex
            | libc::SYS_pause
            | libc::SYS_rt_sigsuspend
            | libc::SYS_rt_sigtimedwait
            | libc::SYS_semop
            | libc::SYS_semtimedop
            | libc::SYS_msgsnd
            | libc::SYS_msgrcv
            | libc::SYS_accept
            | libc::SYS_accept4
            | libc::SYS_recvfrom
            | libc::SYS_recvmsg
            | libc::SYS_sendto
            | libc::SYS_sendmsg
            | libc::SYS_read
            | libc::SYS_readv
    )
}

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
    if !may_put_back() {
        return false;
    }
    let mut before = [0u8; BEFORE];
    if stackglass_unwind::memory::read_own((pc as u64).wrapping_sub(BEFORE as u64), &mut before) != BEFORE {
        return false;
    }
    match number_of(&before) {
        Some(number) if is_safe_to_repeat(number) => {
            // A handler that the hooks have not seen: installed by a bare system call.
            if program_actions::program_has_handlers() {
                KNOWN.store(HANDLER, Release);
                return false;
            }
            registers[libc::REG_RAX as usize] = number as i64;
            registers[libc::REG_RIP as usize] = pc - SYSCALL.len() as i64;
            true
        }
        _ => false,
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

    #[test]
    fn what_closes_sends_or_opens_is_never_repeated() {
        for number in [libc::SYS_close, libc::SYS_connect, libc::SYS_write, libc::SYS_openat, libc::SYS_dup2]
        {
            assert!(!is_safe_to_repeat(number as u32), "{number}");
        }
        assert!(is_safe_to_repeat(libc::SYS_ppoll as u32));
    }

    #[test]
    fn only_calls_that_resume_may_be_interrupted() {
        let restarts = |number, arguments| restarts_by_itself(number, arguments, |fd| fd == 5);
        assert!(
            restarts(libc::SYS_read, [4, 0, 0, 0, 0, 0]) && !restarts(libc::SYS_read, [5, 0, 0, 0, 0, 0])
        );
        assert!(restarts(libc::SYS_wait4, [0; 6]));
        assert!(
            restarts(libc::SYS_futex, [1, 128, 0, 0, 0, 0])
                && !restarts(libc::SYS_futex, [1, 128, 0, 9, 0, 0])
        );
        assert!(restarts(libc::SYS_futex, [1, 128 | 256 | 9, 0, 0, 0, 0]));
        assert!(
            restarts(libc::SYS_fcntl, [4, 7, 0, 0, 0, 0]) && !restarts(libc::SYS_fcntl, [4, 8, 0, 0, 0, 0])
        );
        for number in [libc::SYS_poll, libc::SYS_pause, libc::SYS_rt_sigsuspend, libc::SYS_recvfrom, -1] {
            assert!(!restarts(number, [0; 6]), "{number}");
        }
    }
}
