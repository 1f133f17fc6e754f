//! Looks at one thread at a tick: finds out what it did, and does what [`Observation::next_step`] says.
//!
//! These steps occur here: reuse or read the stack of a sleeping thread, read the state, request a stack, and leave a
//! thread to perf events. Only the driver ptrace requests stops. A thread whose stop is pending is not looked at, and a stop reaches a thread on any CPU or
//! none, so no step awaits a stack or checks for a CPU. A thread that waits for a CPU needs no action: the kernel's
//! account says later how long it waited.

use super::Driver;
use super::calls;
use super::clock::monotonic;
use super::perf_events::Event;
use super::ptrace;
use super::sampled_process::SampledProcess;
use super::sampling_period::SamplingPeriod;
use super::thread::{KernelSampling, StopRequest, WakeUp};
use super::trace_reports::read_samples;
use stackglass_proc_text::{SchedStat, Sleep, SleepPlace, ThreadState};
use stackglass_procfs::Status;
use stackglass_sampling::{LastStack, Observation, PollInterval, Stack, Step};
use stackglass_unwind::Registers;
use stackglass_wire::{Counter, cut};
use std::io;

/// A stop that was not reported for so long is checked, ns.
const STOP_DUE: u64 = 10_000_000;

/// Looks at a thread at a tick that began at `now`. A sleeping thread is looked at again after at most `longest`. False
/// if the thread is gone.
pub(crate) fn poll(process: &mut SampledProcess, index: usize, now: u64, longest: PollInterval) -> bool {
    let tick = process.tick;
    let thread = &mut process.threads[index];
    thread.due = tick + 1;
    if let Some(stop) = &thread.stop {
        // A main thread that ends before the others do does not report that it has stopped.
        let is_overdue = thread.tid == process.pid && now.saturating_sub(stop.at) > STOP_DUE;
        return !is_overdue || is_alive(thread.tid);
    }
    let Some(stat) = thread.files.stat() else { return false };
    process.events.count(Counter::Polls);
    let mut seen = Observation {
        last: thread.time.last(),
        has_run: match thread.time.last() {
            LastStack::Sleeping => stat != thread.stat,
            LastStack::Running => stat.turns != thread.stat.turns,
            LastStack::NoStack | LastStack::Unsampled => true,
        },
        has_long_rest: thread.time.has_long_rest(),
        is_kernel_sampled: thread.sampling.is_some(),
        // A stop reaches a thread wherever it is.
        on_cpu: Some(true),
        ..Observation::default()
    };
    if seen.next_step() == Step::ReadState {
        seen.state = match thread.files.state() {
            ThreadState::Unknown if !is_alive(thread.tid) => return false,
            state => Some(state),
        };
    }
    let step = seen.next_step();
    thread.ready_since = (step == Step::AwaitCpu).then(|| thread.ready_since.unwrap_or(now));
    if step == Step::ReuseSleepingStack {
        reuse(process, index, now, stat, longest, seen.has_long_rest);
        return true;
    }
    thread.interval = PollInterval::EACH_TICK;
    process.moved_at = tick;
    if seen.state == Some(ThreadState::Unknown) {
        return true;
    }
    match step {
        Step::ReadSleepingStack(sleep) => {
            // What it has run since its last sample belongs to the next one.
            read_samples(process, index);
            process.update(index, now);
            read_sleeping(process, index, now, sleep);
            true
        }
        Step::RequestStack => request(process, index, None),
        Step::LeaveToKernel => {
            thread.stat = stat;
            if let Some(KernelSampling { event, period, .. }) = &mut thread.sampling {
                period.renew(event, &mut process.random);
            }
            true
        }
        // When it leaves the CPU again, the kernel's account says how long it waited.
        _ => true,
    }
}

/// Whether a thread whose state cannot be read exists at all.
fn is_alive(tid: u32) -> bool {
    Status::read(tid).is_some_and(|status| !status.has_ended())
}

/// The thread did not run: its last stack gets the time since then, once that is long. Its state was read before.
fn reuse(
    process: &mut SampledProcess,
    index: usize,
    now: u64,
    stat: SchedStat,
    longest: PollInterval,
    has_long_rest: bool,
) {
    process.events.count(Counter::Unmoved);
    let thread = &mut process.threads[index];
    thread.time.account.update_with(now, stat);
    thread.interval = thread.interval.lengthened(longest);
    thread.due = process.tick + thread.interval.ticks();
    if has_long_rest {
        thread.time.push_long_rest(&mut process.events.of(thread.number), now);
    }
}

/// Reads the stack of a sleeping thread from outside. If that does not show the whole stack, requests it once per location:
/// by a stop, or by a breakpoint for the next time that the thread wakes up there.
fn read_sleeping(process: &mut SampledProcess, index: usize, now: u64, sleep: Sleep) {
    let Sleep { place, call } = sleep;
    let walk = process.stacks.walk(&Registers::new(place.pc, place.sp, None));
    let thread = &mut process.threads[index];
    if thread.files.stat() != Some(thread.stat) {
        // It woke up meanwhile, so the stack may mix two moments. The next tick looks again.
        return;
    }
    let tid = thread.tid;
    let cached = if walk.lacks_registers() { process.stacks.cached(tid, place) } else { None };
    let (len, cut, counter) = match cached {
        Some(cached) => (cached.len, cached.cut, Counter::StacksRecognised),
        None => (walk.len, walk.end.code(), Counter::StacksAsleep),
    };
    process.events.count(counter);
    if let Some(sampling) = &mut thread.sampling {
        sampling.sleeps(thread.stat.ran);
    }
    let stack = Stack { frames: process.stacks.frames(len), cut, task: 0 };
    thread.time.push_sleeping(&mut process.events.of(thread.number), now, stack);
    if cached.is_some() || !walk.lacks_registers() || process.stacks.was_tried(tid, place) {
        return;
    }
    match process.driver {
        Driver::Perf => watch_wakeup(process, index, place.pc),
        Driver::Ptrace if call.is_none_or(|call| calls::is_resumed(&call)) => {
            request(process, index, Some(place));
        }
        Driver::Ptrace | Driver::Asleep => {}
    }
}

/// Sets a breakpoint behind the system call in which the thread sleeps. The thread is not stopped; if no breakpoint is
/// left, the rest of its stack stays unknown.
fn watch_wakeup(process: &mut SampledProcess, index: usize, pc: u64) {
    let thread = &mut process.threads[index];
    if thread.wakeup.as_ref().is_none_or(|wakeup| wakeup.pc != pc) {
        // The old one first: a thread has four.
        thread.wakeup = None;
        thread.wakeup = Event::at(thread.tid, pc).ok().map(|event| WakeUp { event, pc });
    }
}

/// Requests a thread's stack: by a perf event of a running thread, or by a stop, as the driver says. False if the thread
/// is gone.
fn request(process: &mut SampledProcess, index: usize, asleep_at: Option<SleepPlace>) -> bool {
    let thread = &mut process.threads[index];
    if thread.is_refused || process.driver == Driver::Asleep {
        return push_refused(process, index);
    }
    if process.driver == Driver::Perf {
        let period = SamplingPeriod::new(process.delay, &mut process.random);
        return match Event::open(thread.tid, period.ns(), thread.deep.is_some()) {
            Ok(event) => {
                let ran_before = thread.stat.ran;
                let (is_exact, ran_at_last) = (false, 0);
                thread.sampling = Some(KernelSampling { event, period, ran_before, is_exact, ran_at_last });
                true
            }
            Err(error) if is_gone(&error) => false,
            Err(_) => {
                thread.is_refused = true;
                push_refused(process, index)
            }
        };
    }
    if thread.repeated.is_some() {
        return true;
    }
    if !thread.is_seized {
        match process.orders.seizing.seize(thread.tid) {
            Ok(()) => {
                thread.is_seized = true;
                // Seizing takes time: the thread may sleep by now, in a call that a stop would interrupt.
                if asleep_at.is_none() && thread.files.state() != ThreadState::Running {
                    return true;
                }
            }
            Err(error) if is_gone(&error) => return false,
            // This process may have traced the thread since before an exec.
            Err(_) if ptrace::interrupt(thread.tid).is_ok() => {
                thread.is_seized = true;
                thread.stop = Some(StopRequest { at: monotonic(), asleep_at });
                return true;
            }
            Err(_) => {
                thread.is_refused = true;
                return push_refused(process, index);
            }
        }
    }
    process.events.count(match asleep_at {
        Some(_) => Counter::SignalsAsleep,
        None => Counter::SignalsRunning,
    });
    thread.stop = Some(StopRequest { at: monotonic(), asleep_at });
    ptrace::interrupt(thread.tid).is_ok()
}

/// The thread runs and is neither traced nor sampled: its time is unsampled, and not sleep.
fn push_refused(process: &mut SampledProcess, index: usize) -> bool {
    let now = monotonic();
    process.update(index, now);
    let thread = &mut process.threads[index];
    thread.time.push_unsampled(&mut process.events.of(thread.number), now, cut::NOT_TAKEN);
    true
}

fn is_gone(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ESRCH)
}
