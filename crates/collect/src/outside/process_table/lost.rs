//! Recovery after records were lost, because they were not read in time.

use super::super::process::Process;
use super::super::time::Phase;
use super::ProcessTable;
use crate::recording::recorder::Recorder;
use stackglass_procfs::clock::monotonic;
use stackglass_sampling::ThreadState;

impl ProcessTable {
    /// Reads from /proc what the lost records would have reported: which threads there are, and what they do.
    pub(in crate::outside) fn recover_lost(&mut self, recorder: &mut Recorder) {
        if !std::mem::take(&mut self.lost_now) {
            return;
        }
        let until = self.until;
        let tids: Vec<u32> = self.threads.keys().copied().collect();
        for tid in tids {
            let Some(thread) = self.threads.get_mut(&tid) else { continue };
            let pid = thread.pid;
            let (Some(stat), state) = (thread.files.stat(), thread.files.state()) else {
                self.exit(tid, until, recorder);
                continue;
            };
            match state {
                ThreadState::Running => thread.enter(Phase::Running, until),
                ThreadState::Asleep(_) => thread.enter(Phase::Asleep, until),
                ThreadState::Unknown => {}
            }
            thread.time.bound(stat.ran, &self.cost);
            let name = thread.files.name().unwrap_or_default();
            self.sleepers.push(tid);
            if pid == tid && self.processes.get(&pid).is_some_and(Process::has_another_file) {
                self.exec(pid, tid, until, name, recorder);
            }
            if let Some(process) = self.processes.get_mut(&pid) {
                process.scan(monotonic(), &mut self.files);
            }
        }
    }
}
