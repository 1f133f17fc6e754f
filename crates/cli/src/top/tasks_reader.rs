//! Reads the tasks for `top` on a thread of its own, so that keys are answered meanwhile.

use super::figures::REFRESH_INTERVAL;
use super::tasks_model::TasksModel;
use stackglass_inspect::tasks::LiveTasks;
use stackglass_profile::task_dump::TaskDump;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::{Duration, Instant};

/// A refresh takes this part of the time at most.
const LARGEST_PART: u32 = 10;

/// Longest time between two refreshes.
const LONGEST_REST: Duration = Duration::from_secs(20);

/// An answer: the tasks and the time it took, or why there are none.
type Answer = Result<(TaskDump, Duration), String>;

/// The thread, once it is wanted.
struct Reader {
    wanted: Sender<()>,
    answers: Receiver<Answer>,
}

/// The tasks of a process, refreshed while they are shown.
pub(super) struct TasksReader {
    pid: u32,
    reader: Option<Reader>,
    /// A refresh is under way.
    is_busy: bool,
    next: Instant,
    pub(super) model: TasksModel,
    /// Why there are no tasks.
    pub(super) problem: Option<String>,
}

impl TasksReader {
    pub(super) fn new(pid: u32) -> TasksReader {
        let (model, next) = (TasksModel::default(), Instant::now());
        TasksReader { pid, reader: None, is_busy: false, next, model, problem: None }
    }

    /// Takes an answer over, and asks for the next one when it is time. Returns whether something changed.
    pub(super) fn advance(&mut self, is_shown: bool) -> bool {
        let changed = self.receive();
        if is_shown && !self.is_busy && Instant::now() >= self.next {
            let pid = self.pid;
            let reader = self.reader.get_or_insert_with(|| start(pid));
            self.is_busy = reader.wanted.send(()).is_ok();
        }
        changed
    }

    fn receive(&mut self) -> bool {
        let Some(reader) = &self.reader else { return false };
        let answer = match reader.answers.try_recv() {
            Ok(answer) => answer,
            Err(TryRecvError::Empty) => return false,
            Err(TryRecvError::Disconnected) => Err("the tasks cannot be read any more".to_owned()),
        };
        self.is_busy = false;
        let now = Instant::now();
        match answer {
            Ok((dump, took)) => {
                self.problem = dump.tasks.is_empty().then(|| {
                    dump.remarks.first().cloned().unwrap_or_else(|| "the process has no tasks".to_owned())
                });
                // The first refresh reads the types.
                let rest = if self.model.is_known() { took * (LARGEST_PART - 1) } else { REFRESH_INTERVAL };
                self.next = now + REFRESH_INTERVAL.saturating_sub(took).max(rest.min(LONGEST_REST));
                self.model.refresh(dump, took, now);
            }
            Err(why) => {
                self.problem = Some(why);
                self.next = now + REFRESH_INTERVAL;
            }
        }
        true
    }
}

/// Starts the thread. It ends with the channel.
fn start(pid: u32) -> Reader {
    let (wanted, requests) = channel();
    let (sender, answers) = channel();
    std::thread::spawn(move || {
        let mut tasks = LiveTasks::new(pid);
        while let Ok(()) = requests.recv() {
            if sender.send(tasks.read().map_err(|error| error.to_string())).is_err() {
                return;
            }
        }
    });
    Reader { wanted, answers }
}
