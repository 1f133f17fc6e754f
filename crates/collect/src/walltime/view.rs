//! A process at one moment, with as little effect on it as possible.
//!
//! Threads that sleep are not woken: the time-out of `epoll_wait`, in which a runtime waits for its timers, would begin anew. So
//!
//! - while all threads sleep, the process itself is read, and it does not stop;
//! - while some run, they are stopped for the copy, and the sleeping ones are left alone.
//!
//! In both cases, threads that were asleep must not have run meanwhile; else it is tried again, and only threads with a time-out
//! that would begin anew are left alone. If they run as well each time, all threads are stopped: they do not sleep long.

use super::idle::RunTimes;
use stackglass_attach::frozen::{FreezeError, FrozenProcess, FrozenThread, Options};
use stackglass_heapgraph::image::ThreadRegisters;
use stackglass_procfs::threads::{self, Files};
use stackglass_sampling::{Call, ThreadState};
use std::time::Duration;

/// How long others that trace the process are waited for.
const WAIT: Duration = Duration::from_secs(1);
/// Attempts without stopping threads that sleep.
const ATTEMPTS: u32 = 3;

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
    /// Sleeping threads are left alone. The number of attempts so far.
    Gentle(u32),
    /// All threads stop.
    Full,
}

impl Effort {
    /// The effort after this one has failed.
    pub(super) fn next(self) -> Effort {
        match self {
            Effort::Gentle(attempts) if attempts + 1 < ATTEMPTS => Effort::Gentle(attempts + 1),
            _ => Effort::Full,
        }
    }
}

impl View {
    /// Takes a view of a process.
    pub(super) fn take(pid: u32, effort: Effort) -> Result<View, FreezeError> {
        let all = Options { wait: WAIT, leave: Vec::new() };
        let Effort::Gentle(attempt) = effort else {
            let process = FrozenProcess::copy(pid, &all)?;
            return Ok(View { process, sleepers: RunTimes::default(), is_live: false });
        };
        let (sleepers, times, some_run) = sleepers(pid, |call| attempt == 0 || has_time_out(call));
        if !some_run {
            let process = FrozenProcess::of_sleepers(pid, sleepers)?;
            return Ok(View { process, sleepers: times, is_live: true });
        }
        let leave = sleepers.iter().map(|thread| thread.tid).collect();
        let process = FrozenProcess::copy(pid, &Options { leave, ..all })?;
        let view = View { process: process.with_threads(sleepers), sleepers: times, is_live: false };
        Ok(view)
    }

    /// Whether the process itself is read.
    pub(super) fn is_live(&self) -> bool {
        self.is_live
    }

    /// Whether a thread that was asleep has run.
    pub(super) fn has_run(&self) -> bool {
        // A live process must not have a new thread either: only a running thread makes one.
        !self.sleepers.are_still(self.process.pid())
    }
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

/// The threads that sleep in some calls, how much they have run, and whether there are others.
fn sleepers(pid: u32, are_left: impl Fn(Call) -> bool) -> (Vec<FrozenThread>, RunTimes, bool) {
    let (mut sleepers, mut times, mut some_run) = (Vec::new(), Vec::new(), false);
    for tid in threads::list(pid) {
        let mut files = Files::new(pid, tid);
        let Some(before) = files.stat() else { continue };
        match files.state() {
            // It was asleep all the time between the two reads.
            ThreadState::Asleep(sleep)
                if files.stat() == Some(before) && sleep.call.is_some_and(&are_left) =>
            {
                let registers = ThreadRegisters::of_sleeper(sleep.place.pc, sleep.place.sp);
                let name =
                    std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/comm")).unwrap_or_default();
                let name = name.trim_end_matches('\n').to_owned();
                sleepers.push(FrozenThread { tid, name, registers: Some(registers.0) });
                times.push((tid, before));
            }
            _ => some_run = true,
        }
    }
    // A process without threads has ended, which the copy finds out.
    some_run |= sleepers.is_empty();
    (sleepers, RunTimes::of(times), some_run)
}
