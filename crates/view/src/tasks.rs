//! Async tasks as columns: of which task each sample is, and at which `.await` it waits.
//!
//! Tasks of one name and place of creation are one kind, as in the summary of a recording.

use crate::columns::Columns;
use foldhash::HashMap;
use serde::Serialize;
use stackglass_profile::{Recording, Sample, TaskId, sanitize};
use stackglass_report::{Wait, Waits};
use std::hash::Hash;

/// Tasks of one name and place. Those without a name are one kind.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize)]
struct Kind {
    name: String,
    file: String,
    line: u32,
}

/// A line in which tasks wait.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
struct Line {
    function: String,
    file: String,
    line: i64,
    /// What the wait ends in: `waits in Sleep`.
    words: String,
}

/// Numbers of what was met, from 1.
struct Met<T>(HashMap<T, u64>);

impl<T: Eq + Hash + Clone> Met<T> {
    fn number(&mut self, of: &T) -> u64 {
        let next = self.0.len() as u64 + 1;
        *self.0.entry(of.clone()).or_insert(next)
    }

    /// All of them, in order.
    fn list(&self) -> Vec<&T> {
        let mut list: Vec<(&T, &u64)> = self.0.iter().collect();
        list.sort_by_key(|(_, number)| **number);
        list.into_iter().map(|(of, _)| of).collect()
    }
}

/// Adds the columns, and returns how many tasks have samples. `None` if the recording knows of no task; samples have the order of the page.
pub(crate) fn write(recording: &Recording, samples: &[&Sample], columns: &mut Columns) -> Option<usize> {
    let mut tasks = Met(HashMap::default());
    // A sampler without tasks gives each thread one.
    let is_named = !recording.tasks.is_empty();
    let of_tasks: Vec<u64> = samples
        .iter()
        .map(|sample| if is_named && sample.task != 0 { tasks.number(&sample.task) } else { 0 })
        .collect();
    let waits = Waits::new(recording);
    if !is_named && waits.is_none() {
        return None;
    }
    let mut lines: Met<Wait> = Met(HashMap::default());
    let mut of_stacks = HashMap::default();
    let mut line_of = |sample: &Sample| {
        *of_stacks.entry(sample.stack).or_insert_with(|| {
            let wait = waits.as_ref().and_then(|waits| waits.of(sample.stack));
            wait.map_or(0, |wait| lines.number(&wait))
        })
    };
    let of_lines: Vec<u64> = samples.iter().map(|sample| line_of(sample)).collect();
    columns.push("samples.task", of_tasks);
    columns.push("samples.wait", of_lines);
    columns.push(
        "samples.waiting",
        samples.iter().map(|sample| u64::from(sample.task != 0 && recording.is_waiting(sample.stack))),
    );
    let text = |text: &str| sanitize(text).into_owned();
    let known: HashMap<TaskId, Kind> = recording
        .tasks
        .iter()
        .map(|task| (task.id, Kind { name: text(&task.name), file: text(&task.file), line: task.line }))
        .collect();
    let mut kinds = Met(HashMap::default());
    let tasks = tasks.list();
    let of_kinds: Vec<u64> = tasks
        .iter()
        .map(|task| kinds.number(&known.get(&TaskId(**task)).cloned().unwrap_or_default()))
        .collect();
    columns.push("tasks.kind", of_kinds);
    columns.push_text("tasks.kinds", &json(&kinds.list()));
    let lines: Vec<Line> = lines
        .list()
        .into_iter()
        .map(|wait| Line {
            function: text(&wait.function),
            file: text(&wait.file),
            line: wait.line,
            words: text(&Wait::words(&wait.future)),
        })
        .collect();
    columns.push_text("tasks.waits", &json(&lines));
    Some(tasks.len())
}

fn json(of: &impl Serialize) -> String {
    serde_json::to_string(of).expect("it is JSON")
}
