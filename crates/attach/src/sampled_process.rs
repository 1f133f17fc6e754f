//! What the sampling thread knows of a process.

use super::perf_events::Dump;
use super::stack_reader::StackReader;
use super::stream::EventWriter;
use super::thread::Thread;
use super::{Driver, Orders};
use foldhash::HashSet;
use stackglass_proc_text::{SchedStat, ThreadState};
use stackglass_sampling::{LastStack, Random};
use std::sync::Arc;

/// One process, from exec to exec.
pub(crate) struct SampledProcess {
    pub(crate) pid: u32,
    /// This process has started it, so that another part of it will ask for the exit status.
    pub(crate) is_own_child: bool,
    pub(crate) delay: u64,
    pub(crate) driver: Driver,
    pub(crate) orders: Arc<Orders>,
    pub(crate) events: EventWriter,
    pub(crate) threads: Vec<Thread>,
    pub(crate) stacks: StackReader,
    /// The part of a stack that a perf event has copied.
    pub(crate) dump: Dump,
    pub(crate) random: Random,
    pub(crate) tick: u64,
    /// Tick at which a thread was last seen to have moved.
    pub(crate) moved_at: u64,
    /// The process has called exec: this process may trace its threads already, and they may be stopped.
    pub(crate) has_execed: bool,
    /// Traced threads that are no longer sampled and not yet reaped. An exec of the program waits for them.
    pub(crate) ending: Vec<u32>,
    /// Threads that are listed and not tracked: they have ended, or serve a profiler inside the program.
    pub(crate) untracked: HashSet<u32>,
    /// The number of the thread tracked last.
    pub(crate) last_number: u32,
    /// The next tick lists the threads again.
    pub(crate) must_list: bool,
}

impl SampledProcess {
    /// Reads the account of a thread that is off the CPU, and assigns the time since the last reading.
    pub(crate) fn update(&mut self, index: usize, now: u64) {
        let thread = &mut self.threads[index];
        let Some(stat) = thread.files.stat() else { return };
        thread.stat = stat;
        self.update_with(index, now, stat);
    }

    /// The same, with an account that was read.
    pub(crate) fn update_with(&mut self, index: usize, now: u64, stat: SchedStat) {
        self.assign_waits(index, now, stat);
        let thread = &mut self.threads[index];
        if thread.time.last() == LastStack::Sleeping {
            // It slept there until it was woken.
            thread.time.extend_sleeping(&mut self.events.of(thread.number), now);
        }
    }

    /// Assigns all that is left of the time of a thread that lives.
    pub(crate) fn finish(&mut self, index: usize, now: u64, stat: SchedStat) {
        self.assign_waits(index, now, stat);
        let thread = &mut self.threads[index];
        let wait = thread.time.unended_wait(thread.ready_since);
        if wait > 0 && thread.files.state() == ThreadState::Running {
            thread.time.push_waiting(&mut self.events.of(thread.number), now, wait);
        }
        self.finish_ended(index);
    }

    /// The same of a thread that has ended.
    pub(crate) fn finish_ended(&mut self, index: usize) {
        let thread = &mut self.threads[index];
        thread.time.finish(&mut self.events.of(thread.number));
    }

    /// Assigns the waits for CPUs that the kernel has counted since the last reading.
    fn assign_waits(&mut self, index: usize, now: u64, stat: SchedStat) {
        let thread = &mut self.threads[index];
        thread.time.account.update_with(now, stat);
        let waited = thread.time.account.take_waited();
        thread.time.push_waiting(&mut self.events.of(thread.number), now, waited);
    }
}
