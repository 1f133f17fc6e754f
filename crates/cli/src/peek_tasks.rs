//! The async tasks of a process, and which of its threads wait for which others, for a peek. They are read while the profile is taken,
//! so that the peek takes no longer.
//!
//! A process whose debug information describes no tasks, and that names none, is not touched: its threads are read where they sleep.
//! If tasks cannot be read, one line says so, and the peek goes on.

use crate::message;
use crate::terminal::Layout;
use stackglass_inspect::tasks::{self, TasksOptions};
use stackglass_inspect::thread_waits;
use stackglass_procfs::process::is_alive;
use stackglass_profile::Recording;
use stackglass_profile::task_dump::TaskDump;
use stackglass_profile::thread_waits::ThreadWaits;
use stackglass_report::{Peek, TasksText};
use stackglass_symbols::Options;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Lines of the tasks in a peek.
const ROWS: usize = 24;
/// Longest wait for the tasks after the profile.
const LONGEST_WAIT: Duration = Duration::from_secs(20);

/// The tasks, or why they cannot be read.
type Answer = Result<Option<TaskDump>, String>;

/// The tasks, on their way.
#[derive(Default)]
pub(crate) struct PeekTasks {
    answer: Option<Receiver<Answer>>,
    waits: Option<Receiver<ThreadWaits>>,
    pid: u32,
}

impl PeekTasks {
    /// Starts to read them. Only the first call has an effect.
    pub(crate) fn start(&mut self, pid: u32) {
        if self.answer.is_some() {
            return;
        }
        let (sender, answer) = channel();
        let (waits_sender, waits) = channel();
        (self.answer, self.waits, self.pid) = (Some(answer), Some(waits), pid);
        std::thread::spawn(move || {
            // The receivers are gone if the peek has ended.
            let _ = waits_sender.send(thread_waits::read(pid, &Options::default()));
            let _ = sender.send(read(pid));
        });
    }

    /// Which threads wait for which others, once. They are waited for, unless the peek ends early.
    pub(crate) fn take_waits(&mut self, early: bool) -> ThreadWaits {
        let wait = if early { Duration::ZERO } else { LONGEST_WAIT };
        self.waits.take().and_then(|waits| waits.recv_timeout(wait).ok()).unwrap_or_default()
    }

    /// The tasks, once. They are waited for, unless the peek ends early.
    pub(crate) fn take(&mut self, early: bool) -> Option<TaskDump> {
        let wait = if early { Duration::ZERO } else { LONGEST_WAIT };
        let (_, gone) = channel();
        let answer = self.answer.as_mut()?;
        let why = match std::mem::replace(answer, gone).recv_timeout(wait) {
            Ok(Ok(dump)) => return dump,
            Ok(Err(why)) => why,
            Err(RecvTimeoutError::Timeout) => {
                format!("that takes more than {LONGEST_WAIT:?}; try `stackglass tasks {}`", self.pid)
            }
            Err(RecvTimeoutError::Disconnected) => return None,
        };
        // That the process has ended is said anyway.
        if !early && is_alive(self.pid) {
            message::print(&format!("its async tasks cannot be read: {why}"));
        }
        None
    }
}

fn read(pid: u32) -> Answer {
    if !tasks::may_have_tasks(pid).map_err(|error| format!("its program cannot be read ({error})"))? {
        return Ok(None);
    }
    let dump = tasks::read(pid, &TasksOptions::default()).map_err(|error| error.to_string())?;
    Ok(Some(dump).filter(|dump| !dump.tasks.is_empty()))
}

/// Writes which threads wait for which others. They have the numbers of `recording`.
pub(crate) fn write_waits(
    waits: &ThreadWaits,
    recording: Option<&Recording>,
    layout: &Layout,
    out: &mut Vec<u8>,
) -> io::Result<()> {
    let peek = Peek::new(Duration::ZERO).cols(layout.columns).style(layout.style);
    peek.waits(waits, recording, out)
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
