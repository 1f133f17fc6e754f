//! System calls that a stop has interrupted, and how they are put back: the thread makes the call again.

use super::calls;
use super::ptrace;
use stackglass_procfs::Status;
use stackglass_unwind::call_site::SYSCALL;
use stackglass_unwind::memory::read_process;

/// Codes by which the kernel marks a call that it makes again (include/linux/errno.h): ERESTARTSYS, ERESTARTNOINTR,
/// ERESTARTNOHAND and ERESTART_RESTARTBLOCK.
const ERESTART: [i64; 4] = [-512, -513, -514, ERESTART_RESTARTBLOCK];
/// The kernel continues the call by restart_syscall(2), with what is left of its time-out.
pub(crate) const ERESTART_RESTARTBLOCK: i64 = -516;

/// How an interrupted call ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum InterruptedCall {
    /// The kernel makes the call again: the program sees nothing.
    Restarted,
    /// The call returns EINTR to the program.
    Failed,
    /// The kernel continues the call by restart_syscall(2), which a seccomp filter of the thread may forbid.
    Confined,
}

impl InterruptedCall {
    /// The call in which the stopped thread `tid` slept, if there is one.
    pub(crate) fn from_registers(tid: u32, registers: &libc::user_regs_struct) -> Option<InterruptedCall> {
        if (registers.orig_rax as i64) < 0 {
            return None;
        }
        match registers.rax as i64 {
            ERESTART_RESTARTBLOCK if is_confined(tid) => Some(InterruptedCall::Confined),
            code if ERESTART.contains(&code) => Some(InterruptedCall::Restarted),
            code if code == -i64::from(libc::EINTR) => Some(InterruptedCall::Failed),
            _ => None,
        }
    }
}

/// Whether seccomp confines the calls of a thread.
pub(crate) fn is_confined(tid: u32) -> bool {
    Status::read(tid).is_none_or(|status| status.confined)
}

/// How far a thread is that makes a call again from its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RepeatedCall {
    /// It will enter the call.
    Before,
    /// It is inside.
    Inside,
}

impl RepeatedCall {
    /// Steps the thread back to the start of a call that a stop has cut short, if the call may be made twice: it reads what has
    /// neither an order nor an end, as /dev/urandom and /dev/zero. If this process is killed meanwhile, the call returns
    /// its own result. No other call can be completed so: a rest of a `write` would be taken for the whole.
    ///
    /// The thread continues to the start of the call.
    pub(crate) fn begin(memory: u32, tid: u32, registers: &libc::user_regs_struct) -> Option<RepeatedCall> {
        let is_endless = match registers.orig_rax as i64 {
            libc::SYS_getrandom => true,
            libc::SYS_read => is_endless(tid, registers.rdi),
            _ => false,
        };
        let at = registers.rip.wrapping_sub(SYSCALL.len() as u64);
        let mut bytes = [0; SYSCALL.len()];
        if !is_endless || read_process(memory as i32, at, &mut bytes) != bytes.len() || bytes != SYSCALL {
            return None;
        }
        let again =
            libc::user_regs_struct { rax: registers.orig_rax, rip: at, orig_rax: u64::MAX, ..*registers };
        ptrace::set_options(tid, libc::PTRACE_O_TRACESYSGOOD).ok()?;
        ptrace::set_registers(tid, again).ok()?;
        let _ = ptrace::continue_to_call(tid, 0);
        Some(RepeatedCall::Before)
    }

    /// The thread has entered or left the call, and continues. `None` if it has left.
    pub(crate) fn advance(self, tid: u32) -> Option<RepeatedCall> {
        match self {
            RepeatedCall::Before => {
                let _ = ptrace::continue_to_call(tid, 0);
                Some(RepeatedCall::Inside)
            }
            RepeatedCall::Inside => {
                let _ = ptrace::resume(tid, 0);
                None
            }
        }
    }
}

/// Whether a descriptor of a thread is /dev/zero, /dev/random or /dev/urandom.
fn is_endless(tid: u32, descriptor: u64) -> bool {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    std::fs::metadata(format!("/proc/{tid}/fd/{descriptor}")).is_ok_and(|file| {
        let number = (libc::major(file.rdev()), libc::minor(file.rdev()));
        file.file_type().is_char_device() && matches!(number, (1, 5 | 8 | 9))
    })
}

/// A thread that was stepped back to the `syscall` instruction of its interrupted call, as if it had stopped just
/// before the call. A time-out begins anew.
#[derive(Clone, Copy)]
pub(crate) struct PutBack {
    /// Its registers as the call had left them.
    before: libc::user_regs_struct,
}

impl PutBack {
    /// Steps the thread back, if only the stop can have interrupted the call and the call has done nothing yet. Its memory is
    /// read by the thread `memory`.
    pub(crate) fn new(memory: u32, tid: u32, registers: &libc::user_regs_struct) -> Option<PutBack> {
        let at = registers.rip.wrapping_sub(SYSCALL.len() as u64);
        let mut bytes = [0; SYSCALL.len()];
        let read = read_process(memory as i32, at, &mut bytes);
        // A call that the kernel would continue has done nothing yet.
        let may_be_repeated = registers.rax as i64 == ERESTART_RESTARTBLOCK
            || calls::may_be_repeated(registers.orig_rax as i64);
        if read != bytes.len() || bytes != SYSCALL || !may_be_repeated {
            return None;
        }
        // A signal whose handler is about to run has interrupted the call as well.
        let status = Status::read(tid)?;
        if status.pending & !status.blocked & status.caught != 0 {
            return None;
        }
        let changed =
            libc::user_regs_struct { rax: registers.orig_rax, rip: at, orig_rax: u64::MAX, ..*registers };
        ptrace::set_registers(tid, changed).ok().map(|()| PutBack { before: *registers })
    }

    /// Whether a stopped thread with these registers has not repeated its call yet.
    pub(crate) fn is_there(self, registers: &libc::user_regs_struct) -> bool {
        registers.rip == self.before.rip.wrapping_sub(SYSCALL.len() as u64)
            && registers.rsp == self.before.rsp
            && registers.orig_rax == u64::MAX
    }

    /// Undoes the step, because a signal with a handler reaches the thread before the thread repeats its call. The signal
    /// came just after the check for pending signals. It would have ended the call, so the call returns EINTR again.
    pub(crate) fn undo(self, tid: u32, signal: i32) {
        let Ok(now) = ptrace::registers(tid) else { return };
        let is_still_there = self.is_there(&now);
        let has_handler = |status: Status| status.caught >> (signal - 1).clamp(0, 63) & 1 == 1;
        if is_still_there && Status::read(tid).is_some_and(has_handler) {
            let _ = ptrace::set_registers(tid, self.before);
        }
    }
}
