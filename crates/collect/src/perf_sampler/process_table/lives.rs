//! Threads and processes begin, end, call exec and change their names.

use super::super::process::Process;
use super::super::thread::Thread;
use super::super::time::{Phase, ThreadTime};
use super::{ProcessTable, Settled};
use stackglass_profile::Recorder;
use stackglass_wire::{Event, ThreadName};

impl ProcessTable {
    pub(super) fn fork(&mut self, pid: u32, tid: u32, parent: u32, at: u64) {
        if pid != parent {
            let mut process = match self.processes.get(&parent) {
                Some(parent) => parent.forked(pid, at),
                None => Process::new(pid, parent, at),
            };
            // What runs before the program's exec is this command.
            process.forked |= self.starting == Some(pid);
            self.processes.insert(pid, process);
        }
        self.forks += 1;
        self.ended.remove(&tid);
        self.threads.remove(&tid);
        self.begin(pid, tid, Phase::Ready, at);
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.time = ThreadTime::born(at);
        }
    }

    pub(super) fn exit(&mut self, tid: u32, at: u64, recorder: &mut Recorder) {
        self.on_cpus.forget(tid);
        let Some(mut thread) = self.threads.remove(&tid) else { return };
        if self.of_cpus {
            self.ended.insert(tid);
        }
        self.end(&mut thread, at, recorder);
        let Some(process) = self.processes.get_mut(&thread.pid) else { return };
        process.threads = process.threads.saturating_sub(1);
        if process.threads == 0 {
            process.end(at, recorder);
            self.processes.remove(&thread.pid);
        }
    }

    /// Ends a thread.
    fn end(&mut self, thread: &mut Thread, at: u64, recorder: &mut Recorder) {
        let sampling = self.sampling;
        let Settled { processes, mut settling, .. } = self.settled();
        let Some(process) = processes.get_mut(&thread.pid) else { return };
        if !sampling {
            return;
        }
        settling.settle(thread, process, at, true, recorder);
        let (thread_id, at, cpu) = (thread.number, thread.time.until(), thread.time.assigned());
        if let Some(translator) = process.existing_translator() {
            translator.apply(&Event::ThreadEnd { thread: thread_id, at, cpu, flags: 0 }, recorder);
        }
    }

    /// A process has called exec, as a record of `cpu` says, or as is known from elsewhere.
    pub(super) fn exec(
        &mut self,
        (pid, tid): (u32, u32),
        cpu: Option<usize>,
        phase: Phase,
        at: u64,
        name: ThreadName,
        recorder: &mut Recorder,
    ) {
        let mut others: Vec<u32> = self.threads.values().filter(|t| t.pid == pid).map(|t| t.tid).collect();
        others.sort_unstable();
        let mut carried = None;
        for other in others {
            // The kernel ends all other threads first, on their CPUs.
            if other != tid
                && let Some(doubt) = self.on_cpus.ended_unseen(other, cpu)
            {
                self.doubt(doubt);
            }
            let Some(mut thread) = self.threads.remove(&other) else { continue };
            let is_recorded = self.processes.get(&pid).is_some_and(Process::is_recorded);
            if other == tid && !is_recorded && !thread.has_hits() {
                // The image before is not in the recording: its time belongs to this one.
                carried = Some(thread);
            } else {
                self.end(&mut thread, at, recorder);
            }
        }
        let start = carried.as_ref().map_or(at, |thread| thread.began);
        self.starting.take_if(|starting| *starting == pid);
        let process = match self.processes.get_mut(&pid) {
            Some(before) => {
                before.end(at, recorder);
                before.forget_arguments_since(at, recorder);
                before.exec(start, name)
            }
            None => Process::new(pid, self.system.parent(pid), at).exec(at, name),
        };
        self.processes.insert(pid, process);
        self.begin(pid, tid, phase, start);
        if let (Some(new), Some(before)) = (self.threads.get_mut(&tid), carried) {
            new.time = before.time;
        }
        self.enter(pid, tid, phase, at);
    }

    pub(super) fn rename(&mut self, pid: u32, tid: u32, at: u64, name: ThreadName, recorder: &mut Recorder) {
        let Some(thread) = self.thread(pid, tid, Phase::Unknown, at) else { return };
        thread.name = name;
        let (number, announced) = (thread.number, thread.announced);
        let Some(process) = self.processes.get_mut(&pid) else { return };
        if pid == tid {
            process.name = name;
        }
        if announced && let Some(translator) = process.existing_translator() {
            translator.apply(&Event::ThreadRename { thread: number, at, name }, recorder);
        }
    }
}
