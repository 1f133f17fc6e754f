//! Threads that have gone to sleep: the stack of each is read at most once for each sleep.

use super::super::sleepers;
use super::super::stack::Stack;
use super::super::time::Phase;
use super::super::walking::Walked;
use super::{ProcessTable, READS, announce, some_of};
use stackglass_profile::Recorder;
use stackglass_wire::Counter;

impl ProcessTable {
    /// Reads the stacks of threads that have gone to sleep.
    pub(in crate::perf_sampler) fn read_sleepers(&mut self, recorder: &mut Recorder) {
        if !self.sampling {
            self.sleepers.clear();
            self.has_read_sleepers = false;
            return;
        }
        let mut sleepers = std::mem::take(&mut self.sleepers);
        sleepers.sort_unstable();
        sleepers.dedup();
        self.has_read_sleepers = !sleepers.is_empty();
        for tid in some_of(&sleepers, self.drain) {
            let ProcessTable { system, processes, threads, walking, files, cost, .. } = self;
            let Some(thread) = threads.get_mut(&tid) else { continue };
            let Some(process) = processes.get_mut(&thread.pid) else { continue };
            if thread.time.phase() != Phase::Asleep {
                continue;
            }
            let walked = sleepers::read(system, process, thread, walking, files, cost);
            let Some((Walked { len, cut }, at)) = walked else { continue };
            let Some(translator) = process.translator(system, recorder) else { continue };
            let Some(id) = translator.intern(&walking.frames[..len], recorder) else { continue };
            announce(thread, translator, recorder);
            thread.asleep_on(Stack { id, cut }, at);
            self.count(Counter::StacksAsleep, 1);
        }
        // The others stay for the next drain.
        if sleepers.len() > READS {
            self.sleepers = sleepers;
        }
    }
}
