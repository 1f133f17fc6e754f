//! Async tasks in a recording: their frames while they wait, and wall-time profiles.

use crate::{
    AwaitKind, AwaitLocation, Frame, Location, LocationId, Recording, StackId, State, TASK_SNAPSHOTS,
    TASKS_MODULE, Task, TaskId, WAITING, is_await_module,
};
use foldhash::HashMap;

impl Recording {
    /// Whether this is a wall-time profile, in which samples show tasks instead of CPU time of threads.
    pub fn is_walltime(&self) -> bool {
        match self.samples.is_empty() {
            // No task snapshot has succeeded, but some were wanted.
            true => self.processes.iter().any(|process| process.counters.contains_key(TASK_SNAPSHOTS)),
            false => self.samples.iter().all(|sample| sample.state == State::Task),
        }
    }

    /// Whether it has await stacks.
    pub fn has_await_stacks(&self) -> bool {
        self.modules.iter().any(|module| is_await_module(&module.path))
    }

    /// Whether a stack is that of a task that waits.
    pub fn is_waiting(&self, stack: StackId) -> bool {
        let Some(leaf) = self.stacks.walk(stack).next().map(|leaf| self.stacks.location(leaf)) else {
            return false;
        };
        let Some(module) = leaf.module.and_then(|module| self.modules.get(module.0 as usize)) else {
            return false;
        };
        let of_await = AwaitLocation::from_path(&module.path, leaf.offset);
        &*module.path == TASKS_MODULE || of_await.is_some_and(|frame| frame.kind == AwaitKind::Waiting)
    }

    /// Adds the missing frames of await stacks. Returns their locations.
    pub fn name_awaits(&mut self) -> Vec<LocationId> {
        if !self.has_await_stacks() {
            return Vec::new();
        }
        let mut named = Vec::new();
        for (index, Location { module, offset }) in self.stacks.locations().iter().enumerate() {
            let id = LocationId(index as u32);
            let module = module.and_then(|module| self.modules.get(module.0 as usize));
            if let Some(location) = module.and_then(|module| AwaitLocation::from_path(&module.path, *offset))
                && self.symbols.frame_indices(id).is_empty()
            {
                self.symbols.set(id, [location.frame()]);
                named.push(id);
            }
        }
        named
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
