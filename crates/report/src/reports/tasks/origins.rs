//! Where tasks come from, and how their stacks were found: given names, places of creation, sources.

use super::TasksText;
use super::groups::TaskGroup;
use super::lines::{NAMED, note, place_text};
use crate::text::columns::wrap;
use crate::text::numbers::counted;
use crate::text::style::{Line, Paint};
use stackglass_profile::sanitize;
use stackglass_profile::task_dump::{AwaitSource, TaskDump};
use std::io::{self, Write};
use std::sync::Arc;

/// The distinct names that the program has given to the tasks of a group.
pub(super) fn given_names<'a>(dump: &'a TaskDump, group: &TaskGroup<'_>) -> Vec<&'a str> {
    distinct(group.tasks.iter().filter_map(|task| dump.tasks[*task].given_name.as_deref()))
}

/// The distinct places where the tasks of a group were created.
pub(super) fn created<'a>(dump: &'a TaskDump, group: &TaskGroup<'_>) -> Vec<&'a (Arc<str>, u32)> {
    distinct(group.tasks.iter().filter_map(|task| dump.tasks[*task].created.as_ref()))
}

/// In the order in which they come first.
fn distinct<T: Copy + Eq + std::hash::Hash>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = std::collections::HashSet::new();
    values.filter(|value| seen.insert(*value)).collect()
}

/// `named "a", "b"; created at main.rs:12`.
pub(super) fn write(
    text: &TasksText,
    dump: &TaskDump,
    group: &TaskGroup<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let most = if text.everything { usize::MAX } else { NAMED };
    let listed = |all: Vec<String>| {
        let more = if all.len() > most { ", …" } else { "" };
        all.into_iter().take(most).collect::<Vec<_>>().join(", ") + more
    };
    let quoted = |name: &&str| format!("\"{}\"", sanitize(name));
    let names = listed(given_names(dump, group).iter().map(quoted).collect());
    let places = listed(created(dump, group).iter().map(|(file, line)| place_text(file, *line)).collect());
    let parts = [("named", names), ("created at", places)];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(_, list)| !list.is_empty())
        .map(|(word, list)| format!("{word} {list}"))
        .collect();
    match parts.is_empty() {
        true => Ok(()),
        false => note(text, &parts.join("; "), out),
    }
}

/// How to get better stacks, where some were not found by types. One paragraph at the end of a report.
pub(super) fn write_sources(text: &TasksText, dump: &TaskDump, out: &mut dyn Write) -> io::Result<()> {
    let Some(advice) = advice(dump) else { return Ok(()) };
    out.write_all(b"\n")?;
    for line in wrap(&advice, text.cols) {
        Line::from_text(Paint::Grey, line).write(text.style, out)?;
    }
    Ok(())
}

fn advice(dump: &TaskDump) -> Option<String> {
    let names = dump.tasks.iter().filter(|task| task.source == AwaitSource::RootName).count() as u64;
    if names == 0 {
        return None;
    }
    // Where the own crate has types, it is a dependency that has none.
    let has_types = dump.tasks.iter().any(|task| task.source == AwaitSource::Types);
    let types = match has_types {
        true => "`debug = 2` in the Cargo profile of the crate that spawns them",
        false => "`debug = 2` in the Cargo profile of the program's own crate",
    };
    Some(format!(
        "Of {}, at most the function or the place of creation is known. {types} shows their await stacks.",
        counted(names, "task", "tasks"),
    ))
}

/// The word for a source in JSON.
pub(super) fn source_word(source: AwaitSource) -> &'static str {
    match source {
        AwaitSource::Types => "types",
        AwaitSource::RootName => "root name",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackglass_profile::Nanos;
    use stackglass_profile::task_dump::{AwaitFrame, AwaitPoint, DumpedTask, PollingThread, TaskState};

    fn text(dump: &TaskDump, cols: usize) -> String {
        let mut out = Vec::new();
        TasksText::new().cols(cols).groups(dump, &mut out).expect("memory can be written");
        String::from_utf8(out).expect("it is text")
    }

    fn task(id: u64, name: &str, waited: u64) -> DumpedTask {
        DumpedTask {
            id,
            name: "app::serve".into(),
            given_name: Some(name.into()),
            created: Some(("src/main.rs".into(), 12)),
            waited: Some(Nanos(waited)),
            ..DumpedTask::default()
        }
    }

    #[test]
    fn names_places_and_waits_are_shown() {
        let tasks = vec![task(1, "a", 2_000_000_000), task(2, "b", 31_000_000_000), task(3, "a", 0)];
        let text = text(&TaskDump { tasks, ..TaskDump::default() }, 80);
        assert!(text.contains("3 tasks waiting for up to 31"), "{text}");
        assert!(text.contains("named \"a\", \"b\"; created at main.rs:12\n"), "{text}");
        assert!(!text.contains("debug = 2"), "{text}");
    }

    #[test]
    fn sources_are_said_once_at_the_end() {
        let of = |id, source| DumpedTask { source, ..task(id, "a", 0) };
        let tasks = vec![of(2, AwaitSource::RootName), of(3, AwaitSource::Types)];
        for cols in [80, 60] {
            let text = text(&TaskDump { tasks: tasks.clone(), ..TaskDump::default() }, cols);
            assert_eq!(text.matches("debug = 2").count(), 1, "{text}");
            assert!(text.lines().all(|line| line.chars().count() <= cols), "{text}");
            let last = text.split("\n\n").last().expect("a paragraph").replace('\n', " ");
            assert!(
                last.starts_with("Of 1 task, at most the function or the place of creation is known."),
                "{text}"
            );
        }
    }

    #[test]
    fn tasks_that_block_come_before_all_groups() {
        let frame = |func: &str, file: &str, line| stackglass_profile::Frame {
            func: func.into(),
            file: file.into(),
            line,
            foreign: false,
            ..stackglass_profile::Frame::unknown(0)
        };
        let stack = vec![
            frame("std::thread::sleep", "/rustc/1/library/std/src/thread/mod.rs", 9),
            frame("app::slow", "src/main.rs", 31),
        ];
        let thread = |polled_for, in_place: bool| {
            let mut stack = stack.clone();
            if in_place {
                stack.push(frame(
                    "tokio::task::blocking::block_in_place",
                    "/x/.cargo/registry/src/a/b.rs",
                    7,
                ));
            }
            Some(PollingThread { tid: 71, stack, polled_for, seen_again: true })
        };
        let running = |id, thread| DumpedTask {
            id,
            state: TaskState::Running,
            name: "app::slow".into(),
            thread,
            ..DumpedTask::default()
        };
        let long = Some(Nanos(150_000_000));
        let tasks = vec![
            running(1, thread(long, false)),
            running(2, thread(None, false)),
            running(3, thread(long, true)),
        ];
        let dump = TaskDump { tasks, ..TaskDump::default() };
        assert_eq!(dump.blocking(), [0]);
        let text = text(&dump, 80);
        assert_eq!(text.matches("blocks its worker").count(), 1, "{text}");
        let head = text.split("\n\n").next().expect("a paragraph");
        assert!(head.contains("blocks its worker: task 1 ") && head.contains("main.rs:31"), "{text}");
        assert!(text.contains("may have returned between") && text.contains("block_in_place"), "{text}");
    }

    #[test]
    fn deep_trees_fit_their_width() {
        let long = "app::a_module::with_another::and_a_name_that_is_long";
        let frame = |name: &str, children| AwaitFrame {
            function: name.into(),
            point: AwaitPoint::Await(Some(("/src/a_file_with_a_name.rs".into(), 1234))),
            children,
            is_race: false,
        };
        let mut stack = vec![frame("app::innermost", Vec::new()), frame("app::other", Vec::new())];
        for depth in 0..120 {
            let mut children = vec![frame(long, stack)];
            if depth % 3 == 0 {
                children.push(frame("app::branch", Vec::new()));
            }
            stack = children;
        }
        let dump = TaskDump { tasks: vec![DumpedTask { stack, ..task(1, long, 0) }], ..TaskDump::default() };
        for cols in [40, 41, 60, 80, 120] {
            for (tree, everything) in [(false, false), (false, true), (true, false), (true, true)] {
                let text = TasksText::new().cols(cols).everything(everything);
                let mut out = Vec::new();
                let written = if tree { text.tree(&dump, &mut out) } else { text.groups(&dump, &mut out) };
                written.expect("memory can be written");
                let text = String::from_utf8(out).expect("it is text");
                let wide = text.lines().find(|line| crate::text::columns::width(line) > cols);
                assert_eq!(wide, None, "{cols} {tree} {everything}");
                assert!(text.lines().count() > 100, "{text}");
            }
        }
    }
}
