//! Stacks of running threads, walked from the copy that came with the sample.

use super::super::events::DUMP;
use super::super::files::Files;
use super::super::process::Process;
use super::super::stack::Stack;
use super::super::system::System;
use super::super::thread::Thread;
use super::super::time::Phase;
use super::super::walking::{Walked, Walking};
use super::{ProcessTable, announce};
use stackglass_perf::deep_stack::{DeepStack, SampledStack};
use stackglass_perf::records::Sample;
use stackglass_profile::Recorder;
use stackglass_unwind::walk::{Cut, End};
use stackglass_wire::{Counter, cut};

/// No stack stands for more, ns: half an hour.
const LONGEST_PERIOD: u64 = 1 << 41;
/// Most bytes of a deep stack that are copied.
const DEEP: usize = 8 << 20;

impl ProcessTable {
    pub(super) fn sample(
        &mut self,
        cpu: usize,
        pid: u32,
        tid: u32,
        at: u64,
        sample: &Sample<'_>,
        recorder: &mut Recorder,
    ) {
        // Between fork and exec, the code is this command's.
        if self.starting == Some(pid) {
            return;
        }
        // Its start, or the switch to it, is among lost records. That it runs now is certain.
        let is_lost = match self.threads.get(&tid) {
            Some(thread) => thread.time.phase() == Phase::Unknown && self.on_cpus.thread_on(cpu).is_none(),
            None => true,
        };
        if is_lost {
            self.runs_on(cpu, tid, at);
            self.enter(pid, tid, Phase::Running, at);
        }
        if self.sampling && self.thread(pid, tid, Phase::Running, at).is_some() {
            self.push_stack(tid, at, sample, recorder);
        }
    }

    /// Adds a stack to a thread in the table.
    fn push_stack(&mut self, tid: u32, at: u64, sample: &Sample<'_>, recorder: &mut Recorder) {
        let ProcessTable { system, processes, threads, walking, files, worth, has_deep_stacks, .. } = self;
        // The kernel keeps the first period of an event in its samples.
        let period = self.period.unwrap_or((sample.period as f64 * *worth) as u64).min(LONGEST_PERIOD);
        let Some(thread) = threads.get_mut(&tid) else { return };
        let Some(process) = processes.get_mut(&thread.pid) else { return };
        let Walked { len, cut } = walk(system, process, thread, at, sample, walking, files);
        *has_deep_stacks |= thread.deep.is_some();
        let Some(translator) = process.translator(system, recorder) else { return };
        let Some(id) = translator.intern(&walking.frames[..len], recorder) else { return };
        announce(thread, translator, recorder);
        thread.hit(Stack { id, cut }, at, sample.in_user_code, period);
        if !std::mem::replace(&mut thread.moved, true) {
            self.moved.push(tid);
        }
        self.count(Counter::StacksRunning, 1);
        if cut != 0 {
            self.count(Counter::Cut, 1);
        }
    }
}

/// Walks the stack of a sample into the frames of `walking`.
fn walk(
    system: &System,
    process: &mut Process,
    thread: &mut Thread,
    at: u64,
    sample: &Sample<'_>,
    walking: &mut Walking,
    files: &mut Files,
) -> Walked {
    let Some(registers) = &sample.registers else { return Walked { len: 0, cut: cut::BETWEEN_PROGRAMS } };
    if process.is_between_programs(sample.in_user_code, registers.pc()) {
        return Walked { len: 0, cut: cut::BETWEEN_PROGRAMS };
    }
    let pid = process.pid;
    let Walking { scratch, frames, .. } = walking;
    for _ in 0..3 {
        let mut stack = SampledStack::new(registers.sp(), sample.stack, at, thread.deep.as_deref_mut());
        let Some(walk) = process.mappings.walk((system, pid), registers, &mut stack, scratch, frames) else {
            break;
        };
        let passed_top = stack.passed_top && walk.end == End::Cut(Cut::UnreadableStack);
        if !stack.is_proven() {
            // The copied part is right in any case.
            let mut stack = SampledStack::new(registers.sp(), sample.stack, at, None);
            let len = process
                .mappings
                .walk((system, pid), registers, &mut stack, scratch, frames)
                .map_or(0, |walk| walk.len);
            return Walked { len, cut: cut::DEEP };
        }
        let again = if walk.end == End::Cut(Cut::NoModule) {
            process.scan(system, files)
        } else if passed_top {
            let end = registers.sp().saturating_add(sample.stack.len() as u64);
            let deep = thread.deep.get_or_insert_with(|| Box::new(DeepStack::new(DEEP)));
            let read = |from, into: &mut [u8]| system.read_memory(pid, from, into);
            deep.refresh(at, (registers.sp(), end), || system.now(), read)
        } else {
            false
        };
        if !again {
            let cut = match passed_top {
                // The kernel copies up to the first page that is not in memory.
                true if sample.stack.len() < DUMP => cut::ABSENT,
                true => cut::DEEP,
                false => walk.end.code(),
            };
            return Walked { len: walk.len, cut };
        }
    }
    Walked { len: 1.min(frames.len()), cut: Cut::NoModule as u8 }
}
