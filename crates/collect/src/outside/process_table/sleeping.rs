//! Threads that have gone to sleep: the stack of each is read at most once for each sleep.

use super::super::sleepers;
use super::super::thread::Stack;
use super::super::time::Phase;
use super::super::walking::Walked;
use super::{ProcessTable, announce};
use crate::recording::recorder::Recorder;
use stackglass_wire::Counter;

/// Sleeping threads that are read in one drain.
const READS: usize = 64;

impl ProcessTable {
    /// Reads the stacks of threads that have gone to sleep.
    pub(in crate::outside) fn read_sleepers(&mut self, recorder: &mut Recorder) {
        if !self.sampling {
            self.sleepers.clear();
            self.has_looked = false;
            return;
        }
        let mut sleepers = std::mem::take(&mut self.sleepers);
        sleepers.sort_unstable();
        sleepers.dedup();
        // If there are more than that, other ones in each drain.
        let from = self.drain as usize * READS % sleepers.len().max(1);
        let reads = sleepers.len().min(READS);
        self.has_looked = reads > 0;
        for i in 0..reads {
            let tid = sleepers[(from + i) % sleepers.len()];
            let ProcessTable { processes, threads, walking, files, cost, .. } = self;
            let Some(thread) = threads.get_mut(&tid) else { continue };
            let Some(process) = processes.get_mut(&thread.pid) else { continue };
            if thread.time.phase() != Phase::Asleep {
                continue;
            }
            let walked = sleepers::read(process, thread, walking, files, cost);
            let Some((Walked { len, cut }, at)) = walked else { continue };
            let Some(image) = process.image(recorder) else { continue };
            let Some(id) = image.intern(&walking.frames[..len], recorder) else { continue };
            announce(thread, image, recorder);
            thread.asleep_on(Stack { id, cut }, at);
            self.count(Counter::StacksAsleep, 1);
        }
        // The others stay for the next drain.
        if reads < sleepers.len() {
            self.sleepers = sleepers;
        }
    }
}
