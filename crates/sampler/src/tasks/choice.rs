//! The state of a wall-time profile: which task is sampled next, and for how much time a sample stands.

use crate::signals::pending::ChosenTask;
use stackglass_host::task::{Polled, TaskEntry, TaskPool};
use stackglass_sampling::{Random, hash};

/// Random entries of the table that are tried before a pass over all of them.
const TRIES: u32 = 64;

/// The state between two ticks.
#[derive(Default)]
pub(crate) struct Walltime {
    /// This is a wall-time profile.
    pub(crate) is_on: bool,
    /// When the last task was chosen.
    last: u64,
    /// Time of samples that found nothing, for the next one.
    unused: u64,
    /// When sampling began: nothing is known of waits before.
    pub(crate) began: u64,
    random: Random,
}

/// A live task and its entry.
pub(crate) struct LiveTask {
    pub(crate) entry: &'static TaskEntry,
    pub(crate) polled: Polled,
}

impl Walltime {
    /// No sample yet.
    pub(crate) fn new(is_on: bool) -> Walltime {
        Walltime { is_on, ..Walltime::default() }
    }

    /// Sampling begins.
    pub(crate) fn begin(&mut self, now: u64) {
        // Another seed than that of the ticks: which task is sampled must not depend on when.
        let random = Random::new(hash(&[now]));
        *self = Walltime { is_on: self.is_on, last: now, unused: 0, began: now, random };
    }

    /// The time that a sample at `now` stands for.
    pub(crate) fn take_time(&mut self, now: u64) -> u64 {
        let time = self.unused + now.saturating_sub(self.last);
        (self.last, self.unused) = (now, 0);
        time
    }

    /// The sample found nothing: its time goes to the next one.
    pub(crate) fn put_back(&mut self, chosen: ChosenTask) {
        self.unused += chosen.time;
    }

    /// A random number below `n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.random.below(n as u64) as usize
    }

    /// A live task, each as likely as the others.
    pub(crate) fn choose(&mut self, pool: &'static TaskPool) -> Option<LiveTask> {
        let used = pool.entries_used();
        let live = |number: u32| {
            let entry = pool.entry(number)?;
            let task = entry.id();
            (task != 0).then_some(LiveTask { entry, polled: Polled { task, entry: number } })
        };
        if used == 0 {
            return None;
        }
        for _ in 0..TRIES {
            let number = self.random.below(used.into()) as u32 + 1;
            if let Some(task) = live(number) {
                return Some(task);
            }
        }
        // Few entries are live. In one pass, the nth live task replaces the chosen one with probability 1 / n.
        let (mut chosen, mut met) = (None, 0);
        for task in (1..=used).filter_map(live) {
            met += 1;
            if self.random.below(met) == 0 {
                chosen = Some(task);
            }
        }
        chosen
    }
}
