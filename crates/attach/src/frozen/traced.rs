//! The threads of a process while they are traced: what each does, and what stops it.

use super::call_registers::CallRegisters;
use super::signal_mask::SignalMask;
use crate::clock::monotonic;
use crate::deadlock::Seizing;
use crate::ptrace;
use stackglass_perf::user_stop::UserStop;
use stackglass_proc_text::{Call, SchedStat, Sleep, SleepPlace};
use stackglass_procfs::threads::Files;
use std::collections::HashSet;
use std::io;
use std::time::Duration;

/// A thread that sleeps without a call for this long waits for a page of memory, ns. A stop shows at once.
const LONG_SLEEP: u64 = 8_000_000;

/// How threads are stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Method {
    /// In user code. Those in system calls are left alone.
    UserCode,
    /// Wherever they are: calls may return early.
    Interrupt,
}

/// What a traced thread does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// It is traced and was asked to stop.
    Running,
    /// It is stopped.
    Stopped,
    /// It did not stop: it is in a long call of the kernel, and stops when it returns to the program.
    InKernel,
    /// It is left alone in its call, where it sleeps.
    Asleep,
    /// It is not traced any more.
    Gone,
}

/// A thread of the process.
pub(super) struct TracedThread {
    pub(super) tid: u32,
    pub(super) name: String,
    pub(super) state: State,
    /// Its registers when it stopped.
    pub(super) registers: Option<libc::user_regs_struct>,
    /// The registers with which it continues.
    pub(super) continues_with: Option<libc::user_regs_struct>,
    /// Seccomp confined its calls when it began to be traced.
    pub(super) is_confined: bool,
    /// What stops it in user code.
    pub(super) armed: Option<Armed>,
    /// Where it sleeps, if it is left alone.
    pub(super) sleeping: Option<Sleeping>,
    /// When it was last seen not to be stopped, CLOCK_MONOTONIC ns.
    pub(super) ran_at: u64,
    /// It repeats its interrupted call.
    pub(super) is_put_back: bool,
    /// It is the main thread of a program that this process has started and waits for.
    pub(super) is_own_child: bool,
}

impl TracedThread {
    /// It has ended. Its parent learns of that only after its tracer has.
    pub(super) fn end(&mut self) {
        self.armed = None;
        self.state = State::Gone;
        if !self.is_own_child {
            ptrace::reap_ended(self.tid);
        }
    }
}

/// What stops a thread.
pub(super) struct Armed {
    pub(super) timer: Option<UserStop>,
    /// Behind the call in which it sleeps.
    pub(super) at_return: Option<UserStop>,
    /// After its next page fault.
    pub(super) after_fault: Option<UserStop>,
    /// Firings of all for which it has stopped.
    pub(super) answered: u64,
    pub(super) files: Files,
    /// Its registers in a call in which it is busy for long, and where `at_return` waits for its end.
    pub(super) in_call: Option<CallRegisters>,
    pub(super) busy_at: Option<SleepPlace>,
    /// When the timer was armed.
    pub(super) before: Option<SchedStat>,
    /// How long the thread had run then, or when it was found to have run for long without a stop, ns.
    pub(super) ran_before: u64,
    pub(super) has_run_long: bool,
    /// The timer is armed: the thread does not block its signal.
    pub(super) is_armed: bool,
    /// It was seen to block SIGTRAP, or may do so once its call ends, so it cannot be stopped in user code.
    pub(super) is_masked: bool,
    pub(super) mask: SignalMask,
    /// It was asked to stop where it sleeps.
    pub(super) is_interrupted: bool,
    /// How much it had run when it was first seen asleep without a call, and when that was, ns.
    asleep_since: Option<(SchedStat, u64)>,
}

impl Armed {
    /// Switches off all that could stop the thread.
    pub(super) fn disarm(&mut self) {
        self.is_armed = false;
        self.timer.iter().chain(&self.at_return).chain(&self.after_fault).for_each(UserStop::disarm);
    }

    /// Firings for which the thread has yet to stop. `None` if they are not counted.
    pub(super) fn firings_to_come(&mut self) -> Option<u64> {
        Some(self.timer.as_mut()?.fired()?.saturating_sub(self.answered))
    }

    /// Arms the timer of a thread that does not block its signal.
    pub(super) fn arm(&mut self) {
        if let Some(timer) = self.timer.as_mut().filter(|_| !self.is_armed) {
            self.mask.end(timer);
            self.before = self.files.stat();
            self.ran_before = timer.ran().unwrap_or(0);
            // Otherwise it does not stop, which is noticed.
            self.is_armed = timer.arm().is_ok();
        }
    }

    pub(super) fn new(pid: u32, tid: u32, refused: &mut Option<io::Error>) -> Armed {
        let timer = match UserStop::by_timer(tid) {
            Ok(timer) => Some(timer),
            Err(error) => {
                if error.raw_os_error() != Some(libc::ESRCH) {
                    *refused = Some(error);
                }
                None
            }
        };
        Armed {
            timer,
            at_return: None,
            after_fault: None,
            answered: 0,
            files: Files::new(pid, tid),
            in_call: None,
            busy_at: None,
            before: None,
            ran_before: 0,
            has_run_long: false,
            is_armed: false,
            is_masked: false,
            mask: SignalMask::default(),
            is_interrupted: false,
            asleep_since: None,
        }
    }

    /// Whether a thread that sleeps without a call has done so for long, and has run for `ran` in all.
    pub(super) fn sleeps_for_long(&mut self, ran: SchedStat) -> bool {
        let now = monotonic();
        match self.asleep_since {
            Some((before, since)) if before == ran => now.saturating_sub(since) > LONG_SLEEP,
            _ => {
                self.asleep_since = Some((ran, now));
                false
            }
        }
    }
}

/// Where a thread sleeps.
#[derive(Clone, Copy)]
pub(super) struct Sleeping {
    pub(super) sleep: Sleep,
    /// How much it had run.
    pub(super) ran: SchedStat,
}

impl Sleeping {
    pub(super) fn place(self) -> SleepPlace {
        self.sleep.place
    }

    pub(super) fn call(self) -> Option<Call> {
        self.sleep.call
    }
}

/// All threads of a process. The thread that stopped them must detach from them. When it ends, the kernel does that.
pub(super) struct StoppedThreads<'a> {
    pub(super) pid: u32,
    pub(super) threads: Vec<TracedThread>,
    pub(super) known: HashSet<u32>,
    pub(super) seizing: &'a Seizing,
    pub(super) method: Method,
}

/// Waits a little for another thread: short at first. The waits grow, since on a busy machine each look can take the CPU from that
/// thread before it gets any further.
pub(super) fn pause(waits: u32) {
    match waits {
        0..50 => std::hint::spin_loop(),
        50..200 => std::thread::yield_now(),
        _ => std::thread::sleep(Duration::from_micros(20 + 2 * u64::from(waits - 200).min(490))),
    }
}
