//! One thread that is tracked.

use super::interrupted_call::{PutBack, RepeatedCall};
use super::perf_events::Event as PerfEvent;
use super::sampling_period::SamplingPeriod;
use stackglass_perf::deep_stack::DeepStack;
use stackglass_proc_text::{SchedStat, SleepPlace};
use stackglass_procfs::threads::Files;
use stackglass_sampling::{PollInterval, ThreadTime};
use stackglass_wire::{ThreadId, ThreadName};

/// A thread.
pub(crate) struct Thread {
    pub(crate) tid: u32,
    /// Its number in the stream.
    pub(crate) number: ThreadId,
    pub(crate) name: ThreadName,
    pub(crate) files: Files,
    pub(crate) time: ThreadTime,
    /// The kernel's account when it was last read.
    pub(crate) stat: SchedStat,
    /// The thread is traced by us.
    pub(crate) is_seized: bool,
    /// A stop that was requested and has not come yet.
    pub(crate) stop: Option<StopRequest>,
    /// Its interrupted call was put back when it last stopped.
    pub(crate) put_back: Option<PutBack>,
    /// It makes a call again that a stop has cut short, and is not stopped until that call returns.
    pub(crate) repeated: Option<RepeatedCall>,
    /// When its state first said that it was ready to run, if it has not run since.
    pub(crate) ready_since: Option<u64>,
    /// It cannot be traced.
    pub(crate) is_refused: bool,
    pub(crate) sampling: Option<KernelSampling>,
    /// What is below its samples, since one of them did not hold the whole stack.
    pub(crate) deep: Option<Box<DeepStack>>,
    /// Takes its stack when it wakes up, if it could not be read in full while the thread slept.
    pub(crate) wakeup: Option<WakeUp>,
    /// Tick of the next observation.
    pub(crate) due: u64,
    /// From one observation to the next.
    pub(crate) interval: PollInterval,
}

/// A requested stop.
#[derive(Clone, Copy)]
pub(crate) struct StopRequest {
    /// When it was requested.
    pub(crate) at: u64,
    /// Where the thread slept then, if it slept.
    pub(crate) asleep_at: Option<SleepPlace>,
}

/// A breakpoint at the instruction behind the system call in which a thread sleeps.
pub(crate) struct WakeUp {
    pub(crate) event: PerfEvent,
    pub(crate) pc: u64,
}

/// A perf event that takes the thread's stacks while it runs.
pub(crate) struct KernelSampling {
    pub(crate) event: PerfEvent,
    pub(crate) period: SamplingPeriod,
    /// What the thread had run when the event was opened, ns.
    pub(crate) ran_before: u64,
    /// That is known exactly: the thread has slept since, so that the kernel's account did not lag behind.
    pub(crate) is_exact: bool,
    /// What it had run since then at its last sample, ns.
    pub(crate) ran_at_last: u64,
}

impl KernelSampling {
    /// The thread sleeps, and has run for `ran` ns.
    pub(crate) fn sleeps(&mut self, ran: u64) {
        self.period.sleeps();
        if let Some(counted) = self.event.ran() {
            (self.ran_before, self.is_exact) = (ran.saturating_sub(counted), true);
        }
    }
}
