//! Rows of numbers with a name at the end, headings, and texts below a row.

use super::HeapText;
use crate::answers::HeapPath;
use stackglass_profile::sanitize;
use stackglass_report::columns::{cut_left, cut_right, pad_left, width, wrap};
use stackglass_report::numbers::grouped;
use stackglass_report::style::{Line, Paint};
use stackglass_report::type_name::shorten_type;
use std::io::{self, Write};

/// A line that begins with its title.
pub(super) fn titled(title: &str) -> Line {
    let mut line = Line::new();
    line.push(Paint::Grey, format!("{title:<10}"));
    line
}

/// An empty line and a heading.
pub(super) fn heading(text: &HeapText, title: &str, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b"\n")?;
    let mut line = Line::new();
    line.push(Paint::Bold, title).cut(text.cols).write(text.style, out)
}

/// Titles of columns with their widths, and the title of the last column.
pub(super) fn header(
    text: &HeapText,
    columns: &[(&str, usize)],
    last: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut line = Line::new();
    for (index, (title, width)) in columns.iter().enumerate() {
        let space = if index == 0 { "" } else { " " };
        line.plain(space).push(Paint::Grey, pad_left(title, *width));
    }
    line.push(Paint::Grey, format!("  {last}")).cut(text.cols).write(text.style, out)
}

/// A row of numbers, the first of them bold.
pub(super) fn numbers(columns: &[(&str, usize)], values: &[String]) -> Line {
    let mut line = Line::new();
    for (index, ((_, width), value)) in columns.iter().zip(values).enumerate() {
        let paint = if index == 0 { Paint::Bold } else { Paint::Normal };
        line.plain(if index == 0 { "" } else { " " }).push(paint, pad_left(value, *width));
    }
    line.plain("  ");
    line
}

/// Adds a type in the columns that are left. A site, `site: function (file:line)`, keeps its end.
pub(super) fn push_type(text: &HeapText, line: &mut Line, name: &str) {
    let room = text.cols.saturating_sub(line.width());
    let name = sanitize(name);
    match name.strip_prefix("site: ") {
        Some(site) if width(&name) > room => {
            line.push(Paint::Grey, "site: ").plain(cut_left(site, room.saturating_sub(6)));
        }
        _ => {
            line.plain(shorten_type(&name, room));
        }
    }
}

/// Adds a field of a type: `App.cache`. The field is kept as far as possible.
pub(super) fn push_field(text: &HeapText, line: &mut Line, holder: &str, field: &str) {
    let room = text.cols.saturating_sub(line.width());
    let field = sanitize(field);
    let field = cut_right(&field, room.saturating_sub(8)).into_owned();
    let holder = shorten_type(&sanitize(holder), room.saturating_sub(width(&field)));
    line.plain(holder).push(Paint::Cyan, field);
}

/// Widest step of a path beside numbers.
const STEP: usize = 30;

/// A path with this indent, which the first line does not have: long steps are shortened, and none is left out.
pub(super) fn short_path(
    text: &HeapText,
    indent: usize,
    path_to: &HeapPath,
    out: &mut dyn Write,
) -> io::Result<()> {
    let parts: Vec<String> = path_to.parts().iter().map(|part| short_step(part)).collect();
    let mut lines = Vec::new();
    path(text, indent, &parts, &mut lines)?;
    match lines.get(indent..) {
        Some(rest) => out.write_all(rest),
        None => out.write_all(b"\n"),
    }
}

/// A step in a few columns. The line of a frame and the number of repetitions stay.
fn short_step(part: &str) -> String {
    let part = sanitize(part);
    let end = [" (", " × "].iter().filter_map(|mark| part.rfind(mark)).max();
    let end = end.filter(|at| !part.starts_with('(') && part.len() - at <= STEP);
    let (name, end) = part.split_at(end.unwrap_or(part.len()));
    // A group of roots with a module or thread.
    let most = if name.starts_with('(') { 2 * STEP } else { STEP };
    format!("{}{end}", shorten_type(name, most.saturating_sub(width(end)).max(STEP / 2)))
}

/// The parts of a path below a row, with this indent. Lines break between parts.
pub(super) fn path(text: &HeapText, indent: usize, parts: &[String], out: &mut dyn Write) -> io::Result<()> {
    let mut line = Line::new();
    line.plain(" ".repeat(indent));
    let mut is_first = true;
    for part in parts {
        let part = sanitize(part);
        let arrow = if is_first { "" } else { " → " };
        if !is_first && line.width() + width(arrow) + width(&part) > text.cols {
            line.write(text.style, out)?;
            line = Line::new();
            line.plain(" ".repeat(indent)).push(Paint::Grey, "→ ");
        } else {
            line.push(Paint::Grey, arrow);
        }
        let room = text.cols.saturating_sub(line.width());
        line.push(Paint::Cyan, cut_right(&part, room));
        is_first = false;
    }
    if is_first { Ok(()) } else { line.write(text.style, out) }
}

/// Says how many rows are hidden.
pub(super) fn hidden(
    text: &HeapText,
    count: usize,
    names: (&str, &str),
    share: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    if count == 0 {
        return Ok(());
    }
    let name = if count == 1 { names.0 } else { names.1 };
    let mut line = Line::new();
    let rest = format!("{} more {name}{share}: --all shows them", grouped(count as u64));
    line.push(Paint::Grey, rest).cut(text.cols).write(text.style, out)
}

/// Notes at the end.
pub(super) fn notes(text: &HeapText, notes: &[String], out: &mut dyn Write) -> io::Result<()> {
    if !notes.is_empty() {
        out.write_all(b"\n")?;
    }
    for note in notes {
        for (index, part) in wrap(&sanitize(note), text.cols.saturating_sub(6)).into_iter().enumerate() {
            let mut line = Line::new();
            line.push(Paint::Yellow, if index == 0 { "note: " } else { "      " }).plain(part);
            line.cut(text.cols).write(text.style, out)?;
        }
    }
    Ok(())
}
