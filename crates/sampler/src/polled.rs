//! Which async task each thread polls, and what tasks are called.
//!
//! A thread that polls tasks takes a cell of the pool and says in it what it polls (`host::task`), whether anybody samples
//! or not. Here cells and slots are brought together by kernel id, so that the handler finds the cell of the thread it
//! interrupts. A task's name travels with the first sample of it: whoever takes that stack copies the name, since the
//! task is there at that moment and may be gone a little later.

use crate::sampler::Sampler;
use stackglass_host::task::{self, Polled, TaskText};
use stackglass_host::{SlotIndex, system};

/// What is remembered between ticks.
#[derive(Default)]
pub(crate) struct Links {
    /// Claims of cells when cells and slots were last brought together.
    claims: u32,
    /// A thread was taken up since.
    pub(crate) stale: bool,
    /// Number of this run of the sampler.
    run: u32,
}

impl Sampler {
    /// Brings cells and slots together, where something has changed.
    pub(crate) fn link_tasks(&mut self) {
        let Some(pool) = task::pool() else { return };
        if self.links_of_tasks.run == 0 {
            self.links_of_tasks = Links { stale: true, run: pool.begin_run(), ..Links::default() };
        }
        let claims = pool.claims();
        if claims == self.links_of_tasks.claims && !self.links_of_tasks.stale {
            return;
        }
        (self.links_of_tasks.claims, self.links_of_tasks.stale) = (claims, false);
        for cell in pool.cells() {
            let owner = cell.owner();
            if owner != 0
                && let Some(index) = self.memory.roster.find(owner)
            {
                self.guest.slot(index).set_cell(cell);
            }
        }
    }

    /// What a thread that sleeps polls, and the task's name if it was not told yet.
    pub(crate) fn polled(&self, index: SlotIndex) -> (Polled, Option<TaskText>) {
        let polled = self.guest.slot(index).polled();
        (polled, task::untold(polled))
    }

    /// Tells a task's name.
    pub(crate) fn tell_task(&mut self, index: SlotIndex, polled: Polled, text: Option<TaskText>) {
        let Some(text) = text else { return };
        let thread = self.memory.roster.get(index);
        if self.outlet.task_start(thread, system::now(), polled.task, &text)
            && let Some(entry) = task::pool().and_then(|pool| pool.entry(polled.entry))
        {
            entry.set_text_sent(polled.task, self.links_of_tasks.run);
        }
    }
}
