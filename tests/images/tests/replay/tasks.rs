//! Await stacks, deadlocks and states of tasks that say where they wait.

use super::programs::TASKS;
use stackglass_inspect::tasks::of_image;
use stackglass_process_view::core_image::CoreImage;
use stackglass_profile::task_dump::{AwaitFrame, AwaitPoint, DumpedTask, TaskDump, TaskState};
use stackglass_symbols::Options;
use std::collections::HashMap;
use stored_images::Opened;

/// All that is found, but for the number of the process.
pub fn facts(image: &CoreImage) -> Vec<String> {
    let TaskDump { runtimes, tasks, locks, deadlocks, remarks, .. } = of_image(image, &Options::default());
    let mut facts = vec![format!("{runtimes:?}"), format!("{deadlocks:?}"), format!("{remarks:?}")];
    facts.extend(tasks.iter().map(|task| format!("{task:?}")));
    facts.extend(locks.iter().map(|lock| format!("{lock:?}")));
    facts
}

/// The lines that end in `// name`, by name.
fn marked(source: &str) -> HashMap<&str, u32> {
    let lines = (1..).zip(source.lines());
    lines
        .filter_map(|(number, line)| {
            Some((line.split_once("; // ").or(line.split_once(".await // "))?.1, number))
        })
        .collect()
}

/// The lines of the program's own source in a stack, outermost first.
fn own_lines(stack: &[AwaitFrame]) -> Vec<u32> {
    let mut lines = Vec::new();
    let mut pending: Vec<&AwaitFrame> = stack.iter().rev().collect();
    while let Some(frame) = pending.pop() {
        if let AwaitPoint::Await(Some((file, line))) = &frame.point
            && file.ends_with("/src/main.rs")
        {
            lines.push(*line);
        }
        pending.extend(frame.children.iter().rev());
    }
    lines
}

#[test]
fn tasks_wait_where_they_say() {
    let opened = Opened::read(TASKS.image);
    let dump = of_image(&opened.image(), &Options::default());
    let lines = marked(&opened.source);
    let line = |name: &str| lines[name];
    let task = |id: u64| dump.tasks.iter().find(|task| task.id == id).expect("it is found");
    let all: Vec<(u64, &str)> = opened
        .said
        .lines()
        .map(|said| said.strip_prefix("task ").and_then(|said| said.split_once(' ')).expect("a task"))
        .map(|(id, rest)| (id.parse().expect("an id"), rest))
        .collect();
    assert_eq!((all.len(), dump.count()), (7, 7));
    for (id, rest) in &all {
        let mut words = rest.split(' ');
        let DumpedTask { state, stack, .. } = task(*id);
        assert_eq!(Some(state.word()), words.next(), "{id}");
        assert_eq!(own_lines(stack), words.map(line).collect::<Vec<_>>(), "{id} {rest}: {stack:#?}");
    }
    let is_root = |task: &&DumpedTask| matches!(task.state, TaskState::BlockOn(_));
    let root = dump.tasks.iter().find(is_root).expect("the future of block_on");
    assert_eq!(own_lines(&root.stack), [line("main")]);
}
