//! Threads that have fallen asleep: each is read once in a sleep at most.

use super::super::sleepers;
use super::super::time::Phase;
use super::{Tree, announce};
use crate::recording::recorder::Recorder;
use stackglass_wire::Counter;

/// Largest number of threads that are read in one drain.
const LOOKS: usize = 64;

impl Tree {
    /// Reads the stacks of threads that have fallen asleep.
    pub(in crate::outside) fn read_sleepers(&mut self, recorder: &mut Recorder) {
        if !self.sampling {
            self.sleepers.clear();
            self.looked = false;
            return;
        }
        let mut sleepers = std::mem::take(&mut self.sleepers);
        sleepers.sort_unstable();
        sleepers.dedup();
        // If there are too many, different ones in each drain.
        let from = self.drain as usize * LOOKS % sleepers.len().max(1);
        let looks = sleepers.len().min(LOOKS);
        self.looked = looks > 0;
        for i in 0..looks {
            let tid = sleepers[(from + i) % sleepers.len()];
            let Tree { processes, threads, walking, files, cost, .. } = self;
            let Some(thread) = threads.get_mut(&tid) else { continue };
            let Some(process) = processes.get_mut(&thread.pid) else { continue };
            if thread.time.phase() != Phase::Asleep {
                continue;
            }
            let look = sleepers::look(process, thread, walking, files, cost);
            let Some((len, reason)) = look else { continue };
            let Some(image) = process.image(recorder) else { continue };
            let Some(stack) = image.intern(&walking.frames[..len], recorder) else { continue };
            announce(thread, image, recorder);
            thread.asleep_on((stack, reason));
            self.count(Counter::StacksAsleep, 1);
        }
        // Threads that were not reached are read in the next drain.
        if looks < sleepers.len() {
            self.sleepers = sleepers;
        }
    }
}
