//! The few ptrace(2) requests that are needed, and what wait(2) answers.
//!
//! A thread is *seized*: that neither stops it nor sends it anything. It runs on by itself when the
//! thread that traces it is gone, by whatever end: the kernel lets go of its tracees. All calls must come
//! from the thread that seized.

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::ptr::null_mut;

/// Number of the event that tells a stop which no signal caused (`PTRACE_EVENT_STOP`).
const EVENT_STOP: i32 = 128;
/// The set of registers that PTRACE_GETREGSET is asked for (`NT_PRSTATUS`).
const NT_PRSTATUS: usize = 1;

/// What became of a traced thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum News {
    /// It stands because it was asked to, or goes on after a stop of the whole process.
    Stands,
    /// A signal is about to reach it, which it gets when it is resumed with it.
    Signal(i32),
    /// The whole process was stopped by a signal (Ctrl-Z); it has to stay so.
    ProcessStopped,
    /// It has ended.
    Ended,
}

/// Begins to trace a thread without stopping it.
///
/// # Errors
/// EPERM where that is not allowed or somebody else traces it, ESRCH when it is gone.
pub fn seize(tid: u32) -> io::Result<()> {
    request(libc::PTRACE_SEIZE, tid, 0, 0)
}

/// Asks a seized thread to stand; it answers by [`news`].
///
/// # Errors
/// ESRCH when it is gone or not seized.
pub fn interrupt(tid: u32) -> io::Result<()> {
    request(libc::PTRACE_INTERRUPT, tid, 0, 0)
}

/// Lets a thread that stands go on, with a signal or 0.
///
/// # Errors
/// ESRCH when it does not stand or was killed.
pub fn resume(tid: u32, signal: i32) -> io::Result<()> {
    request(libc::PTRACE_CONT, tid, 0, signal as usize)
}

/// Leaves a thread in the stop of its process, to be told when that ends.
///
/// # Errors
/// ESRCH when it does not stand.
pub fn leave_stopped(tid: u32) -> io::Result<()> {
    request(libc::PTRACE_LISTEN, tid, 0, 0)
}

/// Registers of a thread that stands.
///
/// # Errors
/// ESRCH when it does not stand or was killed; EINVAL when it is not a 64-bit one now.
pub fn registers(tid: u32) -> io::Result<libc::user_regs_struct> {
    let mut registers = MaybeUninit::<libc::user_regs_struct>::zeroed();
    let mut part =
        libc::iovec { iov_base: registers.as_mut_ptr().cast(), iov_len: size_of::<libc::user_regs_struct>() };
    request(libc::PTRACE_GETREGSET, tid, NT_PRSTATUS, (&raw mut part).addr())?;
    if part.iov_len != size_of::<libc::user_regs_struct>() {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    // SAFETY: numbers only, zeroed before and then filled by the kernel.
    Ok(unsafe { registers.assume_init() })
}

/// Replaces the registers of a thread that stands.
///
/// # Errors
/// ESRCH when it does not stand or was killed.
pub fn set_registers(tid: u32, mut registers: libc::user_regs_struct) -> io::Result<()> {
    let mut part =
        libc::iovec { iov_base: (&raw mut registers).cast(), iov_len: size_of::<libc::user_regs_struct>() };
    request(libc::PTRACE_SETREGSET, tid, NT_PRSTATUS, (&raw mut part).addr())
}

/// What a seized thread has to tell, without waiting; `None`: nothing.
pub fn news(tid: u32) -> Option<News> {
    let mut status = 0;
    // SAFETY: the kernel writes one integer.
    let got = unsafe { libc::waitpid(tid as libc::pid_t, &mut status, libc::__WALL | libc::WNOHANG) };
    match got {
        0 => None,
        // Not ours any more: it ended with an exec of another thread, or was never there.
        ..0 => Some(News::Ended),
        _ if !libc::WIFSTOPPED(status) => Some(News::Ended),
        _ => Some(stop(status >> 16, libc::WSTOPSIG(status))),
    }
}

/// The same of a program that this process has started itself: its end stays to be asked for by whoever wants its
/// exit status, and its id is nobody else's until then.
pub fn news_of_own_child(tid: u32) -> Option<News> {
    // Looked at first: a stop is taken, an end is left. Without WSTOPPED the kernel would tell of stops as well.
    match wait_for(tid, libc::WSTOPPED | libc::WEXITED | libc::WNOWAIT) {
        Ok(None) => None,
        Ok(Some((libc::CLD_TRAPPED | libc::CLD_STOPPED, _))) => match wait_for(tid, libc::WSTOPPED) {
            Ok(Some((_, told))) => Some(stop(told >> 8, told & 0xff)),
            // Killed between the two.
            _ => None,
        },
        _ => Some(News::Ended),
    }
}

/// Reaps a traced thread if it has ended; its stops are left to the thread that traces it.
pub fn hear_end(tid: u32) {
    let _ = wait_for(tid, libc::WEXITED);
}

/// What a stop with this event and signal means.
fn stop(event: i32, signal: i32) -> News {
    match (event, signal) {
        (EVENT_STOP, libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU) => News::ProcessStopped,
        (0, signal) => News::Signal(signal),
        _ => News::Stands,
    }
}

/// `si_code` and `si_status` of what waitid(2) has to tell, without waiting.
fn wait_for(tid: u32, which: i32) -> io::Result<Option<(i32, i32)>> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    // SAFETY: the kernel fills the live struct, for which zeros are a value; both fields are those of a SIGCHLD.
    unsafe {
        if libc::waitid(libc::P_PID, tid, info.as_mut_ptr(), which | libc::WNOHANG | libc::__WALL) != 0 {
            return Err(io::Error::last_os_error());
        }
        let info = info.assume_init();
        Ok((info.si_pid() != 0).then(|| (info.si_code, info.si_status())))
    }
}

fn request(what: u32, tid: u32, address: usize, data: usize) -> io::Result<()> {
    // SAFETY: requests that change or read a tracee; those that write to our memory are given the address
    // of a live iovec by their callers.
    let answer = unsafe {
        libc::ptrace(
            what,
            tid as libc::pid_t,
            null_mut::<u8>().wrapping_add(address),
            null_mut::<u8>().wrapping_add(data),
        )
    };
    if answer == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
