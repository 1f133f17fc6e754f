//! A process at one moment, with as little effect on it as possible.
//!
//! While all threads sleep, the process itself is read, and it does not stop. While some run, all threads stop for a copy but those
//! in `epoll_wait` with a time-out, in which a runtime waits for its timers: a stop would begin the time-out anew.
//!
//! Threads that were left alone must not have run meanwhile. If they have, the next attempt follows at once, and the last one stops
//! all threads: then it does not depend on what the tasks do whether they are seen. (With attempts until nothing runs, long waits
//! would be seen more often than short ones.) A thread that has just run has hardly waited, so its time-out is hardly longer.

use super::idle::RunTimes;
use stackglass_attach::frozen::{FreezeError, FrozenProcess, FrozenThread, Options};
use stackglass_heapgraph::image::ThreadRegisters;
use stackglass_procfs::threads::{self, Files};
use stackglass_sampling::{Call, SchedStat, Sleep, ThreadState};
use std::time::Duration;

/// How long others that trace the process are waited for.
const WAIT: Duration = Duration::from_secs(1);

/// A process at one moment. It is that of one moment if [`View::has_run`] says no after it was read.
pub(super) struct View {
    pub process: FrozenProcess,
    /// Threads that sleep and do not stop, with how much they had run.
    sleepers: RunTimes,
    /// The process itself is read, not a copy.
    is_live: bool,
}

/// Which view is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Effort {
    /// The process itself, if all of its threads sleep; else a copy.
    Least,
    /// A copy. Threads with a time-out that would begin anew are left alone.
    Copy,
    /// A copy. All threads stop.
    Full,
}

impl View {
    /// Takes a view of a process.
    pub(super) fn take(pid: u32, effort: Effort) -> Result<View, FreezeError> {
        let (sleepers, some_run) = if effort == Effort::Full { (Vec::new(), true) } else { sleepers(pid) };
        if effort == Effort::Least && !some_run {
            let times =
                RunTimes::of(sleepers.iter().map(|sleeper| (sleeper.thread.tid, sleeper.ran)).collect());
            let threads = sleepers.into_iter().map(|sleeper| sleeper.thread).collect();
            let process = FrozenProcess::of_sleepers(pid, threads)?;
            return Ok(View { process, sleepers: times, is_live: true });
        }
        // One thread has to make the copy.
        let can_leave = some_run || sleepers.iter().any(|sleeper| !sleeper.has_time_out);
        let left: Vec<Sleeper> =
            sleepers.into_iter().filter(|sleeper| can_leave && sleeper.has_time_out).collect();
        let times = RunTimes::of(left.iter().map(|sleeper| (sleeper.thread.tid, sleeper.ran)).collect());
        let leave = left.iter().map(|sleeper| sleeper.thread.tid).collect();
        // In user code only, looks would come later while the program computes than while it sleeps, and shares would be off.
        let options = Options { wait: WAIT, leave, interrupt_calls: true };
        let process = FrozenProcess::copy(pid, &options)?;
        let process = process.with_threads(left.into_iter().map(|sleeper| sleeper.thread).collect());
        Ok(View { process, sleepers: times, is_live: false })
    }

    /// Whether the process itself is read.
    pub(super) fn is_live(&self) -> bool {
        self.is_live
    }

    /// How many threads ran, or were ready to.
    pub(super) fn running(&self) -> usize {
        let is_running = |thread: &&FrozenThread| {
            !self.sleepers.has(thread.tid)
                && thread.registers.is_some_and(|registers| !was_waiting(&registers))
        };
        if self.is_live { 0 } else { self.process.threads().iter().filter(is_running).count() }
    }

    /// Whether a thread that was asleep has run.
    pub(super) fn has_run(&self) -> bool {
        // A live process must not have a new thread either: only a running thread makes one.
        !self.sleepers.are_still(self.process.pid())
    }
}

/// Whether a thread waited in a call of the kernel when it was stopped, by its registers: the call was interrupted.
fn was_waiting(registers: &[u64; 27]) -> bool {
    /// `ERESTARTSYS` to `ERESTART_RESTARTBLOCK` (Linux, `include/linux/errno.h`), and `EINTR`, as results.
    const INTERRUPTED: std::ops::RangeInclusive<i64> = -516..=-512;
    let (rax, orig_rax) = (registers[10] as i64, registers[15] as i64);
    orig_rax >= 0 && (INTERRUPTED.contains(&rax) || rax == -i64::from(libc::EINTR))
}

/// Whether a stop would begin the time-out of a call anew.
fn has_time_out(call: Call) -> bool {
    match call.number {
        // The fourth argument, in milliseconds; negative: none.
        libc::SYS_epoll_wait | libc::SYS_epoll_pwait => call.arguments[3] as i32 > 0,
        libc::SYS_epoll_pwait2 => call.arguments[3] != 0,
        _ => false,
    }
}

/// A thread that sleeps.
struct Sleeper {
    thread: FrozenThread,
    /// How much it has run.
    ran: SchedStat,
    has_time_out: bool,
}

/// The threads that sleep, and whether there are others.
fn sleepers(pid: u32) -> (Vec<Sleeper>, bool) {
    let (mut sleepers, mut some_run) = (Vec::new(), false);
    for tid in threads::list(pid) {
        let mut files = Files::new(pid, tid);
        let Some(ran) = files.stat() else { continue };
        match files.state() {
            // It was asleep all the time between the two reads.
            ThreadState::Asleep(Sleep { place, call: Some(call) }) if files.stat() == Some(ran) => {
                let registers = ThreadRegisters::of_sleeper(place.pc, place.sp);
                let name =
                    std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/comm")).unwrap_or_default();
                let name = name.trim_end_matches('\n').to_owned();
                let thread = FrozenThread { tid, name, registers: Some(registers.0) };
                sleepers.push(Sleeper { thread, ran, has_time_out: has_time_out(call) });
            }
            _ => some_run = true,
        }
    }
    // A process without threads has ended, which the copy finds out.
    some_run |= sleepers.is_empty();
    (sleepers, some_run)
}
