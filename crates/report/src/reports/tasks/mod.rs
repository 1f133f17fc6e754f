//! The async tasks of a process, grouped by equal await stacks: as text, as a tree and for programs.

mod groups;
mod json;
mod lines;
mod origins;
mod text;
mod threads;
mod tree;
mod waits;

pub use groups::{TaskGroup, groups};
pub(in crate::reports) use json::JsonTasks;
pub use json::write_json;
pub use text::group_place;

use crate::Style;
use stackglass_profile::task_dump::TaskDump;
use std::io::{self, Write};

/// How tasks are written.
#[derive(Clone, Debug)]
pub struct TasksText {
    style: Style,
    cols: usize,
    rows: Option<usize>,
    everything: bool,
    /// How to see what is left out.
    rest: &'static str,
}

impl TasksText {
    /// Without colours, for 80 columns.
    pub fn new() -> TasksText {
        TasksText { style: Style::Plain, cols: 80, rows: None, everything: false, rest: "--all shows" }
    }

    crate::layout_setter!(cols: 40);

    /// Sets the height in lines, so that the report fits a screen.
    #[must_use]
    pub fn rows(mut self, rows: Option<usize>) -> TasksText {
        self.rows = rows;
        self
    }

    crate::layout_setter!(style);

    /// All groups, all ids, and all frames of libraries.
    #[must_use]
    pub fn everything(mut self, everything: bool) -> TasksText {
        self.everything = everything;
        self
    }

    /// For a report of another command: what is left out is shown by `stackglass tasks`.
    #[must_use]
    pub fn within_other(mut self) -> TasksText {
        self.rest = "`stackglass tasks` shows";
        self
    }

    /// Writes groups of tasks with equal await stacks, the largest first.
    ///
    /// # Errors
    /// When writing fails.
    pub fn groups(&self, dump: &TaskDump, out: &mut dyn Write) -> io::Result<()> {
        text::write(self, dump, false, out)
    }

    /// Writes the remarks of a dump, which [`TasksText::groups`] leaves out.
    ///
    /// # Errors
    /// When writing fails.
    pub fn remarks(&self, dump: &TaskDump, out: &mut dyn Write) -> io::Result<()> {
        text::write_remarks(self, dump, out)
    }

    /// Writes one group of tasks, with an empty line before it.
    ///
    /// # Errors
    /// When writing fails.
    pub fn group(&self, dump: &TaskDump, group: &TaskGroup<'_>, out: &mut dyn Write) -> io::Result<()> {
        text::write_group(self, dump, group, out)
    }

    /// Writes one tree of all await stacks: equal frames from the outermost on are one.
    ///
    /// # Errors
    /// When writing fails.
    pub fn tree(&self, dump: &TaskDump, out: &mut dyn Write) -> io::Result<()> {
        text::write(self, dump, true, out)
    }
}

impl Default for TasksText {
    fn default() -> TasksText {
        TasksText::new()
    }
}
