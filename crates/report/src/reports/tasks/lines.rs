//! The lines of which reports of tasks are made: a frame with its place, a note below it, and their widths.

use super::TasksText;
use crate::text::columns::{cut_left, cut_right, pad_right, width, wrap};
use crate::text::short::{broken_name, short_function};
use crate::text::style::{Line, Paint};
use stackglass_profile::runtimes::{HTTP2_CONNECTION, IDLE_CONNECTIONS};
use stackglass_profile::sanitize;
use stackglass_profile::task_dump::{AwaitFrame, AwaitPoint};
use std::io::{self, Write};

/// Columns of `file.rs:123`.
pub(super) const PLACE: usize = 18;
/// Columns before places.
pub(super) const INDENT: usize = 7;
/// Columns that a name has, however long the note behind it is.
const SHORTEST_NAME: usize = 16;
/// Columns that a name has in the long report, however deep it is. `TasksText::cols` leaves room for it.
const NARROWEST: usize = 8;
/// Columns that a deep name has on a terminal with room for it.
const DEEP_NAME: usize = 20;
/// Most ids, deadlocks and locks that are named.
pub(super) const NAMED: usize = 4;

pub(super) fn place_text(file: &str, line: u32) -> String {
    format!("{}:{line}", sanitize(file.rsplit('/').next().unwrap_or(file)))
}

/// A sentence about a group.
pub(super) fn note(text: &TasksText, note: &str, out: &mut dyn Write) -> io::Result<()> {
    let room = text.cols.saturating_sub(INDENT + 2);
    for (number, part) in wrap(note, room).into_iter().enumerate() {
        let indent = if number == 0 { INDENT } else { INDENT + 2 };
        Line::from_text(Paint::Grey, format!("{:indent$}{part}", ""))
            .cut(text.cols)
            .write(text.style, out)?;
    }
    Ok(())
}

/// A frame, and how it is drawn.
pub(super) struct ShownFrame<'a> {
    pub frame: &'a AwaitFrame,
    /// It is of a library.
    pub is_grey: bool,
    /// Number of frames that are left out behind it.
    pub folded: usize,
    /// What else is said of it.
    pub more: &'a str,
    /// Lines of the tree before its name.
    pub own: &'a str,
    /// The same, in rows below.
    pub below: &'a str,
}

impl ShownFrame<'_> {
    /// Writes place and function behind what leads the line. In the long report, names are not shortened and may need several
    /// lines.
    pub(super) fn write(&self, text: &TasksText, lead: Line, out: &mut dyn Write) -> io::Result<()> {
        let ShownFrame { frame, is_grey, folded, .. } = *self;
        let place = match &frame.point {
            AwaitPoint::Await(Some((file, line))) => place_text(file, *line),
            AwaitPoint::Await(None) => "?".to_owned(),
            _ => String::new(),
        };
        let place = cut_left(&place, PLACE).into_owned();
        let before_tree = lead.width() + PLACE + 1;
        // Lines of a deep tree are cut at their left, so that its names have room.
        let room = text.cols.saturating_sub(before_tree);
        let of_tree = room.saturating_sub(DEEP_NAME.min(room / 2).max(NARROWEST + 2));
        let (own, below) = (cut_left(self.own, of_tree), cut_left(self.below, of_tree));
        let mut line = lead;
        line.push(if is_grey { Paint::Grey } else { Paint::Normal }, pad_right(&place, PLACE));
        line.plain(format!(" {own}"));
        let (note, paint) = match &frame.point {
            AwaitPoint::Await(_) => (String::new(), if is_grey { Paint::Grey } else { Paint::Normal }),
            AwaitPoint::NotStarted => (" (not polled yet)".to_owned(), Paint::Normal),
            AwaitPoint::Finished => (" (has returned)".to_owned(), Paint::Grey),
            AwaitPoint::Leaf => (leaf_note(&frame.function), Paint::Cyan),
            AwaitPoint::Lost(why) => (format!(" (not followed: {why})"), Paint::Grey),
        };
        let note = if folded > 0 { format!("{note} … +{folded}") } else { note };
        let note = format!("{note}{}", self.more);
        let function = sanitize(&frame.function);
        let mut room = text.cols.saturating_sub(line.width());
        if !text.everything {
            let of_name = room.saturating_sub(width(&note)).max(SHORTEST_NAME);
            line.push(paint, short_function(&function, of_name));
            let left = text.cols.saturating_sub(line.width());
            line.push(Paint::Grey, cut_right(&note, left));
            return line.cut(text.cols).write(text.style, out);
        }
        let continued = format!("{:before_tree$}{below}  ", "");
        let below = text.cols.saturating_sub(width(&continued));
        let mut parts = broken_name(&function, room, below);
        let mut last = parts.pop().unwrap_or_default();
        for part in parts {
            line.push(paint, part).write(text.style, out)?;
            line = Line::from_text(Paint::Normal, &continued);
            room = below;
        }
        for part in
            wrap(note.trim_start(), below.saturating_sub(1)).into_iter().filter(|part| !part.is_empty())
        {
            if width(&last) + 1 + width(&part) > room {
                line.push(paint, std::mem::take(&mut last)).write(text.style, out)?;
                line = Line::from_text(Paint::Normal, &continued);
                line.push(Paint::Grey, part);
            } else {
                line.push(paint, std::mem::take(&mut last)).push(Paint::Grey, format!(" {part}"));
            }
            // The next part needs a line of its own.
            room = 0;
        }
        line.push(paint, last).write(text.style, out)
    }
}

/// What a future of a library stands for, where its name does not say it.
fn leaf_note(function: &str) -> String {
    match function {
        HTTP2_CONNECTION => " (its requests are tasks of their own)",
        _ if IDLE_CONNECTIONS.contains(&function) => " (no request is handled)",
        _ => "",
    }
    .to_owned()
}
