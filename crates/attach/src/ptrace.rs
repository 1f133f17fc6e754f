//! The ptrace(2) requests that are needed, and the answers of wait(2).
//!
//! A thread is *seized*, which neither stops it nor sends it a signal. When the tracing thread ends, for whatever
//! reason, the kernel detaches its tracees and they continue. All calls must come from the thread that seized.

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::ptr::null_mut;

/// Number of the event of a stop that was not caused by a signal (`PTRACE_EVENT_STOP`).
const EVENT_STOP: i32 = 128;
/// The set of general registers (`NT_PRSTATUS`).
const NT_PRSTATUS: usize = 1;
/// The set of all other registers, as `xsave` stores them (`NT_X86_XSTATE`).
const NT_X86_XSTATE: usize = 0x202;

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
    // The kernel reports stops of tracees whatever is asked for, so the first call only peeks.
    if let Ok(Some((libc::CLD_EXITED | libc::CLD_KILLED | libc::CLD_DUMPED, _))) =
        wait_for(tid, libc::WEXITED | libc::WNOWAIT)
    {
        let _ = wait_for(tid, libc::WEXITED);
    }
}

/// Waits for the end of a task that was killed, and reaps it.
pub fn reap(tid: u32) {
    let mut status = 0;
    loop {
        // SAFETY: the kernel writes one integer.
        let got = unsafe { libc::waitpid(tid as libc::pid_t, &mut status, libc::__WALL) };
        let is_interrupted = got < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::EINTR);
        // Stops that came before its end are reported first.
        if !is_interrupted && (got < 0 || !libc::WIFSTOPPED(status)) {
            return;
        }
    }
}

/// The meaning of a stop with this event and signal.
fn stop(event: i32, signal: i32) -> TraceReport {
    match (event, signal) {
        (EVENT_STOP, libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU) => {
            TraceReport::GroupStopped
        }
        // The thread enters or leaves a system call ([`continue_to_call`]).
        (0, signal) if signal == libc::SIGTRAP | 0x80 => TraceReport::Stopped,
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

/// A stop of a traced thread, as the kernel reports it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stop {
    /// 0 for a signal or a system call, otherwise a `PTRACE_EVENT_*`.
    pub event: i32,
    /// The signal.
    pub signal: i32,
}

impl Stop {
    /// The thread stopped on request, or with its whole process.
    pub fn is_requested(self) -> bool {
        self.event == EVENT_STOP
    }

    /// The thread enters or leaves a system call ([`continue_to_call`], with `PTRACE_O_TRACESYSGOOD`).
    pub fn is_at_call(self) -> bool {
        self.event == 0 && self.signal == libc::SIGTRAP | 0x80
    }
}

/// The next stop of a traced thread, without waiting; `None` if there is none. The end of the thread is not consumed.
///
/// # Errors
/// If the thread has ended, or is not traced.
pub fn next_stop(tid: u32) -> io::Result<Option<Stop>> {
    // Peeks first, as in `report_of_own_child`: the kernel reports stops of tracees whatever is asked for.
    match wait_for(tid, libc::WSTOPPED | libc::WEXITED | libc::WNOWAIT)? {
        None => Ok(None),
        Some((libc::CLD_TRAPPED | libc::CLD_STOPPED, _)) => {
            let stop = wait_for(tid, libc::WSTOPPED)?;
            Ok(stop.map(|(_, status)| Stop { event: status >> 8, signal: status & 0xff }))
        }
        Some(_) => Err(io::Error::from_raw_os_error(libc::ESRCH)),
    }
}

/// Ends tracing of a stopped thread, which continues.
///
/// # Errors
/// ESRCH if it is not stopped or was killed.
pub fn detach(tid: u32) -> io::Result<()> {
    request(libc::PTRACE_DETACH, tid, 0, 0)
}

/// The `siginfo_t` of the signal that is about to be delivered to a stopped thread.
///
/// # Errors
/// ESRCH if it is not stopped or was killed, EINVAL if it has stopped for another reason.
pub fn signal_info(tid: u32) -> io::Result<[u8; 128]> {
    let mut info = [0u8; 128];
    request(libc::PTRACE_GETSIGINFO, tid, 0, info.as_mut_ptr().addr())?;
    Ok(info)
}

/// Starts to trace a task that ends with the calling thread.
///
/// # Errors
/// As [`seize`].
pub fn seize_until_exit(tid: u32) -> io::Result<()> {
    request(libc::PTRACE_SEIZE, tid, 0, libc::PTRACE_O_EXITKILL as usize)
}

/// Sets the options (`PTRACE_O_*`) of a stopped thread.
///
/// # Errors
/// ESRCH if it is not stopped or was killed, EPERM or EINVAL if an option is not allowed.
pub fn set_options(tid: u32, options: i32) -> io::Result<()> {
    request(libc::PTRACE_SETOPTIONS, tid, 0, options as usize)
}

/// Resumes a stopped thread, with a signal or 0, until it enters or leaves a system call.
///
/// # Errors
/// ESRCH if it is not stopped or was killed.
pub fn continue_to_call(tid: u32, signal: i32) -> io::Result<()> {
    request(libc::PTRACE_SYSCALL, tid, 0, signal as usize)
}

/// The number that belongs to the event of a stop: for a clone, the id of the new task.
///
/// # Errors
/// ESRCH if it is not stopped or was killed.
pub fn event_message(tid: u32) -> io::Result<u64> {
    let mut message: libc::c_ulong = 0;
    request(libc::PTRACE_GETEVENTMSG, tid, 0, (&raw mut message).addr())?;
    Ok(message)
}

/// The blocked signals of a stopped thread; in a call such as `sigsuspend`, those that it blocks afterwards.
///
/// # Errors
/// ESRCH if it is not stopped or was killed.
pub fn blocked_signals(tid: u32) -> io::Result<u64> {
    let mut mask = 0u64;
    request(libc::PTRACE_GETSIGMASK, tid, size_of::<u64>(), (&raw mut mask).addr())?;
    Ok(mask)
}

/// Sets the blocked signals of a stopped thread.
///
/// # Errors
/// ESRCH if it is not stopped or was killed.
pub fn block_signals(tid: u32, mut mask: u64) -> io::Result<()> {
    request(libc::PTRACE_SETSIGMASK, tid, size_of::<u64>(), (&raw mut mask).addr())
}

/// Whether and how a thread redirects its own calls to SIGSYS (`struct ptrace_sud_config`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct UserDispatch {
    /// 0 if it does not.
    pub mode: u64,
    /// Address of the byte that says whether calls are redirected now; 0 if they always are.
    pub selector: u64,
    /// First address of the instructions that are exempt.
    pub offset: u64,
    /// Bytes from there on.
    pub length: u64,
}

/// How a stopped thread redirects its own calls.
///
/// # Errors
/// ESRCH if it is not stopped or was killed, EIO on kernels before 6.4, EINVAL if the kernel has no such redirection.
pub fn user_dispatch(tid: u32) -> io::Result<UserDispatch> {
    /// `PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG` (include/uapi/linux/ptrace.h).
    const GET_CONFIG: u32 = 0x4211;
    let mut config = UserDispatch::default();
    request(GET_CONFIG, tid, size_of::<UserDispatch>(), (&raw mut config).addr())?;
    Ok(config)
}

/// Whether signals are pending for a stopped thread or for its process, blocked ones included.
pub fn has_pending_signals(tid: u32) -> bool {
    /// `PTRACE_PEEKSIGINFO_SHARED`.
    const OF_PROCESS: u32 = 1;
    /// `struct ptrace_peeksiginfo_args`.
    #[repr(C)]
    struct Range {
        from: u64,
        flags: u32,
        count: i32,
    }
    [0, OF_PROCESS].into_iter().any(|flags| {
        let mut range = Range { from: 0, flags, count: 1 };
        let mut info = MaybeUninit::<libc::siginfo_t>::uninit();
        // SAFETY: the kernel reads the first struct and writes at most one element to the second; both are live.
        let found = unsafe {
            libc::ptrace(
                libc::PTRACE_PEEKSIGINFO,
                tid as libc::pid_t,
                (&raw mut range).cast::<u8>(),
                info.as_mut_ptr().cast::<u8>(),
            )
        };
        found != 0
    })
}

/// Vector and floating-point registers of a stopped thread, as `xsave` stores them; empty if the kernel does not tell.
pub fn extended_state(tid: u32) -> Vec<u8> {
    // AVX-512 and AMX take 11 KB.
    let mut state = vec![0u8; 32 << 10];
    let mut part = libc::iovec { iov_base: state.as_mut_ptr().cast(), iov_len: state.len() };
    match request(libc::PTRACE_GETREGSET, tid, NT_X86_XSTATE, (&raw mut part).addr()) {
        Ok(()) => state.truncate(part.iov_len),
        Err(_) => state.clear(),
    }
    state
}

fn request(what: u32, tid: u32, address: usize, data: usize) -> io::Result<()> {
    // SAFETY: the requests change or read a tracee. For those that write to memory of this process, callers pass the
    // address of a live iovec, struct of integers or integer.
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
