//! Where a sleeping thread sleeps: its stack, read from outside without waking it.
//!
//! The kernel tells the place of a thread that is off its processor (`/proc/PID/task/TID/syscall`), its stack is read by
//! process_vm_readv(2), and its account (`schedstat`) says afterwards whether it has stood still meanwhile.

use super::files::Files;
use super::process::Process;
use super::thread::Thread;
use super::time::SwitchCost;
use super::tree::Walking;
use stackglass_procfs::clock::monotonic;
use stackglass_sampling::ThreadState;
use stackglass_unwind::walk::{Cut, End};
use stackglass_unwind::{ProcessStack, Registers};

/// Bytes of a stack that are fetched at once.
pub(super) const FETCH: usize = 8 << 10;

/// The stack of a thread that sleeps, in the frames of `walking`: their number, and why there are not more. `None` when it
/// does not sleep, or not any more.
pub(super) fn look(
    process: &mut Process,
    thread: &mut Thread,
    walking: &mut Walking,
    files: &mut Files,
    cost: &mut SwitchCost,
) -> Option<(usize, u8)> {
    let account = thread.files.stat()?;
    let ThreadState::Asleep(sleep) = thread.files.state() else { return None };
    let Walking { scratch, frames, fetched } = walking;
    fetched.resize(FETCH, 0);
    let registers = Registers::new(sleep.place.pc, sleep.place.sp, None);
    let mut read = || {
        let mut stack = ProcessStack::new(process.pid as i32, &mut fetched[..FETCH]);
        process.mappings.walk(process.pid, &registers, &mut stack, scratch, frames)
    };
    let mut walk = read()?;
    if walk.end == End::Cut(Cut::NoModule) && process.scan(monotonic(), files) {
        let mut stack = ProcessStack::new(process.pid as i32, &mut fetched[..FETCH]);
        walk = process.mappings.walk(process.pid, &registers, &mut stack, scratch, frames)?;
    }
    if thread.files.stat() != Some(account) {
        return None;
    }
    thread.time.read(account.ran, cost);
    Some((walk.len, walk.end.code()))
}
