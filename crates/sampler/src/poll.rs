//! Looks at one thread at a tick: finds out what it did, and does what [`Observation::next_step`] says.
//!
//! All steps occur here except one, to leave a thread to perf events.

use crate::off_cpu;
use crate::parts::Parts;
use crate::signals::send::{self, Purpose};
use crate::signals::timers;
use crate::sleep::read::{self, SleepingStack};
use crate::sleep::reader::ReadStack;
use crate::threads::discovery;
use stackglass_host::{SlotIndex, restart, system};
use stackglass_proc_text::Sleep;
use stackglass_sampling::{LastStack, Observation, Passed, PollInterval, Stack, Step};

/// CPU time that a signal and its handler may have used since a stack was taken, ns.
const HANDLER: u64 = 15_000;
/// What two context switches and the timer's interrupt cost, ns; in virtual machines they are expensive.
const SWITCHES: u64 = 30_000;

/// What a poll found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Polled {
    /// The thread has ended.
    Gone,
    /// It sleeps where it slept.
    Unmoved,
    /// Anything else.
    Moved,
}

/// One reading of a thread's clock.
#[derive(Clone, Copy)]
struct Reading {
    now: u64,
    /// CPU time, ns.
    cpu: u64,
    passed: Passed,
}

/// Looks at one thread at a tick that began at `now`. A sleeping thread is looked at again after at most `longest`.
pub(crate) fn poll(parts: &mut Parts, index: SlotIndex, now: u64, longest: PollInterval) -> Polled {
    let tid = parts.threads.get(index).header.tid;
    let Some(cpu) = system::thread_cpu(tid) else {
        // Its exit event has its last CPU time.
        discovery::read_events(parts, system::now());
        parts.due.scan = true;
        discovery::untrack(parts, index);
        return Polled::Gone;
    };
    let tick = parts.schedule.tick;
    parts.threads.set_due(index, tick + 1);
    let thread = parts.threads.get(index);
    // If the clock has advanced, both clocks are read at the same moment.
    let now = if cpu == thread.time.account.cpu() { now } else { system::now() };
    let reading = Reading { now, cpu, passed: thread.time.account.update(now, cpu) };
    let mut seen = observe(parts, index, reading.passed);
    let mut is_settled = false;
    loop {
        match seen.next_step() {
            Step::ReuseSleepingStack => {
                reuse(parts, index, now, longest);
                return Polled::Unmoved;
            }
            Step::AwaitStack { is_runnable } => {
                await_stack(parts, index, reading, is_runnable);
                return Polled::Moved;
            }
            step => {
                if !is_settled && !seen.is_requested {
                    is_settled = true;
                    settle(parts, index, now);
                }
                match step {
                    Step::ReadState => seen.state = Some(parts.state(index)),
                    Step::CheckCpu => {
                        seen.on_cpu = Some(is_on_cpu(parts, index, reading));
                    }
                    step => {
                        act(parts, index, reading, step);
                        return Polled::Moved;
                    }
                }
            }
        }
    }
}

fn observe(parts: &mut Parts, index: SlotIndex, passed: Passed) -> Observation {
    let has_timers = parts.timers.are_allowed();
    let thread = parts.threads.get(index);
    let handler = if core::mem::take(&mut thread.handler_ran) { HANDLER } else { 0 };
    let last = thread.time.last();
    let has_run = passed.ran > handler;
    Observation {
        last,
        has_run,
        // A signal that reaches a thread which has just gone to sleep may interrupt its call, unless the call can be put back.
        is_busy: has_run
            && last == LastStack::Running
            && passed.ran >= passed.elapsed / 8 * 7
            && (has_timers || restart::may_put_back()),
        is_requested: thread.pending.is_some(),
        // A timer meets the thread while it runs, whenever that is.
        on_cpu: has_timers.then_some(true),
        ..Observation::default()
    }
}

/// The thread did not run: its last stack gets the time, once that is long, and the next poll comes later.
fn reuse(parts: &mut Parts, index: SlotIndex, now: u64, longest: PollInterval) {
    if parts.threads.get(index).time.has_long_rest() {
        off_cpu::extend_sleeping(parts, index, now);
    }
    let thread = parts.threads.get(index);
    thread.interval = thread.interval.lengthened(longest);
    let next = parts.schedule.tick + thread.interval.ticks();
    parts.threads.set_due(index, next);
}

/// A signal was sent, and its stack has not arrived yet.
fn await_stack(parts: &mut Parts, index: SlotIndex, reading: Reading, is_runnable: bool) {
    off_cpu::assign_without_cpu(parts, index, reading.now, is_runnable);
    send::check_mask(parts, index, reading.now, reading.passed.ran);
    send::check_overdue(parts, index, reading.now);
}

/// The thread ran since the last poll: assigns the time before that.
fn settle(parts: &mut Parts, index: SlotIndex, now: u64) {
    parts.threads.get(index).interval = PollInterval::EACH_TICK;
    off_cpu::assign_after_run(parts, index, now);
}

/// Whether the thread runs now on another CPU, or ran all the time except while the sampler had its CPU.
fn is_on_cpu(parts: &mut Parts, index: SlotIndex, reading: Reading) -> bool {
    let Reading { cpu, passed, .. } = reading;
    let tid = parts.threads.get(index).header.tid;
    system::thread_cpu(tid) != Some(cpu)
        || passed.elapsed.saturating_sub(passed.ran) <= parts.schedule.own_turn + SWITCHES
}

fn act(parts: &mut Parts, index: SlotIndex, reading: Reading, step: Step) {
    let now = reading.now;
    match step {
        Step::RequestStack if parts.timers.are_allowed() => {
            timers::watch(parts, index, now, reading.passed.ran);
        }
        Step::RequestStack => send::send(parts, index, now, Purpose::default()),
        Step::ReadSleepingStack(sleep) => read_sleeping(parts, index, reading, sleep),
        Step::ExtendRunningStack => {
            let thread = parts.threads.get(index);
            thread.time.extend_running(&mut parts.events.of(&mut thread.header), now);
        }
        Step::ExtendAsWaiting => off_cpu::assign_without_cpu(parts, index, now, true),
        Step::ExtendLastStack => off_cpu::extend_sleeping(parts, index, now),
        // `poll` handles these, or asks for none of them: long rests are assigned without a look at the state, and the kernel samples no
        // thread from inside.
        Step::ReadState
        | Step::CheckCpu
        | Step::ReuseSleepingStack
        | Step::AwaitStack { .. }
        | Step::AwaitCpu
        | Step::LeaveToKernel => {}
    }
}

/// Reads the stack of a sleeping thread from outside, or signals the thread if only that shows the stack.
fn read_sleeping(parts: &mut Parts, index: SlotIndex, reading: Reading, sleep: Sleep) {
    let Reading { now, cpu, .. } = reading;
    timers::found_asleep(parts, index, &sleep);
    let polled = parts.polled(index);
    match read::read(parts, index, now, cpu, sleep) {
        SleepingStack::None => {}
        SleepingStack::NeedsSignal => {
            let asleep_at = Some(sleep.place);
            send::send(parts, index, now, Purpose { asleep_at, chosen: None });
        }
        SleepingStack::Read(ReadStack { len, cut }) => {
            let thread = parts.threads.get(index);
            parts.task_names.push_polled(&mut parts.events, &mut thread.header, polled);
            let stack = Stack { frames: parts.sleep.frames(len), cut, task: polled.task };
            thread.time.push_sleeping(&mut parts.events.of(&mut thread.header), now, stack);
        }
    }
}
