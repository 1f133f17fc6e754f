//! The sampling signal: how it is installed and sent.
//!
//! It is SIGURG, which is ignored by default, so that a stray or late one is harmless, even across exec. A program
//! that takes SIGURG for itself may send it to its own threads, and the kernel merges it with one of the profiler's
//! that is still pending. From then on the signal is therefore SIGWINCH ([`program_action`]). It is ignored by
//! default as well, and terminals send it to processes, so that it never merges with one for a thread.
//!
//! # On which stack the handler runs
//! `SA_ONSTACK` is a property of the handler, not of a thread. With it, the handler runs on a thread's alternate stack,
//! however small: below [`smallest_alternate_stack`] the kernel would kill the program. Without it, the handler runs on
//! stacks that were never meant for signals (a goroutine has 2 KiB). So the flag is set only where alternate
//! stacks are seen as they are made ([`Placement::Alternate`], with the preload library), until the first one that is
//! too small ([`avoid_alternate_stacks`]).
//! Once installed, the handler stays: if the default action were restored, a late signal could reach the program.

use crate::action::{Action, SA_ONSTACK, SA_RESTART, errno, kernel_action};
use crate::mailbox::SignalToken;
use crate::program_actions::{ProgramAction, program_action_of, replace};
use crate::{fork_guard, handler, system};
use core::sync::atomic::{AtomicBool, AtomicI32, Ordering::*};

/// Where the handler runs on threads that have an alternate stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placement {
    /// On the stack that was interrupted.
    Interrupted,
    /// On the alternate stack.
    Alternate,
}

/// Number of the sampling signal, 0 until one is installed.
static SIGNAL: AtomicI32 = AtomicI32::new(0);
static ON_ALTERNATE: AtomicBool = AtomicBool::new(false);

/// The action to install, given what the program wants for the same signal.
fn our_action(program: &ProgramAction) -> Action {
    let program = program.load();
    // Signals that the program means to interrupt its system calls must go on doing so.
    let wants_eintr = program.has_handler() && program.flags & SA_RESTART == 0;
    let restart = if wants_eintr { 0 } else { SA_RESTART };
    let on_stack = if ON_ALTERNATE.load(Relaxed) { SA_ONSTACK } else { 0 };
    Action::own(handler::address(), restart | on_stack)
}

/// Installs the handler. The action that was there before becomes the program's own. Harmless when repeated.
///
/// # Errors
/// The errno of rt_sigaction.
pub fn install(signal: i32, placement: Placement) -> Result<(), i32> {
    ON_ALTERNATE.store(placement == Placement::Alternate, Relaxed);
    use_signal(signal)?;
    avoid_program_signal(signal);
    Ok(())
}

/// Switches to SIGWINCH if the program has taken SIGURG. If the kernel refuses, SIGURG stays in use.
fn avoid_program_signal(signal: i32) {
    let taken = program_action_of(signal).is_some_and(|program| program.load().has_handler());
    if taken && signal == libc::SIGURG && installed() == Some(libc::SIGURG) {
        let _ = use_signal(libc::SIGWINCH);
    }
}

/// Installs the handler in place of the program's. From now on this signal is sent.
fn use_signal(signal: i32) -> Result<(), i32> {
    let before = kernel_action(signal, None)?;
    let before = (!is_handler(before.handler)).then_some(before);
    let program = replace(signal, before).ok_or(libc::EINVAL)?;
    kernel_action(signal, Some(&our_action(program)))?;
    SIGNAL.store(signal, Release);
    Ok(())
}

/// The sampling signal, once it is installed.
pub fn installed() -> Option<i32> {
    match SIGNAL.load(Acquire) {
        0 => None,
        signal => Some(signal),
    }
}

/// Whether this is the address of the sampling signal's handler.
pub fn is_handler(handler: usize) -> bool {
    handler == handler::address()
}

/// Whether the kernel still has the handler for the sampling signal.
pub fn is_ours() -> bool {
    installed().is_some_and(|s| kernel_action(s, None).is_ok_and(|a| is_handler(a.handler)))
}

/// Reads and, with `new`, sets the program's own action for a signal that has the profiler's handler. The result is what the
/// kernel would have returned to the program. If the program takes SIGURG, sampling switches to SIGWINCH.
pub fn program_action(signal: i32, new: Option<Action>) -> Action {
    let Some(program) = program_action_of(signal) else { return Action::DEFAULT };
    let old = program.load();
    if let Some(new) = new {
        program.store(new);
        // Only the restart flag can differ from before; if the kernel refuses, the handler stays as it is.
        let _ = kernel_action(signal, Some(&our_action(program)));
        avoid_program_signal(signal);
    }
    old
}

/// Bytes that an alternate stack needs for the kernel's frame and the handler.
///
/// The kernel's own figure (`AT_MINSIGSTKSZ`) also counts register sets that a thread must request first
/// (AMX, 8 KiB). With AVX-512 the kernel writes 3.5 KiB.
pub fn smallest_alternate_stack() -> usize {
    6 * 1024
}

/// Stops using alternate stacks, because the program is about to use one that is too small.
pub fn avoid_alternate_stacks() {
    if ON_ALTERNATE.swap(false, AcqRel) {
        for signal in 1..32 {
            if let Some(program) = program_action_of(signal) {
                let _ = kernel_action(signal, Some(&our_action(program)));
            }
        }
    }
}

/// Blocks the sampling signal on the calling thread. Returns the mask before, for `system::set_blocked`.
pub fn block() -> Option<u64> {
    let ours = 1u64 << (installed()? - 1);
    let before = system::blocked();
    system::set_blocked(before | ours);
    Some(before)
}

/// Discards sampling signals on their way to any thread, unless the program uses the signal as well.
pub fn discard_pending() {
    let Some(signal) = installed() else { return };
    let Some(program) = program_action_of(signal) else { return };
    if program.load().has_handler() {
        return;
    }
    // The kernel discards a signal that is ignored.
    let ignored = Action::new(libc::SIG_IGN, 0, 0);
    if kernel_action(signal, Some(&ignored)).is_ok() {
        let _ = kernel_action(signal, Some(&our_action(program)));
    }
}

/// Sends the sampling signal with a token to a thread of this process.
///
/// # Errors
/// The errno: EAGAIN when the kernel's queue limit is reached, ESRCH when there is no such thread.
pub fn send(tid: u32, token: SignalToken) -> Result<(), i32> {
    let (Some(process), Some(signal)) = (fork_guard::sampled_process(), installed()) else {
        return Err(libc::ESRCH);
    };
    // struct siginfo of the x86-64 kernel: signo, errno, code, padding, pid, uid, value.
    let mut info = [0u32; 32];
    info[0] = signal as u32;
    info[1] = process.cookie;
    info[2] = libc::SI_QUEUE as u32;
    info[4] = process.pid;
    let word = token.to_word();
    info[6] = word as u32;
    info[7] = (word >> 32) as u32;
    // SAFETY: the kernel reads 128 bytes of `info`, which has them.
    let answer =
        unsafe { libc::syscall(libc::SYS_rt_tgsigqueueinfo, process.pid, tid, signal, info.as_ptr()) };
    if answer == 0 { Ok(()) } else { Err(errno()) }
}
