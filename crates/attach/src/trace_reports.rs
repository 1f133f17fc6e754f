//! Receives what tracees report: stops that were requested, signals, group stops and exits. Also reads perf samples.

use super::calls;
use super::clock::{self, monotonic};
use super::interrupted_call::{InterruptedCall, PutBack, RepeatedCall};
use super::perf_events::{Dump, Sample};
use super::ptrace::{self, TraceReport};
use super::sampled_process::SampledProcess;
use super::stack_reader::StackReader;
use super::stream::EventWriter;
use super::thread::{KernelSampling, StopRequest, Thread};
use super::tracking;
use stackglass_perf::deep_stack::DeepStack;
use stackglass_proc_text::{SchedStat, SleepPlace};
use stackglass_sampling::Stack;
use stackglass_unwind::Registers;
use stackglass_unwind::memory::read_process;
use stackglass_unwind::walk::{Cut, End, Walk};
use stackglass_wire::{Counter, cut};
use std::sync::atomic::Ordering::Acquire;

/// How long reports are awaited without sleeping, ns: a wake-up costs the same again.
const AT_ONCE: u64 = 60_000;
/// Longest sleep while a stop is awaited, ns. A SIGCHLD that another thread of this process has taken is missed by no more.
const STOP_SOON: u64 = 1_000_000;
/// Longest sleep while any thread is traced, ns.
const REPORT_SOON: u64 = 10_000_000;
/// How far the kernel's account of a running thread may lag behind, ns: one tick at 100 Hz.
const ACCOUNT_LAG: u64 = 10_000_000;
/// Most bytes of a deep stack that are copied, which may be at each tick.
const DEEP: usize = 1 << 20;

/// What is still to come.
struct Awaited {
    /// There are tracees.
    reports: bool,
    /// A stop was requested.
    stops: bool,
}

/// Receives reports until `moment`, and sleeps in between.
pub(crate) fn receive_until(process: &mut SampledProcess, moment: u64) {
    loop {
        let awaited = receive(process);
        let now = monotonic();
        if now >= moment {
            return;
        }
        if awaited.stops {
            clock::wait_for_report((moment - now).min(STOP_SOON));
        } else if awaited.reports {
            clock::wait_for_report((moment - now).min(REPORT_SOON));
        } else {
            clock::sleep_until(moment.min(now + REPORT_SOON));
        }
        if process.orders.stop.load(Acquire) {
            return;
        }
    }
}

/// Receives the reports that come at once.
pub(crate) fn receive_at_once(process: &mut SampledProcess) {
    let until = monotonic() + AT_ONCE;
    while receive(process).stops && process.orders.cpus > 1 && monotonic() < until {
        std::hint::spin_loop();
    }
}

/// Receives all reports that are there.
fn receive(process: &mut SampledProcess) -> Awaited {
    let mut awaited = Awaited { reports: false, stops: false };
    let mut i = 0;
    while i < process.threads.len() {
        if process.threads[i].sampling.is_some() {
            read_samples(process, i);
        }
        if process.threads[i].wakeup.is_some() {
            read_wakeup(process, i);
        }
        let thread = &process.threads[i];
        let report = if thread.is_seized { report_of(process, thread.tid) } else { None };
        if let Some(TraceReport::Ended) = report {
            tracking::untrack(process, i);
            continue;
        }
        awaited.reports |= thread.is_seized;
        match report {
            Some(report) => handle(process, i, report),
            None => awaited.stops |= thread.stop.is_some(),
        }
        i += 1;
    }
    reap(process);
    awaited.reports |= !process.ending.is_empty();
    awaited
}

/// Reaps threads that are about to end. An exec would wait for ever for one that is not reaped.
fn reap(process: &mut SampledProcess) {
    let mut ending = std::mem::take(&mut process.ending);
    ending.retain(|tid| match report_of(process, *tid) {
        Some(TraceReport::Ended) => {
            process.orders.seizing.ended(*tid);
            false
        }
        Some(TraceReport::Signal(signal)) => ptrace::resume(*tid, signal).is_ok(),
        Some(TraceReport::GroupStopped) => ptrace::leave_stopped(*tid).is_ok(),
        Some(TraceReport::Stopped) => ptrace::resume(*tid, 0).is_ok(),
        None => true,
    });
    process.ending = ending;
}

fn report_of(process: &SampledProcess, tid: u32) -> Option<TraceReport> {
    match process.is_own_child && tid == process.pid {
        true => ptrace::report_of_own_child(tid),
        false => ptrace::report(tid),
    }
}

/// A tracee has stopped: takes its stack if that was requested, and resumes it.
fn handle(process: &mut SampledProcess, index: usize, report: TraceReport) {
    let thread = &mut process.threads[index];
    let tid = thread.tid;
    let stop = thread.stop.take();
    // If the thread has ended meanwhile, the next report says so.
    match report {
        // At once: a signal that is held here when this process is killed would be lost.
        TraceReport::Signal(signal) => {
            thread.repeated = None;
            if let Some(put_back) = thread.put_back.take() {
                put_back.undo(tid, signal);
            }
            drop(ptrace::resume(tid, signal));
        }
        TraceReport::GroupStopped => drop(ptrace::leave_stopped(tid)),
        TraceReport::Stopped | TraceReport::Ended => match (thread.repeated, stop) {
            (Some(repeated), _) => thread.repeated = repeated.advance(tid),
            (None, Some(stop)) => read_stopped(process, index, stop),
            (None, None) => drop(ptrace::resume(tid, 0)),
        },
    }
}

/// Takes the stack of a stopped thread, and resumes the thread.
fn read_stopped(process: &mut SampledProcess, index: usize, stop: StopRequest) {
    let tid = process.threads[index].tid;
    let Ok(registers) = ptrace::registers(tid) else {
        let _ = ptrace::resume(tid, 0);
        return;
    };
    let walk = process.stacks.walk(&Registers::of_stopped(&registers));
    let call = InterruptedCall::from_registers(tid, &registers);
    let now = monotonic();
    process.update(index, now);
    // A thread may be stopped again before it has repeated its call: a signal must still be able to end that call.
    let is_put_back = process.threads[index].put_back.is_some_and(|before| before.is_there(&registers));
    if !is_put_back {
        process.threads[index].put_back = match call {
            Some(InterruptedCall::Failed | InterruptedCall::Confined) => {
                PutBack::new(process.stacks.living(), tid, &registers)
            }
            _ => None,
        };
        let is_whole = process.threads[index].put_back.is_some();
        if calls::may_be_cut_short(&registers, call == Some(InterruptedCall::Failed) && !is_whole) {
            let repeated = RepeatedCall::begin(process.stacks.living(), tid, &registers);
            process.threads[index].repeated = repeated;
            if repeated.is_none() {
                process.events.count(Counter::CallsCutShort);
            }
        }
    }
    if process.threads[index].repeated.is_none() {
        let _ = ptrace::resume(tid, 0);
    }
    // The stop took time in which the thread was ready to run.
    let thread = &mut process.threads[index];
    thread.time.account.add_waited(monotonic().saturating_sub(stop.at));
    let here = SleepPlace { pc: registers.rip, sp: registers.rsp };
    let slept_at = stop.asleep_at.filter(|place| *place == here || call.is_some());
    if let Some(place) = slept_at {
        process.stacks.store(tid, place, &walk);
    }
    let stack = Stack { frames: process.stacks.frames(walk.len), cut: walk.end.code(), task: 0 };
    if slept_at.is_some() || call.is_some() {
        return thread.time.push_sleeping(&mut process.events.of(thread.number), now, stack);
    }
    push_running(&mut process.events, thread, now, stack);
}

/// A stack taken while the thread ran. What the thread slept since the last observation, at an unknown place, goes to the last stack.
fn push_running(events: &mut EventWriter, thread: &mut Thread, at: u64, stack: Stack<'_>) {
    events.count(Counter::StacksRunning);
    let sink = &mut events.of(thread.number);
    thread.time.extend_sleeping(sink, at);
    thread.time.push_running(sink, at, stack);
}

/// Reads the samples that a thread's perf event has taken.
pub(crate) fn read_samples(process: &mut SampledProcess, index: usize) {
    let Some(mut sampling) = process.threads[index].sampling.take() else { return };
    let KernelSampling { event, period, ran_before, is_exact, ran_at_last } = &mut sampling;
    let mut stat = None;
    let mut is_too_deep = false;
    let mut dump = std::mem::take(&mut process.dump);
    while let Some(sample) = event.next(&mut dump) {
        let thread = &mut process.threads[index];
        let (walk, reason) = walk_sample(&mut process.stacks, &sample, &dump, thread.deep.as_deref_mut());
        is_too_deep |= reason == cut::DEEP;
        let stat = *stat.get_or_insert_with(|| thread.files.stat().unwrap_or(thread.stat));
        // The kernel's account lags behind by up to one of its ticks; two clocks also differ a little.
        let ran = (*ran_before + sample.ran).min(stat.ran + ACCOUNT_LAG);
        let ran = if *is_exact { ran } else { ran.max(stat.ran) };
        // The kernel left out the samples that it would have taken in its own code.
        let passed = sample.ran.saturating_sub(*ran_at_last);
        let worth = period.worth(*ran_at_last, sample.ran);
        *ran_at_last = sample.ran;
        if event.is_user_only && passed.saturating_sub(worth) > period.ns() / 2 {
            let ran = ran.saturating_sub(worth);
            process.update_with(index, sample.at, SchedStat { ran, ..stat });
            let thread = &mut process.threads[index];
            let sink = &mut process.events.of(thread.number);
            thread.time.push_unsampled(sink, sample.at, cut::IN_KERNEL);
        }
        process.update_with(index, sample.at, SchedStat { ran, ..stat });
        let stack = Stack { frames: process.stacks.frames(walk.len), cut: reason, task: 0 };
        push_running(&mut process.events, &mut process.threads[index], sample.at, stack);
    }
    process.dump = dump;
    let thread = &mut process.threads[index];
    // With the next sample, more of the stack is copied.
    let may_copy_more = is_too_deep && thread.deep.is_none();
    if may_copy_more {
        thread.deep = Some(Box::new(DeepStack::new(DEEP)));
    }
    thread.sampling = (!may_copy_more).then_some(sampling);
}

/// Walks the stack of a sample. Also returns why it is cut, 0 if it is not.
fn walk_sample(
    stacks: &mut StackReader,
    sample: &Sample,
    dump: &Dump,
    mut deep: Option<&mut DeepStack>,
) -> (Walk, u8) {
    for _ in 0..2 {
        let mut stack = dump.stack(sample.at, deep.as_deref_mut());
        let walk = stacks.walk_in(&sample.registers, &mut stack);
        let is_cut = stack.passed_top && walk.end == End::Cut(Cut::UnreadableStack);
        if !stack.is_proven() {
            break;
        }
        let living = stacks.living() as i32;
        let is_read_now = is_cut
            && deep.as_deref_mut().is_some_and(|deep| {
                let place = (dump.start(), dump.end());
                deep.refresh(sample.at, place, monotonic, |at, into| read_process(living, at, into))
            });
        if !is_read_now {
            return (walk, if is_cut { cut::DEEP } else { walk.end.code() });
        }
    }
    // The copied part is right in any case.
    (stacks.walk_in(&sample.registers, &mut dump.stack(sample.at, None)), cut::DEEP)
}

/// Reads the stack that a thread had when it woke up, for the next time that it sleeps there.
fn read_wakeup(process: &mut SampledProcess, index: usize) {
    let Some(mut wakeup) = process.threads[index].wakeup.take() else { return };
    let mut dump = std::mem::take(&mut process.dump);
    match wakeup.event.next(&mut dump) {
        Some(sample) => {
            let walk = process.stacks.walk_in(&sample.registers, &mut dump.stack(sample.at, None));
            let place = SleepPlace { pc: sample.registers.pc(), sp: sample.registers.sp() };
            process.stacks.store_copied(process.threads[index].tid, place, &walk, &dump);
        }
        None => process.threads[index].wakeup = Some(wakeup),
    }
    process.dump = dump;
}
