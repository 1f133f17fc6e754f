//! Chunks of async tasks. Samples may refer to any task id; the tasks listed here have names.

use super::bytes::{Body, Malformed, Source};
use super::tables::{TextWriter, process_at, put, text_at};
use stackglass_profile::{Nanos, Task, TaskId};
use std::sync::Arc;

/// Adds the row of a task.
pub(crate) fn write_task(body: &mut Body, texts: &mut TextWriter, index: usize, task: &Task) {
    body.number(index as u64);
    body.number(task.process.0.into());
    body.number(task.id.0);
    body.number(texts.id(&task.name));
    body.number(texts.id(&task.file));
    body.number(task.line.into());
    body.number(task.waited.0);
    body.weight += 1;
}

/// Reads rows of tasks.
pub(crate) fn read_tasks(
    mut source: Source<'_>,
    texts: &[Arc<str>],
    processes: usize,
    tasks: &mut Vec<Task>,
) -> Result<(), Malformed> {
    while source.remaining() > 0 {
        source.spend(1)?;
        let index = source.number()?;
        let task = Task {
            process: process_at(&mut source, processes, "task")?,
            id: TaskId(source.number()?),
            name: text_at(&mut source, texts)?,
            file: text_at(&mut source, texts)?,
            line: source.number32()?,
            waited: Nanos(source.number()?),
        };
        put(&source, tasks, index, task, "task")?;
    }
    Ok(())
}
