//! Recovery after records were lost, because they were not read in time.

use super::super::process::Process;
use super::super::time::Phase;
use super::ProcessTable;
use stackglass_proc_text::ThreadState;
use stackglass_profile::Recorder;

impl ProcessTable {
    /// Reads from /proc what the lost records would have reported: which threads there are, and what they do.
    pub(in crate::perf_sampler) fn recover_lost(&mut self, recorder: &mut Recorder) {
        if !std::mem::take(&mut self.lost_now) {
            return;
        }
        // The last drain has no end.
        let until = self.until.min(self.system.now());
        if self.of_cpus {
            self.find_lost_children(until);
        }
        let mut tids: Vec<u32> = self.threads.keys().copied().collect();
        tids.sort_unstable();
        for tid in tids {
            let Some(thread) = self.threads.get_mut(&tid) else { continue };
            let pid = thread.pid;
            let files = &mut thread.files;
            let (Some(stat), state) = (self.system.account(tid, files), self.system.state(tid, files)) else {
                self.exit_unseen(tid, until, recorder);
                continue;
            };
            if thread.time.phase() != Phase::Running {
                thread.time.read(stat, self.system.now(), &mut self.cost);
            }
            if thread.time.phase() == Phase::Unknown && matches!(state, ThreadState::Asleep(_)) {
                thread.enter(Phase::Asleep, until);
            }
            let name = self.system.thread_name(tid, &thread.files).unwrap_or_default();
            self.sleepers.push(tid);
            let has_another_file = |process: &Process| process.has_another_file(&self.system);
            if pid == tid && self.processes.get(&pid).is_some_and(has_another_file) {
                let is_asleep = matches!(state, ThreadState::Asleep(_));
                let phase = if is_asleep { Phase::Asleep } else { Phase::Unknown };
                self.exec((pid, tid), None, phase, until, name, recorder);
            }
            if let Some(process) = self.processes.get_mut(&pid) {
                process.scan(&self.system, &mut self.files);
            }
        }
    }

    /// Ends threads that have ended without a record of it. The kernel reports a loss with the next record, and there may be none.
    pub(super) fn end_unseen(&mut self, at: u64, recorder: &mut Recorder) {
        let mut tids: Vec<u32> = self.threads.keys().copied().collect();
        tids.sort_unstable();
        for tid in tids {
            let Some(thread) = self.threads.get_mut(&tid) else { continue };
            if self.system.account(tid, &mut thread.files).is_none() {
                self.exit_unseen(tid, at, recorder);
            }
        }
    }

    /// A thread has ended, and no record says when. What it did since the last record of its CPU is not known.
    fn exit_unseen(&mut self, tid: u32, at: u64, recorder: &mut Recorder) {
        if let Some(doubt) = self.on_cpus.ended_unseen(tid, None) {
            self.doubt(doubt);
        }
        self.exit(tid, at, recorder);
    }

    /// Adds children whose start is among the lost records.
    fn find_lost_children(&mut self, at: u64) {
        let mut pids: Vec<u32> = self.processes.keys().copied().collect();
        pids.sort_unstable();
        while let Some(pid) = pids.pop() {
            for child in self.system.children(pid) {
                if self.processes.contains_key(&child) {
                    continue;
                }
                let mut process = Process::new(child, pid, at);
                process.scan(&self.system, &mut self.files);
                self.processes.insert(child, process);
                for tid in self.system.threads(child) {
                    self.begin(child, tid, Phase::Unknown, at);
                }
                pids.push(child);
            }
        }
    }
}
