//! Async tasks in a recording: their frames while they wait, and wall-time profiles.

use crate::{Frame, Location, LocationId, Recording, State, TASKS_MODULE, Task, TaskId, WAITING};
use foldhash::HashMap;

impl Recording {
    /// Whether this is a wall-time profile, in which samples show tasks instead of CPU time of threads.
    pub fn is_walltime(&self) -> bool {
        !self.samples.is_empty() && self.samples.iter().all(|sample| sample.state == State::Task)
    }

    /// Adds the missing frames of waiting tasks.
    pub fn name_tasks(&mut self) {
        let Some(module) = self.modules.iter().position(|module| &*module.path == TASKS_MODULE) else {
            return;
        };
        let kinds: HashMap<u64, &Task> = self.tasks.iter().map(|task| (task.id.0, task)).collect();
        for (index, Location { module: of, offset }) in self.stacks.locations().iter().enumerate() {
            let id = LocationId(index as u32);
            if of.is_none_or(|of| of.0 as usize != module) || !self.symbols.frame_indices(id).is_empty() {
                continue;
            }
            let frame = match kinds.get(offset) {
                Some(task) => Frame {
                    func: format!("task {}", task.name).into(),
                    file: task.file.clone(),
                    line: if task.line == 0 { -1 } else { task.line.into() },
                    foreign: false,
                    ..Frame::unknown(0)
                },
                None => {
                    let func = if *offset == 0 { WAITING } else { "task without a name" };
                    Frame { func: func.into(), foreign: false, ..Frame::unknown(0) }
                }
            };
            self.symbols.set(id, [frame]);
        }
    }

    /// The task with this id, if it has an entry.
    pub fn task(&self, id: TaskId) -> Option<&Task> {
        self.tasks.iter().find(|task| task.id == id)
    }
}
