//! The ptrace(2) requests that are needed, and the answers of wait(2).
//!
//! A thread is *seized*, which neither stops it nor sends it a signal. When the tracing thread ends, for whatever
//! reason, the kernel detaches its tracees and they continue. All calls must come from the thread that seized.

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::ptr::null_mut;

/// Number of the event of a stop that was not caused by a signal (`PTRACE_EVENT_STOP`).
const EVENT_STOP: i32 = 128;
/// The register set that PTRACE_GETREGSET reads (`NT_PRSTATUS`).
const NT_PRSTATUS: usize = 1;

/// A change of state of a traced thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceReport {
    /// It has stopped on request, or it continues after a stop of the whole process.
    Stopped,
    /// It has stopped because a signal is about to be delivered. The signal is delivered if the thread is resumed
    /// with it.
    Signal(i32),
    /// The whole process was stopped by a signal (Ctrl-Z) and must stay stopped.
    GroupStopped,
    /// It has ended.
    Ended,
}

/// Starts to trace a thread without stopping it.
///
/// # Errors
/// EPERM if that is not allowed or another process traces it, ESRCH if it has ended.
pub fn seize(tid: u32) -> io::Result<()> {
    request(libc::PTRACE_SEIZE, tid, 0, 0)
}

/// Requests that a seized thread stops; [`report`] reports the stop.
///
/// # Errors
/// ESRCH if it has ended or is not seized.
pub fn interrupt(tid: u32) -> io::Result<()> {
    request(libc::PTRACE_INTERRUPT, tid, 0, 0)
}

/// Resumes a stopped thread, with a signal or 0.
///
/// # Errors
/// ESRCH if it is not stopped or was killed.
pub fn resume(tid: u32, signal: i32) -> io::Result<()> {
    request(libc::PTRACE_CONT, tid, 0, signal as usize)
}

/// Leaves a thread in the stop of its process. [`report`] reports the end of that stop.
///
/// # Errors
/// ESRCH if it is not stopped.
pub fn leave_stopped(tid: u32) -> io::Result<()> {
    request(libc::PTRACE_LISTEN, tid, 0, 0)
}

/// Registers of a stopped thread.
///
/// # Errors
/// ESRCH if it is not stopped or was killed, EINVAL if it currently runs 32-bit code.
pub fn registers(tid: u32) -> io::Result<libc::user_regs_struct> {
    let mut registers = MaybeUninit::<libc::user_regs_struct>::zeroed();
    let mut part =
        libc::iovec { iov_base: registers.as_mut_ptr().cast(), iov_len: size_of::<libc::user_regs_struct>() };
    request(libc::PTRACE_GETREGSET, tid, NT_PRSTATUS, (&raw mut part).addr())?;
    if part.iov_len != size_of::<libc::user_regs_struct>() {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    // SAFETY: a struct of integers, zeroed and then filled by the kernel.
    Ok(unsafe { registers.assume_init() })
}

/// Replaces the registers of a stopped thread.
///
/// # Errors
/// ESRCH if it is not stopped or was killed.
pub fn set_registers(tid: u32, mut registers: libc::user_regs_struct) -> io::Result<()> {
    let mut part =
        libc::iovec { iov_base: (&raw mut registers).cast(), iov_len: size_of::<libc::user_regs_struct>() };
    request(libc::PTRACE_SETREGSET, tid, NT_PRSTATUS, (&raw mut part).addr())
}

/// The next change of state of a seized thread, without waiting; `None` if there is none.
pub fn report(tid: u32) -> Option<TraceReport> {
    let mut status = 0;
    // SAFETY: the kernel writes one integer.
    let got = unsafe { libc::waitpid(tid as libc::pid_t, &mut status, libc::__WALL | libc::WNOHANG) };
    match got {
        0 => None,
        // No longer a tracee: it ended with an exec of another thread, or never existed.
        ..0 => Some(TraceReport::Ended),
        _ if !libc::WIFSTOPPED(status) => Some(TraceReport::Ended),
        _ => Some(stop(status >> 16, libc::WSTOPSIG(status))),
    }
}

/// Like [`report`], for a program that this process has started. Its exit status is not consumed, so its process id
/// stays reserved.
pub fn report_of_own_child(tid: u32) -> Option<TraceReport> {
    // Peeks first, so that a stop is consumed and an end is not. Without WSTOPPED, stops would be reported as well.
    match wait_for(tid, libc::WSTOPPED | libc::WEXITED | libc::WNOWAIT) {
        Ok(None) => None,
        Ok(Some((libc::CLD_TRAPPED | libc::CLD_STOPPED, _))) => match wait_for(tid, libc::WSTOPPED) {
            Ok(Some((_, status))) => Some(stop(status >> 8, status & 0xff)),
            // It was killed between the two calls.
            _ => None,
        },
        _ => Some(TraceReport::Ended),
    }
}

/// Reaps a traced thread if it has ended. Its stops are left to the thread that traces it.
pub fn reap_ended(tid: u32) {
    let _ = wait_for(tid, libc::WEXITED);
}

/// The meaning of a stop with this event and signal.
fn stop(event: i32, signal: i32) -> TraceReport {
    match (event, signal) {
        (EVENT_STOP, libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU) => {
            TraceReport::GroupStopped
        }
        (0, signal) => TraceReport::Signal(signal),
        _ => TraceReport::Stopped,
    }
}

/// `si_code` and `si_status` from waitid(2), without waiting.
fn wait_for(tid: u32, which: i32) -> io::Result<Option<(i32, i32)>> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    // SAFETY: the kernel fills the live struct, for which all zeros are a value; both fields belong to SIGCHLD.
    unsafe {
        if libc::waitid(libc::P_PID, tid, info.as_mut_ptr(), which | libc::WNOHANG | libc::__WALL) != 0 {
            return Err(io::Error::last_os_error());
        }
        let info = info.assume_init();
        Ok((info.si_pid() != 0).then(|| (info.si_code, info.si_status())))
    }
}

fn request(what: u32, tid: u32, address: usize, data: usize) -> io::Result<()> {
    // SAFETY: the requests change or read a tracee. For those that write to memory of this process, callers pass the
    // address of a live iovec.
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
