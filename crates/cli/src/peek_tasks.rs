//! The async tasks of a process, for a peek: read while the profile is taken, so that the peek takes no longer.
//!
//! A process whose debug information describes no tasks is not touched. Nothing is said where tasks cannot be read:
//! `stackglass tasks` tells why.

use crate::terminal::Layout;
use stackglass_collect::tasks::{self, TasksOptions};
use stackglass_profile::task_dump::TaskDump;
use stackglass_report::TasksText;
use std::io;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Lines of the tasks in a peek.
const ROWS: usize = 24;
/// Longest wait for the tasks after the profile.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// The tasks, on their way.
#[derive(Default)]
pub(crate) struct PeekTasks {
    answer: Option<Receiver<TaskDump>>,
}

impl PeekTasks {
    /// Starts to read them. Only the first call has an effect.
    pub(crate) fn start(&mut self, pid: u32) {
        if self.answer.is_some() {
            return;
        }
        let (sender, answer) = channel();
        self.answer = Some(answer);
        std::thread::spawn(move || {
            if !tasks::may_have_tasks(pid) {
                return;
            }
            let read = tasks::read(pid, &TasksOptions::default());
            if let Some(dump) = read.ok().filter(|dump| !dump.tasks.is_empty()) {
                // The receiver is gone if the peek has ended.
                let _ = sender.send(dump);
            }
        });
    }

    /// The tasks, once. They are waited for, unless the peek ends early.
    pub(crate) fn take(&mut self, early: bool) -> Option<TaskDump> {
        let wait = if early { Duration::ZERO } else { LONGEST_WAIT };
        let (_, gone) = channel();
        let answer = self.answer.as_mut()?;
        std::mem::replace(answer, gone).recv_timeout(wait).ok()
    }
}

/// Writes the tasks in a short form.
pub(crate) fn write(dump: &TaskDump, layout: &Layout, out: &mut Vec<u8>) -> io::Result<()> {
    out.push(b'\n');
    TasksText::new()
        .within_other()
        .cols(layout.short_columns)
        .rows(Some(ROWS))
        .style(layout.style)
        .groups(dump, out)
}
