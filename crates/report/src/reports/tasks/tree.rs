//! One tree of all await stacks: equal frames from the outermost on are one.
//!
//! A frame is one column right of the one that awaits it. Lines connect the branches that one task waits for at once, as in
//! `select!`; frames without lines below each other are of different tasks.

use super::TasksText;
use super::groups::{TaskGroup, is_library};
use super::lines::{INDENT, ShownFrame};
use super::threads;
use crate::text::numbers::grouped;
use crate::text::style::{Line, Paint};
use stackglass_profile::task_dump::{AwaitFrame, AwaitPoint, TaskDump, TaskState};
use std::borrow::Cow;
use std::io::{self, Write};

pub(super) fn write(
    text: &TasksText,
    dump: &TaskDump,
    groups: &[TaskGroup<'_>],
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut stacks = Merged::default();
    for group in groups {
        stacks.add_group(text, dump, group);
    }
    out.write_all(b"\n")?;
    stacks.sort();
    write_tree(text, &stacks, "", out)
}

/// Equal frames of several groups.
#[derive(Default)]
struct Merged<'a> {
    /// `None` for the root of all.
    frame: Option<Cow<'a, AwaitFrame>>,
    is_grey: bool,
    /// What else is said of it.
    more: String,
    count: usize,
    children: Vec<Merged<'a>>,
    /// A task waits for several of the children.
    branches: bool,
}

impl<'a> Merged<'a> {
    /// Adds the tasks of a group. One that does not wait has a frame for its function.
    fn add_group(&mut self, text: &TasksText, dump: &TaskDump, group: &TaskGroup<'a>) {
        let count = group.tasks.len();
        let of_thread = group.thread.map(|thread| threads::shown_frames(text, thread)).unwrap_or_default();
        let more = match group.state {
            TaskState::BlockOn(tid) => format!(" (block_on of thread {tid})"),
            TaskState::Running if is_blocking(dump, group) => " (polled, blocks its worker)".to_owned(),
            TaskState::Running => " (polled now)".to_owned(),
            TaskState::Blocking => " (spawn_blocking)".to_owned(),
            TaskState::Queued => " (spawn_blocking, waits for a thread)".to_owned(),
            TaskState::Finished => String::new(),
            TaskState::Waiting | TaskState::Ready if group.stack.is_empty() => " (no stack)".to_owned(),
            TaskState::Waiting | TaskState::Ready => String::new(),
        };
        if let [frame] = group.stack {
            let merged = self.child(Cow::Borrowed(frame), is_library(frame), more);
            merged.count += count;
            return merged.add_children(&frame.children, count);
        }
        let point = match group.state {
            TaskState::Finished => AwaitPoint::Finished,
            _ => AwaitPoint::Leaf,
        };
        let frame = AwaitFrame { function: group.name.clone(), point, children: Vec::new(), is_race: false };
        let mut merged = self.child(Cow::Owned(frame), false, more);
        merged.count += count;
        merged.add_children(group.stack, count);
        for (frame, is_own) in of_thread {
            merged = merged.child(Cow::Owned(frame), !is_own, String::new());
            merged.count += count;
        }
    }

    fn add_children(&mut self, frames: &'a [AwaitFrame], count: usize) {
        self.branches |= frames.len() > 1;
        for frame in frames {
            let merged = self.child(Cow::Borrowed(frame), is_library(frame), String::new());
            merged.count += count;
            merged.add_children(&frame.children, count);
        }
    }

    /// The child with this frame.
    fn child(&mut self, frame: Cow<'a, AwaitFrame>, is_grey: bool, more: String) -> &mut Merged<'a> {
        let is_same = |known: &Merged<'_>| {
            known.more == more
                && known
                    .frame
                    .as_ref()
                    .is_some_and(|known| known.function == frame.function && known.point == frame.point)
        };
        let at = match self.children.iter().position(is_same) {
            Some(at) => at,
            None => {
                self.children.push(Merged { frame: Some(frame), is_grey, more, ..Merged::default() });
                self.children.len() - 1
            }
        };
        &mut self.children[at]
    }

    fn sort(&mut self) {
        self.children.sort_by_key(|merged| std::cmp::Reverse(merged.count));
        self.children.iter_mut().for_each(Merged::sort);
    }
}

/// Whether the tasks of a group block their workers.
fn is_blocking(dump: &TaskDump, group: &TaskGroup<'_>) -> bool {
    let blocking = dump.blocking();
    group.tasks.iter().all(|task| blocking.contains(task))
}

fn write_tree(text: &TasksText, merged: &Merged<'_>, stem: &str, out: &mut dyn Write) -> io::Result<()> {
    for (number, child) in merged.children.iter().enumerate() {
        let is_last = number + 1 == merged.children.len();
        let (own, below) = match (merged.branches, is_last) {
            (false, _) => (stem.to_owned(), format!("{stem} ")),
            (true, false) => (format!("{stem}├ "), format!("{stem}│ ")),
            (true, true) => (format!("{stem}└ "), format!("{stem}  ")),
        };
        let mut last = child;
        let mut folded = 0;
        if !text.everything && child.is_grey {
            while let [next] = &last.children[..] {
                if !next.is_grey || next.count != child.count || last.branches {
                    break;
                }
                last = next;
                folded += 1;
            }
        }
        let Some(frame) = child.frame.as_deref() else { continue };
        let lead = Line::from_text(Paint::Bold, format!("{:>INDENT$} ", grouped(child.count as u64)));
        let shown =
            ShownFrame { frame, is_grey: child.is_grey, folded, more: &child.more, own: &own, below: &below };
        shown.write(text, lead, out)?;
        write_tree(text, last, &below, out)?;
    }
    Ok(())
}
