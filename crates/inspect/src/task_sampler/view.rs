//! A process at one moment, with as little effect on it as possible.
//!
//! While all threads sleep, the process itself is read, and it does not stop. None of them may have run meanwhile. If one has, the
//! process is stopped at once, in user code: then it does not depend on what the tasks do whether they are seen. (With attempts until
//! nothing runs, long waits would be seen more often than short ones.)
//!
//! What earlier snapshots needed is read while it stands still. If that does not suffice, the snapshot itself takes place meanwhile.

use super::idle::RunTimes;
use crate::sleepers::Sleeper;
use stackglass_attach::frozen::{FreezeError, FrozenProcess, FrozenThread, Options, OtherPages, WorkingSet};
use stackglass_process_view::core_image::ThreadRegisters;
use stackglass_procfs::threads;
use std::time::{Duration, Instant};

/// How long others that trace the process are waited for.
const WAIT: Duration = Duration::from_secs(1);

/// A process at one moment, if [`View::is_whole`] says so after it was read.
pub(super) struct View {
    pub process: FrozenProcess,
    /// How much the threads of a live process had run. `None` if it was stopped.
    sleepers: Option<RunTimes>,
    /// Since when it stays stopped.
    stopped: Option<Instant>,
}

/// Which view is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Effort {
    /// The process itself, if all of its threads sleep; else its working set.
    Least,
    /// Its working set, read while it stands still.
    WorkingSet,
    /// All that is needed, while it stands still.
    Stop,
    /// All memory, of which only stacks and the working set are of one moment. It may be read for long.
    Search,
}

impl Effort {
    /// With which effort one succeeds that was not enough.
    pub(super) fn next(self) -> Effort {
        match self {
            Effort::Search => Effort::Least,
            Effort::Least => Effort::WorkingSet,
            Effort::WorkingSet | Effort::Stop => Effort::Stop,
        }
    }
}

impl View {
    /// Takes a view of a process.
    pub(super) fn take(pid: u32, effort: Effort, set: &WorkingSet) -> Result<View, FreezeError> {
        if effort == Effort::Least
            && let Some(sleepers) = sleepers(pid)
        {
            let times = sleepers.iter().map(|sleeper| (sleeper.thread.tid, sleeper.ran)).collect();
            let threads = sleepers.into_iter().map(|sleeper| sleeper.thread).collect();
            let process = FrozenProcess::of_sleepers(pid, threads)?;
            return Ok(View { process, sleepers: Some(RunTimes::new(times)), stopped: None });
        }
        let others = match effort {
            Effort::Least | Effort::WorkingSet => OtherPages::Missing,
            Effort::Stop => OtherPages::Stopped,
            Effort::Search => OtherPages::Live,
        };
        let options = Options { wait: WAIT, ..Options::default() };
        let process = FrozenProcess::of_pages(pid, set, others, &options)?;
        Ok(View { process, sleepers: None, stopped: (effort == Effort::Stop).then(Instant::now) })
    }

    /// How long threads were held up until now.
    pub(super) fn pause(&self) -> Duration {
        self.process.pause().whole + self.stopped.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Whether all that was read is of one moment.
    pub(super) fn is_whole(&self) -> bool {
        self.process.is_alive() && !self.process.is_incomplete() && !self.has_run()
    }

    /// Whether the process itself is read, which was not stopped.
    fn is_live(&self) -> bool {
        self.sleepers.is_some()
    }

    /// How many threads ran, or were ready to.
    pub(super) fn running(&self) -> usize {
        let is_running =
            |thread: &&FrozenThread| thread.registers.is_none_or(|registers| !was_waiting(registers));
        if self.is_live() { 0 } else { self.process.threads().iter().filter(is_running).count() }
    }

    /// Whether a thread of a live process has run.
    fn has_run(&self) -> bool {
        // There is no new thread either: only a running thread makes one.
        self.sleepers.as_ref().is_some_and(|sleepers| !sleepers.are_still(self.process.pid()))
    }
}

/// Whether a thread waited in a call of the kernel, by its registers: it was left alone there, or the call was interrupted.
fn was_waiting(registers: [u64; 27]) -> bool {
    /// `ERESTARTSYS` to `ERESTART_RESTARTBLOCK` (Linux, `include/linux/errno.h`), and `EINTR`, as results.
    const INTERRUPTED: std::ops::RangeInclusive<i64> = -516..=-512;
    let (rax, orig_rax) = (registers[10] as i64, registers[15] as i64);
    ThreadRegisters(registers).are_of_sleeper()
        || orig_rax >= 0 && (INTERRUPTED.contains(&rax) || rax == -i64::from(libc::EINTR))
}

/// The threads, if all of them sleep.
fn sleepers(pid: u32) -> Option<Vec<Sleeper>> {
    let sleeper = |tid| Sleeper::read(pid, tid);
    // A process without threads has ended, which the stop finds out.
    let sleepers: Vec<Sleeper> = threads::list(pid).into_iter().map(sleeper).collect::<Option<_>>()?;
    (!sleepers.is_empty()).then_some(sleepers)
}
