//! Which async task each thread polls, and what the tasks are called.
//!
//! A thread that polls tasks takes a cell of the pool and writes into it what it polls (`host/src/task.rs`), sampled or not.
//! Cells and slots are linked here by kernel id, so that the handler finds the cell of the thread that it interrupts. A
//! task's name is pushed with its first sample: it is copied while the task is polled, because the task may end soon after.

use crate::event_writer::EventWriter;
use crate::threads::table::{ThreadHeader, ThreadTable};
use stackglass_host::task::{self, Polled, TaskText};
use stackglass_host::{Guest, system};

/// What was linked, and for which run of the sampler.
#[derive(Default)]
pub(crate) struct TaskNames {
    /// Claims of cells when cells and slots were last linked.
    claims: u32,
    /// A thread was added since.
    is_stale: bool,
    /// Number of this run of the sampler; 0 before the first link.
    run: u32,
}

impl TaskNames {
    /// A thread was added: its cell may be there already.
    pub(crate) fn thread_added(&mut self) {
        self.is_stale = true;
    }

    /// Links cells and slots, if anything has changed.
    pub(crate) fn link(&mut self, guest: &Guest, threads: &ThreadTable) {
        let Some(pool) = task::pool() else { return };
        if self.run == 0 {
            *self = TaskNames { is_stale: true, run: pool.begin_run(), claims: 0 };
        }
        let claims = pool.claims();
        if claims == self.claims && !self.is_stale {
            return;
        }
        (self.claims, self.is_stale) = (claims, false);
        for cell in pool.cells() {
            let owner = cell.owner();
            if owner != 0
                && let Some(index) = threads.lookup(owner)
            {
                guest.slot(index).set_cell(cell);
            }
        }
    }

    /// Pushes the name of the task that a sleeping thread polls, if it was not pushed yet.
    pub(crate) fn push_polled(&self, events: &mut EventWriter, header: &mut ThreadHeader, polled: Polled) {
        self.push(events, header, polled, task::unsent_text(polled));
    }

    /// Pushes a task's name, which was copied because it was not pushed yet.
    pub(crate) fn push(
        &self,
        events: &mut EventWriter,
        header: &mut ThreadHeader,
        polled: Polled,
        text: Option<TaskText>,
    ) {
        let Some(text) = text else { return };
        if events.push_task(header, system::now(), polled.task, &text)
            && let Some(entry) = task::pool().and_then(|pool| pool.entry(polled.entry))
        {
            entry.set_text_sent(polled.task, self.run);
        }
    }
}
