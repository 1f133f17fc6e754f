//! Which system calls may be interrupted by a stop, and which may be repeated.
//!
//! A stop ends the wait of a thread that sleeps in a system call, as a signal does, but no handler runs. The kernel
//! restarts most calls, and the program does not notice (signal(7); ERESTARTSYS, ERESTARTNOHAND and
//! ERESTART_RESTARTBLOCK of include/linux/errno.h). Other calls return EINTR or less than requested. A sleeping
//! thread is stopped only in a call that is restarted ([`is_resumed`]). A thread that falls asleep just before the
//! stop is put back into its call if that call may be repeated ([`may_be_repeated`]).
//!
//! `stackglass-host` has the same two tables for signals (`restart.rs`), with different entries. A handler runs there, so
//! fewer calls resume by themselves. The handler does not know the number of the call for certain, but infers it from
//! the instructions, so its second list is shorter: it lacks `write`, `flock`, `fcntl` and some rare waits.

use stackglass_proc_text::Call;

/// Whether the kernel restarts the call after a stop, so that the program does not notice.
///
/// Not restarted are, among others: `epoll_wait`, `semop`, `rt_sigtimedwait`, `io_getevents`, `io_uring_enter` (they
/// return EINTR); `write` and `send` (they return what they have written so far); `connect` (a second call means
/// something else).
pub fn is_resumed(call: &Call) -> bool {
    const FILE_LOCK: u64 = libc::F_SETLKW as u64;
    const OPEN_FILE_LOCK: u64 = libc::F_OFD_SETLKW as u64;
    /// FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME.
    const FUTEX_FLAGS: u64 = 128 | 256;
    /// FUTEX_WAIT, FUTEX_LOCK_PI, FUTEX_WAIT_BITSET, FUTEX_LOCK_PI2.
    const FUTEX_WAITS: [u64; 4] = [0, 6, 9, 13];
    const WAIT_FOR_ALL: u64 = libc::MSG_WAITALL as u64;
    let argument = |n: usize| call.arguments[n];
    match call.number {
        // They return what is available and sleep only while nothing is. A socket with a time-out returns EINTR, and
        // its call is repeated.
        libc::SYS_read | libc::SYS_readv | libc::SYS_accept | libc::SYS_accept4 => true,
        // A part of the data may have arrived.
        libc::SYS_recvfrom => argument(3) & WAIT_FOR_ALL == 0,
        libc::SYS_recvmsg => argument(2) & WAIT_FOR_ALL == 0,
        // These calls have no effect before they return.
        libc::SYS_wait4 | libc::SYS_waitid | libc::SYS_flock => true,
        libc::SYS_fcntl => matches!(argument(1), FILE_LOCK | OPEN_FILE_LOCK),
        // With a time-out, by restart_syscall(2), which knows the end of it.
        libc::SYS_futex => FUTEX_WAITS.contains(&(argument(1) & !FUTEX_FLAGS)),
        libc::SYS_nanosleep | libc::SYS_clock_nanosleep | libc::SYS_poll | libc::SYS_restart_syscall => true,
        // ERESTARTNOHAND: EINTR if a handler runs, otherwise restarted.
        libc::SYS_pause | libc::SYS_rt_sigsuspend => true,
        // The same, but EINTR if the remaining time cannot be written back.
        libc::SYS_ppoll => argument(2) == 0,
        libc::SYS_select | libc::SYS_pselect6 => argument(4) == 0,
        _ => false,
    }
}

/// Whether a call that has returned EINTR has had no effect, so that it may be repeated.
///
/// Never `close`, which has closed the descriptor, and `connect`, which continues in the background.
pub fn may_be_repeated(number: i64) -> bool {
    const IO_PGETEVENTS: i64 = 333;
    matches!(
        number,
        libc::SYS_epoll_wait
            | libc::SYS_epoll_pwait
            | libc::SYS_epoll_pwait2
            | libc::SYS_semop
            | libc::SYS_semtimedop
            | libc::SYS_rt_sigtimedwait
            | libc::SYS_io_getevents
            // It returns the number of submitted entries instead, if there were any.
            | libc::SYS_io_uring_enter
            | IO_PGETEVENTS
            | libc::SYS_msgsnd
            | libc::SYS_msgrcv
            | libc::SYS_mq_timedsend
            | libc::SYS_mq_timedreceive
            | libc::SYS_select
            | libc::SYS_pselect6
            | libc::SYS_ppoll
            | libc::SYS_read
            | libc::SYS_readv
            | libc::SYS_write
            | libc::SYS_writev
            | libc::SYS_accept
            | libc::SYS_accept4
            | libc::SYS_recvfrom
            | libc::SYS_recvmsg
            | libc::SYS_sendto
            | libc::SYS_sendmsg
            | libc::SYS_flock
            | libc::SYS_fcntl
            | libc::SYS_futex
    )
}

/// Whether a stop may be the reason for the result of the call in which it found a thread: the call returns less than was
/// asked for, or EINTR (`has_failed`), to the program. Calls whose arguments do not tell what was asked for count.
pub fn may_be_cut_short(registers: &libc::user_regs_struct, has_failed: bool) -> bool {
    if (registers.orig_rax as i64) < 0 {
        return false;
    }
    let asked = match registers.orig_rax as i64 {
        libc::SYS_read | libc::SYS_pread64 | libc::SYS_write | libc::SYS_pwrite64 => registers.rdx,
        libc::SYS_recvfrom | libc::SYS_sendto => registers.rdx,
        libc::SYS_getrandom => registers.rsi,
        libc::SYS_sendfile => registers.r10,
        libc::SYS_splice | libc::SYS_copy_file_range => registers.r8,
        libc::SYS_tee => registers.rdx,
        libc::SYS_readv
        | libc::SYS_writev
        | libc::SYS_preadv
        | libc::SYS_pwritev
        | libc::SYS_preadv2
        | libc::SYS_pwritev2
        | libc::SYS_recvmsg
        | libc::SYS_sendmsg
        | libc::SYS_vmsplice
        | libc::SYS_io_uring_enter
        | libc::SYS_process_vm_readv
        | libc::SYS_process_vm_writev => u64::MAX,
        _ => 0,
    };
    // A result of 0 is the end of a file.
    let result = registers.rax as i64;
    has_failed || result > 0 && (result as u64) < asked
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resumed(number: i64, arguments: [u64; 6]) -> bool {
        is_resumed(&Call { number, arguments })
    }

    #[test]
    fn calls_that_return_eintr_are_left_alone() {
        for number in [
            libc::SYS_epoll_wait,
            libc::SYS_epoll_pwait,
            libc::SYS_semop,
            libc::SYS_rt_sigtimedwait,
            libc::SYS_io_getevents,
            libc::SYS_write,
            libc::SYS_connect,
            libc::SYS_close,
            9999,
        ] {
            assert!(!resumed(number, [0; 6]), "{number}");
        }
        assert!(!may_be_repeated(libc::SYS_close) && !may_be_repeated(libc::SYS_connect));
    }

    #[test]
    fn a_call_that_returns_less_than_was_asked_for_may_be_cut_short() {
        // SAFETY: a struct of integers.
        let none: libc::user_regs_struct = unsafe { std::mem::zeroed() };
        let read = |result: i64, asked| libc::user_regs_struct {
            orig_rax: libc::SYS_read as u64,
            rax: result as u64,
            rdx: asked,
            ..none
        };
        assert!(may_be_cut_short(&read(5, 10), false) && may_be_cut_short(&read(-4, 10), true));
        assert!(!may_be_cut_short(&read(10, 10), false) && !may_be_cut_short(&read(0, 10), false));
        let user_code = libc::user_regs_struct { orig_rax: u64::MAX, ..read(5, 10) };
        assert!(!may_be_cut_short(&user_code, false));
    }

    #[test]
    fn what_a_call_was_given_decides() {
        assert!(
            resumed(libc::SYS_futex, [1, 128, 0, 9, 0, 0]) && resumed(libc::SYS_futex, [1, 393, 0, 0, 0, 0])
        );
        assert!(!resumed(libc::SYS_futex, [1, 128 | 11, 0, 0, 0, 0]), "FUTEX_WAIT_REQUEUE_PI");
        assert!(
            resumed(libc::SYS_fcntl, [4, 7, 0, 0, 0, 0]) && !resumed(libc::SYS_fcntl, [4, 6, 0, 0, 0, 0])
        );
        assert!(resumed(libc::SYS_recvfrom, [0; 6]) && !resumed(libc::SYS_recvfrom, [0, 0, 0, 0x100, 0, 0]));
        assert!(
            resumed(libc::SYS_ppoll, [1, 1, 0, 9, 8, 0]) && !resumed(libc::SYS_ppoll, [1, 1, 9, 9, 8, 0])
        );
    }
}
