//! One type: its sums, the path to it, what holds it, and what it holds.

use super::HeapText;
use super::show::short;
use super::table::{header, heading, hidden, numbers, path, push_field, push_type, short_path, titled};
use crate::answers::{BlocksOfType, RetainerRow, SiteRow, TypeAnswer};
use stackglass_profile::sanitize;
use stackglass_report::columns::cut_left;
use stackglass_report::numbers::{bytes_text, count_text, counted, grouped};
use stackglass_report::style::{Line, Paint};
use std::io::{self, Write};

pub(super) fn write(text: &HeapText, answer: &TypeAnswer, out: &mut dyn Write) -> io::Result<()> {
    sums(text, answer, out)?;
    write_paths(text, answer, 1, out)?;
    if !answer.retainers.is_empty() {
        heading(text, "Held by", out)?;
        fields(text, &answer.retainers, true, out)?;
    }
    if !answer.fields.is_empty() {
        heading(text, "Holds", out)?;
        fields(text, &answer.fields, false, out)?;
    }
    if !answer.sites.is_empty() {
        heading(text, "Allocated by", out)?;
        sites(text, &answer.sites, out)?;
    }
    // A single block is the one above.
    if answer.largest.iter().map(|row| row.alike).sum::<u64>() > 1 {
        heading(text, "Largest", out)?;
        let columns = [("retained", 8), ("blocks", 6)];
        header(text, &columns, "path", out)?;
        for row in &answer.largest {
            let mut line = numbers(&columns, &[bytes_text(row.retained_size), count_text(row.count)]);
            let indent = line.width();
            if row.alike > 1 {
                line.plain(format!("{} × ", grouped(row.alike)));
            }
            line.write_open(text.style, out)?;
            let narrow = HeapText { cols: text.cols - (line.width() - indent), ..text.clone() };
            short_path(&narrow, indent, &row.path, out)?;
        }
    }
    Ok(())
}

const BLOCKS: [(&str, usize); 3] = [("retained", 8), ("own", 7), ("address", 14)];

pub(super) fn write_blocks(
    text: &HeapText,
    answer: &TypeAnswer,
    blocks: &BlocksOfType,
    out: &mut dyn Write,
) -> io::Result<()> {
    sums(text, answer, out)?;
    out.write_all(b"\n")?;
    header(text, &BLOCKS, "path", out)?;
    for row in &blocks.rows {
        let address = format!("{:#x}", row.address);
        let mut line = numbers(&BLOCKS, &[bytes_text(row.retained_size), bytes_text(row.self_size), address]);
        match &row.path {
            Some(path) => {
                let indent = line.width();
                line.write_open(text.style, out)?;
                short_path(text, indent, path, out)?;
            }
            None => line.push(Paint::Grey, "leaked?").write(text.style, out)?,
        }
    }
    hidden(text, blocks.more as usize, ("block", "blocks"), "", out)?;
    if blocks.in_groups > 0 {
        let line = format!("{} in groups have no addresses", counted(blocks.in_groups, "block", "blocks"));
        Line::new().push(Paint::Grey, line).cut(text.cols).write(text.style, out)?;
    }
    Ok(())
}

/// A line with a path at its end, which goes on below.
fn path_behind(text: &HeapText, line: &Line, parts: &[String], out: &mut dyn Write) -> io::Result<()> {
    let mut lines = Vec::new();
    path(text, line.width(), parts, &mut lines)?;
    line.write_open(text.style, out)?;
    // The line takes the place of the first indent.
    match lines.get(line.width()..) {
        Some(rest) => out.write_all(rest),
        None => out.write_all(b"\n"),
    }
}

fn sums(text: &HeapText, answer: &TypeAnswer, out: &mut dyn Write) -> io::Result<()> {
    let mut line = Line::new();
    line.push(Paint::Bold, short(&answer.alive.name, text.cols)).write(text.style, out)?;
    for (title, row) in [("alive", &answer.alive), ("leaked?", &answer.unreachable)] {
        let is_other_empty = answer.alive.count == 0 || answer.unreachable.count == 0;
        if row.count == 0 && is_other_empty && answer.alive.count + answer.unreachable.count > 0 {
            continue;
        }
        let mut line = titled(title);
        line.push(Paint::Bold, count_text(row.count)).plain(if row.count == 1 {
            " block, "
        } else {
            " blocks, "
        });
        line.push(Paint::Bold, bytes_text(row.self_size)).plain(" of their own, ");
        line.push(Paint::Bold, bytes_text(row.retained_size)).plain(" with all that only they hold");
        line.cut(text.cols).write(text.style, out)?;
    }
    if answer.only_weak > 0 {
        let mut line = titled("in doubt");
        line.push(Paint::Bold, count_text(answer.only_weak))
            .plain(" of the latter: only weak edges lead there");
        line.cut(text.cols).write(text.style, out)?;
    }
    Ok(())
}

/// Paths to a type that are shown by default.
const PATHS: usize = 3;

/// The shortest path to the type by each field that holds it.
pub(super) fn write_path(text: &HeapText, answer: &TypeAnswer, out: &mut dyn Write) -> io::Result<()> {
    let shown = if text.everything { answer.paths.len() } else { answer.paths.len().min(PATHS) };
    write_paths(text, answer, shown, out)?;
    hidden(text, answer.paths.len() - shown, ("path", "paths"), "", out)
}

fn write_paths(text: &HeapText, answer: &TypeAnswer, shown: usize, out: &mut dyn Write) -> io::Result<()> {
    if answer.paths.is_empty() {
        let mut line = titled("nearest");
        return line.plain("no path leads to this type").write(text.style, out);
    }
    for (index, to) in answer.paths.iter().take(shown).enumerate() {
        let title = if index == 0 { "nearest" } else { "also by" };
        path_behind(text, &titled(title), &to.parts_and_type(), out)?;
    }
    Ok(())
}

pub(super) fn write_retainers(text: &HeapText, answer: &TypeAnswer, out: &mut dyn Write) -> io::Result<()> {
    sums(text, answer, out)?;
    if answer.retainers.is_empty() {
        let mut line = titled("held by");
        return line.plain("nothing").write(text.style, out);
    }
    heading(text, "Held by", out)?;
    fields(text, &answer.retainers, true, out)
}

const SITES: [(&str, usize); 2] = [("blocks", 6), ("own", 7)];

fn sites(text: &HeapText, rows: &[SiteRow], out: &mut dyn Write) -> io::Result<()> {
    header(text, &SITES, "function", out)?;
    let shown = text.shown(rows.len());
    for row in &rows[..shown] {
        let mut line = numbers(&SITES, &[count_text(row.count), bytes_text(row.self_size)]);
        let room = text.cols.saturating_sub(line.width());
        line.plain(cut_left(&sanitize(&row.name), room)).write(text.style, out)?;
    }
    let rest: u64 = rows[shown..].iter().map(|row| row.count).sum();
    let rest = format!(", {} together", counted(rest, "block", "blocks"));
    hidden(text, rows.len() - shown, ("function", "functions"), &rest, out)
}

const FIELDS: [(&str, usize); 3] = [("blocks", 6), ("own", 7), ("edges", 6)];

/// Rows by field. The holder is shown before the field for retainers, and the type behind it for fields.
fn fields(text: &HeapText, rows: &[RetainerRow], is_holder: bool, out: &mut dyn Write) -> io::Result<()> {
    header(text, &FIELDS, if is_holder { "holder and field" } else { "field and type" }, out)?;
    let shown = text.shown(rows.len());
    for row in &rows[..shown] {
        let values = [count_text(row.count), bytes_text(row.self_size), count_text(row.edges)];
        let mut line = numbers(&FIELDS, &values);
        if row.weak {
            line.push(Paint::Grey, "weak ");
        }
        match is_holder {
            true => push_field(text, &mut line, &row.holder, &row.field),
            false => {
                line.push(Paint::Cyan, short(&row.field, text.cols / 2)).plain(": ");
                push_type(text, &mut line, &row.holder);
            }
        }
        line.cut(text.cols).write(text.style, out)?;
    }
    let rest: u64 = rows[shown..].iter().map(|row| row.count).sum();
    let rest = format!(", {} together", counted(rest, "block", "blocks"));
    hidden(text, rows.len() - shown, ("field", "fields"), &rest, out)
}
