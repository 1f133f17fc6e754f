//! Which interrupted system calls resume by themselves, and which are put back.
//!
//! `SA_RESTART` lets the kernel resume most calls after a handler ([`restarts_by_itself`]). Exceptions are `poll`, `select`,
//! `epoll_wait`, `nanosleep`, waits with a time-out and a few more (signal(7)), which return `EINTR`. A thread
//! that sleeps in such a call is never signalled, but a running thread may enter one before its signal arrives.
//!
//! The handler then finds the thread behind a `syscall` instruction with `-EINTR` in its result register. It steps the
//! thread back to that instruction, with the number of the call. There are two conditions:
//! - No other signal can have interrupted the call: the program has, and had, no handler except for faults, which interrupt
//!   no call. Otherwise the program's handler may have run during the same call. `sigsuspend` or `ppoll`, put back, would
//!   then wait for ever for a signal that has already come. The preload library's hooks report a handler before it is
//!   installed ([`program_has_a_handler`]). The kernel is asked at the start, and again just before a call is put back.
//!   Without hooks (in the crate) no call is put back.
//! - The call is in a list ([`is_safe_to_repeat`]): with `EINTR` it has had no effect.
//!
//! `stackglass-attach` has the same two tables for stops by ptrace (`calls.rs`), with different entries, for two reasons:
//! - After a stop no handler runs. The kernel then resumes `nanosleep`, `poll`, `pause`, `sigsuspend` and waits on a futex
//!   with a time-out by itself, so attach does not repeat the first four. After a handler they return `EINTR`.
//! - Attach gets the number of the call from the kernel. The handler infers it from the instructions before the program
//!   counter, so its list is shorter: without `write`, `flock`, `fcntl`, and the waits of POSIX message queues and of
//!   asynchronous input. If these return `EINTR`, the program sees it.
//!
//! The registers no longer hold the call's number, but callers nearly always load it just before the instruction
//! (`mov $nr, %eax; syscall`, with at most one load from the stack in between). Otherwise the call returns
//! `EINTR`. A time-out begins anew, which adds the microseconds that had passed.

use crate::{action, program_actions};
use core::sync::atomic::{AtomicU32, Ordering::*};
use stackglass_unwind::call_site::SYSCALL;

/// Whether calls may be put back in this process. A forked child inherits it with the handlers.
static KNOWN: AtomicU32 = AtomicU32::new(NO_HOOKS);
/// There are no hooks that report new handlers.
const NO_HOOKS: u32 = 0;
/// The hooks are in place and there has never been a handler.
const NO_HANDLER: u32 = 1;
/// The program has, or had, a handler.
const HANDLER: u32 = 2;

/// From now on handlers are reported before they are installed.
pub fn hooks_are_in_place() {
    let known = if program_actions::program_has_handlers() { HANDLER } else { NO_HANDLER };
    let _ = KNOWN.compare_exchange(NO_HOOKS, known, AcqRel, Acquire);
}

/// The program is about to install a handler for this signal: from now on no call is put back.
pub fn program_has_a_handler(number: i32) {
    if !action::is_fault(number) {
        KNOWN.store(HANDLER, Release);
    }
}

/// Whether an interrupted call can be put back, as far as that is known without asking the kernel.
pub fn may_put_back() -> bool {
    KNOWN.load(Acquire) == NO_HANDLER
}

/// Whether the kernel resumes a call after a handler with `SA_RESTART`. Number and arguments are those of a thread's
/// `syscall` file. Calls that have moved a part of their data return that part. Only `read` from a pipe is known to wait
/// while it has nothing, so `is_pipe` is asked for its descriptor. `write` is never known.
pub fn restarts_by_itself(number: i64, arguments: [u64; 6], is_pipe: impl FnOnce(u64) -> bool) -> bool {
    const LOCK: u64 = libc::F_SETLKW as u64;
    const OPEN_FILE_LOCK: u64 = libc::F_OFD_SETLKW as u64;
    /// FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME.
    const FUTEX_FLAGS: u64 = 128 | 256;
    match number {
        libc::SYS_read | libc::SYS_readv => is_pipe(arguments[0]),
        libc::SYS_wait4 | libc::SYS_waitid | libc::SYS_flock => true,
        libc::SYS_fcntl => matches!(arguments[1], LOCK | OPEN_FILE_LOCK),
        // FUTEX_WAIT and FUTEX_WAIT_BITSET without a time-out.
        libc::SYS_futex => matches!(arguments[1] & !FUTEX_FLAGS, 0 | 9) && arguments[3] == 0,
        _ => false,
    }
}

/// Whether a call that returns `EINTR` has done nothing, so that it may be repeated.
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
            // It returns the number of requests instead if it has taken any.
            | libc::SYS_io_uring_enter
    )
}

/// `-EINTR` as the kernel returns it.
const INTERRUPTED: i64 = -(libc::EINTR as i64);
/// `mov $imm32, %eax`, without the number.
const MOV_EAX: u8 = 0xb8;
/// `xor %eax, %eax`: the number of `read`.
const XOR_EAX_EAX: [u8; 2] = [0x31, 0xc0];
/// Larger than every call's number.
const NUMBERS: u32 = 1024;

/// Bytes before the program counter that are read.
pub const BEFORE: usize = 12;

/// The number of the call that the instructions just before the program counter have made. `before` are their bytes. `None` if
/// they are not the usual ones.
pub fn number_of(before: &[u8; BEFORE]) -> Option<u32> {
    let before = before.strip_suffix(&SYSCALL)?;
    if before.ends_with(&XOR_EAX_EAX) {
        return Some(0);
    }
    // Nothing in between, or `mov disp8(%rsp), %reg` without and with a prefix.
    let before = match before {
        [rest @ .., 0x40..=0x4f, 0x8b, modrm, 0x24, _] if modrm & 0xc7 == 0x44 => rest,
        [rest @ .., 0x8b, modrm, 0x24, _] if modrm & 0xc7 == 0x44 => rest,
        _ => before,
    };
    let [.., MOV_EAX, a, b, c, d] = *before else { return None };
    let number = u32::from_le_bytes([a, b, c, d]);
    (number < NUMBERS).then_some(number)
}

/// Puts an interrupted call back, by changing `context`. Whether it did.
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
            // A handler that the hooks have not seen, installed by a bare system call.
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

    fn number_after(code: &[u8]) -> Option<u32> {
        let mut before = [0x90; BEFORE];
        before[BEFORE - code.len()..].copy_from_slice(code);
        number_of(&before)
    }

    #[test]
    fn the_number_is_read_from_the_usual_instructions_only() {
        assert_eq!(number_after(&[0xb8, 7, 0, 0, 0, 0x0f, 0x05]), Some(7));
        assert_eq!(number_after(&[0xb8, 0xe8, 0, 0, 0, 0x0f, 0x05]), Some(232));
        assert_eq!(number_after(&[0x31, 0xc0, 0x0f, 0x05]), Some(0));
        assert_eq!(number_after(&[0xb8, 0x0e, 1, 0, 0, 0x8b, 0x7c, 0x24, 0x1c, 0x0f, 0x05]), Some(270));
        assert_eq!(number_after(&[0xb8, 45, 0, 0, 0, 0x48, 0x8b, 0x74, 0x24, 8, 0x0f, 0x05]), Some(45));
        for other in [
            &[0xb9, 7, 0, 0, 0, 0x0f, 0x05][..],
            &[0xb8, 7, 0, 0, 0, 0xcd, 0x80],
            &[0xb8, 7, 0, 0, 1, 0x0f, 0x05],
            &[0x31, 0xc9, 0x0f, 0x05],
            &[0x44, 0x89, 0xc8, 0x0f, 0x05],
            &[],
        ] {
            assert_eq!(number_after(other), None, "{other:x?}");
        }
    }

    #[test]
    fn calls_that_close_connect_write_or_open_are_never_repeated() {
        for number in [libc::SYS_close, libc::SYS_connect, libc::SYS_write, libc::SYS_openat, libc::SYS_dup2]
        {
            assert!(!is_safe_to_repeat(number as u32), "{number}");
        }
        assert!(is_safe_to_repeat(libc::SYS_ppoll as u32));
    }

    #[test]
    fn only_calls_that_resume_may_be_interrupted() {
        let restarts = |number, arguments| restarts_by_itself(number, arguments, |fd| fd == 4);
        assert!(
            restarts(libc::SYS_read, [4, 0, 0, 0, 0, 0]) && !restarts(libc::SYS_read, [5, 0, 0, 0, 0, 0])
        );
        assert!(!restarts(libc::SYS_write, [4, 0, 0, 0, 0, 0]));
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
