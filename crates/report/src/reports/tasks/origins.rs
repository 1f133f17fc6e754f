//! Where tasks come from, and how their stacks were found: given names, places of creation, sources.

use super::TasksText;
use super::groups::TaskGroup;
use super::text::{NAMED, note, place_text};
use crate::text::columns::wrap;
use crate::text::json::Object;
use crate::text::numbers::{counted, grouped};
use crate::text::style::{Line, Paint};
use stackglass_profile::harmless;
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
    let quoted = |name: &&str| format!("\"{}\"", harmless(name));
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
        Line::of(Paint::Grey, line).write(text.style, out)?;
    }
    Ok(())
}

fn advice(dump: &TaskDump) -> Option<String> {
    let of = |source| dump.tasks.iter().filter(|task| task.source == source).count() as u64;
    let (asked, names) = (of(AwaitSource::AskedPoll), of(AwaitSource::RootName));
    const TYPES: &str = "`debug = 2` in the Cargo profile of the program's own crate";
    Some(match (asked, names) {
        (0, 0) => return None,
        (_, 0) => format!(
            "The stacks of {} come from polls that were asked for. {TYPES} gives them without a poll.",
            counted(asked, "task", "tasks"),
        ),
        (0, _) => format!(
            "Of {} only the function or the place of creation is known. {TYPES} shows their await stacks.",
            counted(names, "task", "tasks"),
        ),
        _ => format!(
            "The stacks of {} come from polls that were asked for; of {} more only the function or the place \
             of creation is known. {TYPES} shows all without a poll.",
            counted(asked, "task", "tasks"),
            grouped(names),
        ),
    })
}

/// The word for a source in JSON.
pub(super) fn source_word(source: AwaitSource) -> &'static str {
    match source {
        AwaitSource::Types => "types",
        AwaitSource::AskedPoll => "asked poll",
        AwaitSource::RootName => "root name",
    }
}

/// A place where tasks were created.
pub(super) fn place_object((file, line): &(Arc<str>, u32)) -> Object {
    Object::new().text("file", file).number("line", u64::from(*line))
}
