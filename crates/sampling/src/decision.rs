//! What to do about a thread at a tick: a pure function from what is known of it to the next step.
//!
//! The stack of a sleeping thread is read from outside once, and reused for as long as the thread does not run. Where it
//! cannot be read from outside, the samplers signal or stop the thread, once per location, and only in calls that the
//! kernel resumes by itself. The stack of a running thread is requested by a signal or a stop. Reading a thread's state
//! costs a system call, so the function asks for it only where the answer matters ([`Step::ReadState`], [`Step::CheckCpu`]).

use stackglass_proc_text::{Sleep, ThreadState};

/// The kind of stack that a thread's time was last assigned to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LastStack {
    /// It has no stack yet.
    #[default]
    NoStack,
    /// A stack taken while the thread ran.
    Running,
    /// The stack on which the thread sleeps.
    Sleeping,
    /// A sample without frames.
    Unsampled,
}

/// What is known of a thread at a tick.
#[derive(Clone, Copy, Debug, Default)]
pub struct Observation {
    /// The kind of stack that its time was last assigned to.
    pub last: LastStack,
    /// The thread has run since its last stack.
    pub has_run: bool,
    /// The thread has run nearly all the time: whether it sleeps need not be asked.
    pub is_busy: bool,
    /// The time that it has not run since, and that no stack has, is worth an event, and its state is to be read before.
    pub has_long_rest: bool,
    /// A stack was requested, and has not come yet.
    pub is_requested: bool,
    /// The kernel takes its stacks while it runs.
    pub is_kernel_sampled: bool,
    /// Its state, once it was read.
    pub state: Option<ThreadState>,
    /// Whether it is on a CPU, once that was checked.
    pub on_cpu: Option<bool>,
}

/// The next step for a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Read its state, then decide again.
    ReadState,
    /// Check whether it is on a CPU at this moment, then decide again.
    CheckCpu,
    /// It still sleeps where it slept: its last stack gets the time, and the next observation may come later.
    ReuseSleepingStack,
    /// It sleeps: read its stack from outside.
    ReadSleepingStack(Sleep),
    /// It runs: request its stack.
    RequestStack,
    /// Its requested stack is still to come.
    AwaitStack {
        /// It waits for a CPU meanwhile.
        is_runnable: bool,
    },
    /// It was preempted after it had run: the time goes to its last running stack.
    ///
    /// A request would find it where the kernel preempts, which is the end of a system call more often than by chance.
    ExtendRunningStack,
    /// It waits for a CPU where it was last seen.
    ExtendAsWaiting,
    /// It was woken where it slept, and waits for a CPU since then. How long it waited, the kernel tells once it has run.
    AwaitCpu,
    /// Nothing is known of it: what passed goes to its last stack.
    ExtendLastStack,
    /// The kernel takes its stacks.
    LeaveToKernel,
}

impl Observation {
    /// The next step.
    pub fn next_step(&self) -> Step {
        if self.is_requested {
            return self.await_stack();
        }
        if self.last == LastStack::Sleeping && !self.has_run {
            return match self.state {
                None if self.has_long_rest => Step::ReadState,
                Some(ThreadState::Running) => Step::AwaitCpu,
                _ => Step::ReuseSleepingStack,
            };
        }
        let state = match self.state {
            Some(state) => state,
            None if self.is_busy => ThreadState::Running,
            None => return Step::ReadState,
        };
        match state {
            ThreadState::Asleep(sleep) => Step::ReadSleepingStack(sleep),
            ThreadState::Running if self.is_kernel_sampled => Step::LeaveToKernel,
            ThreadState::Running | ThreadState::Unknown if self.has_run => match self.on_cpu {
                None => Step::CheckCpu,
                Some(true) => Step::RequestStack,
                Some(false) => Step::ExtendRunningStack,
            },
            ThreadState::Running => Step::ExtendAsWaiting,
            ThreadState::Unknown => Step::ExtendLastStack,
        }
    }

    /// A signal wakes a sleeper, so a thread that ran before and has not answered yet mostly waits for a CPU.
    fn await_stack(&self) -> Step {
        let may_wait = self.last == LastStack::Running && !self.has_run;
        match self.state {
            None if may_wait => Step::ReadState,
            state => Step::AwaitStack { is_runnable: may_wait && state == Some(ThreadState::Running) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use LastStack::*;
    use Step::*;
    use stackglass_proc_text::SleepPlace;

    const SLEEP: Sleep = Sleep { place: SleepPlace { pc: 1, sp: 2 }, call: None };
    const ASLEEP: ThreadState = ThreadState::Asleep(SLEEP);
    const UNKNOWN: Option<ThreadState> = Some(ThreadState::Unknown);
    const RUNS: Option<ThreadState> = Some(ThreadState::Running);

    fn seen(last: LastStack, has_run: bool, state: Option<ThreadState>) -> Observation {
        Observation { last, has_run, state, ..Observation::default() }
    }

    #[test]
    fn each_case_has_its_step() {
        let on = |seen: Observation, on| Observation { on_cpu: Some(on), ..seen };
        let busy = |seen| Observation { is_busy: true, ..seen };
        let long = |seen| Observation { has_long_rest: true, ..seen };
        let requested = |seen| Observation { is_requested: true, ..seen };
        let kernel = |seen| Observation { is_kernel_sampled: true, ..seen };
        let waits = |is_runnable| AwaitStack { is_runnable };
        let cases = [
            // A sleeper that has not run is not even asked for its state.
            (seen(Sleeping, false, None), ReuseSleepingStack),
            // Unless what it has slept is about to be assigned: it may have been woken.
            (long(seen(Sleeping, false, None)), ReadState),
            (long(seen(Sleeping, false, Some(ASLEEP))), ReuseSleepingStack),
            (long(seen(Sleeping, false, UNKNOWN)), ReuseSleepingStack),
            (long(seen(Sleeping, false, RUNS)), AwaitCpu),
            (seen(Sleeping, true, None), ReadState),
            (seen(Sleeping, true, Some(ASLEEP)), ReadSleepingStack(SLEEP)),
            (seen(Sleeping, true, RUNS), CheckCpu),
            (on(seen(Sleeping, true, RUNS), true), RequestStack),
            // A thread without a stack is looked at although it has not run.
            (seen(NoStack, false, None), ReadState),
            (seen(NoStack, false, Some(ASLEEP)), ReadSleepingStack(SLEEP)),
            (seen(NoStack, false, RUNS), ExtendAsWaiting),
            (seen(Unsampled, false, Some(ASLEEP)), ReadSleepingStack(SLEEP)),
            // A running thread gives its stack only while it is on a CPU.
            (seen(Running, true, RUNS), CheckCpu),
            (on(seen(Running, true, RUNS), true), RequestStack),
            (on(seen(Running, true, RUNS), false), ExtendRunningStack),
            (seen(Running, false, RUNS), ExtendAsWaiting),
            (seen(Running, false, Some(ASLEEP)), ReadSleepingStack(SLEEP)),
            (busy(seen(Running, true, None)), CheckCpu),
            (busy(on(seen(Running, true, None), true)), RequestStack),
            // Where the state cannot be read, the clock alone decides.
            (seen(Running, true, UNKNOWN), CheckCpu),
            (on(seen(Running, true, UNKNOWN), true), RequestStack),
            (seen(Running, false, UNKNOWN), ExtendLastStack),
            // Kernel samples replace requests, but not the stacks of sleep.
            (kernel(seen(Running, true, RUNS)), LeaveToKernel),
            (kernel(seen(Running, true, Some(ASLEEP))), ReadSleepingStack(SLEEP)),
            // While a request is out, nothing else is asked of the thread.
            (requested(seen(Running, false, None)), ReadState),
            (requested(seen(Running, false, RUNS)), waits(true)),
            (requested(seen(Running, false, Some(ASLEEP))), waits(false)),
            (requested(seen(Running, true, None)), waits(false)),
            (requested(seen(Sleeping, false, None)), waits(false)),
            (requested(seen(NoStack, true, None)), waits(false)),
        ];
        for (observation, step) in cases {
            assert_eq!(observation.next_step(), step, "{observation:?}");
        }
    }

    #[test]
    fn every_decision_ends() {
        for last in [NoStack, Running, Sleeping, Unsampled] {
            for bits in 0..32 {
                let bit = |n: u32| bits >> n & 1 == 1;
                for state in [ThreadState::Running, ASLEEP, ThreadState::Unknown] {
                    let mut observation = Observation {
                        last,
                        has_run: bit(0),
                        is_busy: bit(1),
                        is_requested: bit(2),
                        is_kernel_sampled: bit(3),
                        has_long_rest: bit(4),
                        ..Observation::default()
                    };
                    let mut steps = 0;
                    loop {
                        match observation.next_step() {
                            ReadState => observation.state = Some(state),
                            CheckCpu => observation.on_cpu = Some(true),
                            _ => break,
                        }
                        steps += 1;
                        assert!(steps <= 2, "{observation:?}");
                    }
                }
            }
        }
    }
}
