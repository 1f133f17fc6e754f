//! The stack of a sleeping thread, read from outside without waking it.
//!
//! The kernel tells where a thread off its CPU is (`/proc/PID/task/TID/syscall`). Its stack is read
//! from `/proc/PID/mem`. Its account (`schedstat`) says afterwards whether it has run meanwhile.

use super::files::Files;
use super::process::Process;
use super::system::System;
use super::thread::Thread;
use super::time::SwitchCost;
use super::walking::{FETCH, Walked, Walking};
use stackglass_proc_text::ThreadState;
use stackglass_unwind::walk::{Cut, End};
use stackglass_unwind::{ProcessStack, Registers};

/// Walks the stack of a sleeping thread into the frames of `walking`, and says when it slept there. `None` if the thread does not
/// sleep, or woke up meanwhile; its account counts if it was woken and has not run yet.
pub(super) fn read(
    system: &System,
    process: &mut Process,
    thread: &mut Thread,
    walking: &mut Walking,
    files: &mut Files,
    cost: &mut SwitchCost,
) -> Option<(Walked, u64)> {
    let tid = thread.tid;
    let account = system.account(tid, &mut thread.files)?;
    let at = system.now();
    let sleep = match system.state(tid, &mut thread.files) {
        ThreadState::Asleep(sleep) => sleep,
        ThreadState::Running => {
            // It was woken, and mostly waits for a CPU. If it had one at that moment, the records say so.
            thread.time.read(account, at, cost);
            return None;
        }
        ThreadState::Unknown => return None,
    };
    let Walking { scratch, frames, fetched } = walking;
    let registers = Registers::new(sleep.place.pc, sleep.place.sp, None);
    let mut read = |process: &mut Process| {
        let pid = process.pid;
        let fetch = |_, address, into: &mut [u8]| system.read_memory(pid, address, into);
        let mut stack = ProcessStack::read_by(pid as i32, &mut fetched[..FETCH], fetch);
        process.mappings.walk((system, pid), &registers, &mut stack, scratch, frames)
    };
    let mut walk = read(process)?;
    if walk.end == End::Cut(Cut::NoModule) && process.scan(system, files) {
        walk = read(process)?;
    }
    if system.account(tid, &mut thread.files) != Some(account) {
        return None;
    }
    thread.time.read(account, at, cost);
    Some((Walked { len: walk.len, cut: walk.end.code() }, at))
}
