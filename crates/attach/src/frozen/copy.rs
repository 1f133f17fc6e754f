//! Makes the copy by an injected clone(2), and ends it.
//!
//! The copy has no descriptors and no mapped files ([`copy_resources`](super::copy_resources)): what the program closes is closed.
//! It has no exit signal, so the program gets no SIGCHLD and does not find it by wait(2). Where orphans go to init, a short-lived task
//! creates the copy, which becomes init's child, and init reaps it. A process that adopts orphans itself is the parent of its copy, and must be made to
//! reap it ([`reap`]). So is one in a pid namespace of its own: the first process there may be an application, which would get a
//! SIGCHLD and find an unknown child, or never wait for it.

use super::Mapping;
use super::code::BorrowedCode;
use super::copy_resources;
use super::error::FreezeError;
use super::inject::{Borrowed, CallEnd, Injection};
use super::traced::StoppedThreads;
use crate::ptrace;
use stackglass_procfs::status::namespace_pids;
use std::fs;
use std::io;
use std::time::Duration;

/// `PR_GET_CHILD_SUBREAPER` of prctl(2).
const GET_CHILD_SUBREAPER: u64 = 37;

/// A copy: a task that is stopped before its first instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Copy {
    /// Its process id.
    pub(super) pid: u32,
    /// Its process id as the program knows it.
    pub(super) inner_pid: u32,
    /// It is a child of the program, which must reap it.
    pub(super) is_child: bool,
    /// Seccomp confines its calls, so it can make none without the tracer that has made it.
    pub(super) is_confined: bool,
    /// The frame that ends it.
    end: u64,
}

/// A copy, and the bytes of its stack that the making of it has overwritten.
pub(super) struct Made {
    pub(super) copy: Copy,
    /// The mappings of the process. The copy has given some of them back.
    pub(super) mappings: Vec<Mapping>,
    pub(super) overwritten: (u64, Vec<u8>),
}

/// Copies a stopped process.
///
/// # Errors
/// If no thread can make the call, or the call fails. The process is as it was.
pub(super) fn make(borrowed: &Borrowed<'_>, stopped: &StoppedThreads<'_>) -> Result<Made, FreezeError> {
    let mut injection = Injection::prepare(borrowed, stopped)?;
    let made = make_by(borrowed, &mut injection).and_then(|copy| {
        let mappings = copy_resources::give_back(&mut injection, copy.pid).map_err(FreezeError::cannot_read);
        match mappings {
            Ok(mappings) if !injection.has_released_others => Ok((copy, mappings)),
            failed => {
                end(copy.pid);
                if copy.is_child {
                    let _ = wait_for_child(&mut injection, copy.inner_pid);
                }
                Err(failed.err().unwrap_or(FreezeError::Stuck { pid: borrowed.pid }))
            }
        }
    });
    if let Ok((copy, _)) = &made {
        // Injected calls change the options.
        protect(copy.pid);
    }
    let overwritten = injection.overwritten();
    let overwritten = (overwritten.0, overwritten.1.to_vec());
    injection.restore();
    made.map(|(copy, mappings)| Made { copy, mappings, overwritten })
}

fn make_by(borrowed: &Borrowed<'_>, injection: &mut Injection<'_>) -> Result<Copy, FreezeError> {
    let (is_confined, end_frame) = (injection.is_confined, injection.end);
    if must_reap(borrowed, injection)? {
        let end = injection.clone_task(libc::CLONE_FILES)?;
        let pid = created(borrowed, end)?;
        return Ok(Copy {
            pid,
            inner_pid: inner_pid(borrowed.pid, pid),
            is_child: true,
            is_confined,
            end: end_frame,
        });
    }
    // It shares the memory, so making it is cheap.
    let middle = created(borrowed, injection.clone_task(libc::CLONE_VM | libc::CLONE_FILES)?)?;
    let inner_middle = inner_pid(borrowed.pid, middle);
    let end = injection.clone_task_in(middle, libc::CLONE_FILES);
    kill_and_reap(middle);
    let is_reaped = wait_for_child(injection, inner_middle);
    match (end.and_then(|end| created(borrowed, end)), is_reaped) {
        (Ok(pid), Ok(_)) => Ok(Copy {
            pid,
            inner_pid: inner_pid(borrowed.pid, pid),
            is_child: false,
            is_confined,
            end: end_frame,
        }),
        (Ok(pid), Err(error)) => {
            self::end(pid);
            Err(error)
        }
        (Err(error), _) => Err(error),
    }
}

/// The id of the child in the program's own pid namespace.
fn inner_pid(program: u32, child: u32) -> u32 {
    let depth = namespace_pids(program).len();
    let ids = namespace_pids(child);
    depth.checked_sub(1).and_then(|at| ids.get(at).copied()).unwrap_or(child)
}

/// Whether the process must reap its copy: no init does, or orphans become its children, since it is a subreaper.
fn must_reap(borrowed: &Borrowed<'_>, injection: &mut Injection<'_>) -> Result<bool, FreezeError> {
    if !borrowed.has_init {
        return Ok(true);
    }
    let at = injection.scratch();
    match injection.call(libc::SYS_prctl, [GET_CHILD_SUBREAPER, at, 0, 0])? {
        CallEnd::Returned(0) => {
            let mut answer = [0; 4];
            let read = borrowed.memory.read(at, &mut answer);
            // A process that does not tell counts as a reaper: then nothing depends on another process.
            Ok(read != answer.len() || answer != [0; 4])
        }
        _ => Ok(true),
    }
}

fn created(borrowed: &Borrowed<'_>, end: CallEnd) -> Result<u32, FreezeError> {
    match end {
        CallEnd::Created(task) => Ok(task),
        CallEnd::Returned(code) => Err(FreezeError::NotCopied {
            pid: borrowed.pid,
            name: borrowed.name.to_owned(),
            error: io::Error::from_raw_os_error(code.unsigned_abs() as i32),
        }),
    }
}

impl Made {
    /// The copy is of the moment before its making.
    pub(super) fn put_stack_back(&self) {
        if let Ok(memory) = super::memory::ProcessMemory::open_writable(self.copy.pid) {
            let _ = memory.write(self.overwritten.0, &self.overwritten.1);
        }
    }
}

/// Leaves a stopped copy to another tracer. Until that comes, the copy sleeps in a call of its own; then it ends. (A copy that
/// a signal stops would be reported to its parent.)
pub(super) fn hand_over(copy: Copy, code: BorrowedCode) -> io::Result<()> {
    const LONGEST: u64 = 5000;
    let mut registers = ptrace::registers(copy.pid)?;
    (registers.rip, registers.rsp) = (code.syscall, copy.end);
    (registers.rax, registers.orig_rax) = (libc::SYS_poll as u64, u64::MAX);
    (registers.rdi, registers.rsi, registers.rdx) = (0, 0, LONGEST);
    ptrace::set_registers(copy.pid, registers)?;
    ptrace::block_signals(copy.pid, u64::MAX)?;
    ptrace::set_options(copy.pid, 0)?;
    ptrace::detach(copy.pid)
}

/// Takes a copy over. `false` if it has ended.
pub(super) fn hold(made: &Made) -> bool {
    let pid = made.copy.pid;
    if ptrace::seize_until_exit(pid).is_err() || ptrace::interrupt(pid).is_err() {
        return false;
    }
    loop {
        match ptrace::next_stop(pid) {
            Ok(Some(stop)) if stop.is_requested() => break,
            Ok(Some(_)) => drop(ptrace::resume(pid, 0)),
            Ok(None) => std::thread::sleep(Duration::from_micros(50)),
            Err(_) => return false,
        }
    }
    made.put_stack_back();
    true
}

/// The copy ends with this process. If memory runs out, it goes before the program does.
fn protect(copy: u32) {
    let _ = ptrace::set_options(copy, libc::PTRACE_O_EXITKILL);
    let _ = fs::write(format!("/proc/{copy}/oom_score_adj"), "1000");
}

/// Ends a copy. Its parent learns of that.
pub(super) fn end(copy: u32) {
    kill_and_reap(copy);
}

/// Ends a copy. Until this thread reaps it, no wait of its parent finds it.
pub(super) fn kill(copy: u32) {
    // SAFETY: a signal to a task that this thread traces and has not reaped, so its id is not reused.
    unsafe { libc::kill(copy as libc::pid_t, libc::SIGKILL) };
}

/// Kills a task that this thread traces, and consumes its end, so that its parent learns of it.
fn kill_and_reap(task: u32) {
    kill(task);
    ptrace::reap(task);
}

/// Ends a copy of a process that still stands still, which finds nothing of it later.
pub(super) fn discard(borrowed: &Borrowed<'_>, stopped: &StoppedThreads<'_>, copy: Copy) {
    end(copy.pid);
    if copy.is_child {
        // It stays a zombie if no thread can make the call.
        let _ = reap(borrowed, stopped, copy.inner_pid);
    }
}

/// Makes a thread of the stopped process reap its child. `child` is its id in the pid namespace of that process.
///
/// # Errors
/// As [`make`].
pub(super) fn reap(
    borrowed: &Borrowed<'_>,
    stopped: &StoppedThreads<'_>,
    child: u32,
) -> Result<(), FreezeError> {
    let mut injection = Injection::prepare(borrowed, stopped)?;
    let end = wait_for_child(&mut injection, child);
    injection.restore();
    end.map(|_| ())
}

/// Makes the program reap a child that has ended.
fn wait_for_child(injection: &mut Injection<'_>, child: u32) -> Result<CallEnd, FreezeError> {
    injection.call(libc::SYS_wait4, [u64::from(child), 0, (libc::__WALL | libc::WNOHANG) as u64, 0])
}
