//! What grew on the heap of a process that is watched.

use super::HeapText;
use super::table::{header, heading, hidden, notes, numbers, push_type, short_path, titled};
use crate::answers::HeapPath;
use crate::answers::holders::WEAKLY_HELD;
use crate::answers::type_names::with_sizes;
use crate::answers::watch::{Grown, GrownRow, Watch};
use stackglass_profile::heap_graph::UNREACHABLE;
use stackglass_profile::sanitize;
use stackglass_report::columns::{cut_left, cut_right, width};
use stackglass_report::numbers::{bytes_text, count_text, counted, duration_text, pause_text, percent_text};
use stackglass_report::style::{Line, Paint};
use std::io::{self, Write};
use std::time::Duration;

/// Columns of both tables.
const COLUMNS: [(&str, usize); 4] = [("bytes", 9), ("a minute", 9), ("count", 8), ("steps", 5)];
/// Columns before a path.
const INDENT: usize = 10;
/// Holders in the digest.
const HOLDERS: usize = 3;
/// Columns of what says that there are others.
const MORE: usize = 10;
/// A path to less of the growth than this says to how much, in percent.
const NEARLY_ALL: u64 = 95;

pub(super) fn write(text: &HeapText, watch: &Watch, grown: &Grown, out: &mut dyn Write) -> io::Result<()> {
    digest(text, watch, grown, out)?;
    let steps = grown.compared.len().saturating_sub(1);
    let (leaks, others) = grown.rows.split_at(grown.rows.iter().take_while(|row| row.is_likely_leak).count());
    if !leaks.is_empty() {
        let or_lost = if leaks.iter().any(|row| row.steps < steps) { ", or lost" } else { "" };
        heading(text, &format!("Grew in each of {steps} steps{or_lost}: likely leaks"), out)?;
        rows(text, grown, leaks, text.shown(leaks.len()), out)?;
    }
    let title = match steps {
        1 => "Grew from the first copy to the second",
        _ => "Grew, but not as leaks do",
    };
    if !others.is_empty() {
        heading(text, title, out)?;
        let shown = if leaks.is_empty() { text.shown(others.len()) } else { others.len().min(text.few()) };
        rows(text, grown, others, shown, out)?;
    }
    if grown.rows.is_empty() {
        let mut line = Line::new();
        line.plain("\nnothing has grown").write(text.style, out)?;
    }
    remarks(text, watch, grown, out)
}

/// What was alive first and last, and by which variables the growth is held.
fn digest(text: &HeapText, watch: &Watch, grown: &Grown, out: &mut dyn Write) -> io::Result<()> {
    let copies = watch.copies();
    let (Some(first), Some(last)) = (copies.first(), copies.last()) else { return Ok(()) };
    let mut line = Line::new();
    line.push(Paint::Bold, cut_right(&sanitize(&text.name), text.cols / 2)).plain(format!(
        "  {} in {}",
        counted(copies.len() as u64, "copy", "copies"),
        duration_text(nanos(grown.time))
    ));
    let pause = copies.iter().map(|copy| copy.pause).max().unwrap_or_default();
    let longest = if pause.is_zero() { "" } else { ", at most" };
    line.plain(format!("{longest}{}{}", if pause.is_zero() { ", " } else { " " }, pause_text(nanos(pause))));
    line.cut(text.cols).write(text.style, out)?;
    let mut line = titled("alive");
    let growth = i128::from(last.all.self_size) - i128::from(first.all.self_size);
    line.push(Paint::Bold, bytes_text(last.all.self_size)).plain(format!(
        " in {} blocks: {}, {} a minute; {} blocks",
        count_text(last.all.count),
        signed(growth, bytes_text),
        signed(per_minute(growth, grown.time), bytes_text),
        signed(i128::from(last.all.count) - i128::from(first.all.count), count_text),
    ));
    line.cut(text.cols).write(text.style, out)?;
    let grows: Vec<&(HeapPath, i128)> = grown.holders.iter().filter(|(_, growth)| *growth > 0).collect();
    if grows.is_empty() {
        return Ok(());
    }
    let mut line = titled("held by");
    for (index, (path, growth)) in grows.iter().enumerate() {
        let between = if index > 0 { ", " } else { "" };
        let one = format!("{between}{} {}", signed(*growth, bytes_text), sanitize(&holder(path)));
        let more = if index + 1 < grows.len() { MORE } else { 0 };
        if index > 0 && (index == HOLDERS || line.width() + width(&one) + more > text.cols) {
            line.plain(format!(", {} more", grows.len() - index));
            break;
        }
        line.plain(one);
    }
    line.cut(text.cols).write(text.style, out)
}

/// A variable, stack or other memory in a few words.
fn holder(path: &HeapPath) -> String {
    let names: Vec<&str> = path.steps.iter().map(|step| step.name.as_str()).collect();
    match names[..] {
        [] | [UNREACHABLE] => "nothing".to_owned(),
        [WEAKLY_HELD] => "weak edges only".to_owned(),
        ["(thread stacks)", thread] => format!("the stack of {thread}"),
        ["(registers)", thread] => format!("registers of {thread}"),
        [_, owner, name] if name.starts_with('(') => format!("{name} of {owner}"),
        [.., last] => last.to_owned(),
    }
}

fn rows(
    text: &HeapText,
    grown: &Grown,
    all: &[GrownRow],
    shown: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    header(text, &COLUMNS, "type, and the path that holds it", out)?;
    let steps = grown.compared.len().saturating_sub(1);
    for row in &all[..shown] {
        let values = [
            signed(row.growth(), bytes_text),
            signed(per_minute(row.growth(), grown.time), bytes_text),
            signed(row.count_growth(), count_text),
            format!("{}/{steps}", row.steps),
        ];
        let mut line = numbers(&COLUMNS, &values);
        push_type(text, &mut line, &name(row));
        line.cut(text.cols).write(text.style, out)?;
        path_below(text, row, out)?;
        if let Some(site) = &row.site {
            let mut line = Line::new();
            line.plain(" ".repeat(INDENT)).push(Paint::Grey, "by ");
            let room = text.cols.saturating_sub(line.width());
            line.plain(cut_left(&sanitize(site), room)).write(text.style, out)?;
        }
    }
    hidden(text, all.len() - shown, ("type", "types"), "", out)
}

/// The name of the type, or the sizes of the blocks if their type is unknown.
fn name(row: &GrownRow) -> String {
    row.size_class.map_or_else(|| row.name.clone(), |class| with_sizes(&row.name, class))
}

fn path_below(text: &HeapText, row: &GrownRow, out: &mut dyn Write) -> io::Result<()> {
    let first = row.path.steps.first().map_or("", |step| step.name.as_str());
    let growth = u64::try_from(row.growth()).unwrap_or(0);
    let share = match row.on_path.saturating_mul(100) < growth.saturating_mul(NEARLY_ALL) {
        true => format!("{}: ", percent_text(row.on_path, growth)),
        false => String::new(),
    };
    let mut line = Line::new();
    line.plain(" ".repeat(INDENT)).push(Paint::Grey, &share);
    match first {
        "" => line.push(Paint::Yellow, "nothing is known to hold it").write(text.style, out),
        UNREACHABLE | WEAKLY_HELD if row.path.steps.len() <= 2 => {
            let words =
                if first == UNREACHABLE { "nothing leads there: lost" } else { "only weak edges lead there" };
            line.push(Paint::Yellow, words).write(text.style, out)
        }
        _ => {
            out.write_all(" ".repeat(INDENT).as_bytes())?;
            if !share.is_empty() {
                out.write_all(share.as_bytes())?;
            }
            short_path(text, INDENT + share.chars().count(), &to_holder(&row.path), out)
        }
    }
}

/// The path without the last step, if that only repeats the type.
fn to_holder(path: &HeapPath) -> HeapPath {
    let steps = match &path.steps[..] {
        [holders @ .., last]
            if !last.is_root
                && holders.last().is_some_and(|holder| holder.is_root)
                && (last.label.is_empty() || last.label.starts_with('[')) =>
        {
            holders.to_vec()
        }
        steps => steps.to_vec(),
    };
    HeapPath { steps }
}

fn remarks(text: &HeapText, watch: &Watch, grown: &Grown, out: &mut dyn Write) -> io::Result<()> {
    let mut remarks = Vec::new();
    if grown.compared.len() == 2 && !grown.rows.is_empty() {
        remarks.push(
            "two copies do not tell a leak from a table that has grown once: watch for longer".to_owned(),
        );
    }
    let typed = watch.copies().last().map_or((0, 0), |last| (last.typed.self_size, last.all.self_size));
    let has_sites = grown.rows.iter().any(|row| row.site.is_some() || row.name.starts_with("site: "));
    if !grown.rows.is_empty() && !has_sites {
        let share = percent_text(typed.0, typed.1);
        remarks.push(format!(
            "{share} of bytes have a type; a program that was started with `stackglass run --allocs` has the places that allocate as well"
        ));
    }
    notes(text, &remarks, out)
}

/// `+4.20 kB`, `-17`, `0`.
fn signed(growth: i128, text: fn(u64) -> String) -> String {
    let size = text(u64::try_from(growth.unsigned_abs()).unwrap_or(u64::MAX));
    match growth {
        0 => size,
        1.. => format!("+{size}"),
        _ => format!("-{size}"),
    }
}

/// A growth in this time as one in a minute.
pub(super) fn per_minute(growth: i128, time: Duration) -> i128 {
    const MINUTE: i128 = 60_000;
    let millis = i128::try_from(time.as_millis()).unwrap_or(i128::MAX).max(1);
    growth.saturating_mul(MINUTE) / millis
}

pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
