//! What is alive by type, the largest holders, leak candidates, and what could be saved.

use super::HeapText;
use super::table::{header, heading, hidden, notes, numbers, push_field, push_type, short_path, titled};
use crate::answers::{HeapAnswers, Leaks, OwnerRow, SiteRow, TypeRow, TypeTable, Waste, total};
use stackglass_profile::{is_unknown_type, sanitize};
use stackglass_report::columns::{cut_left, cut_right, width};
use stackglass_report::numbers::{count_text, counted, grouped, percent, percent_text};
use stackglass_report::style::{Line, Paint};
use stackglass_report::type_name::shorten_type;
use std::io::{self, Write};

/// How to get types.
const RECORD_TYPES: &str =
    "`stackglass run --allocs` records types, if the program has full debug information (`debug = 2`, `-g`)";

pub(super) fn write(text: &HeapText, answers: &HeapAnswers<'_>, out: &mut dyn Write) -> io::Result<()> {
    let types = answers.types();
    let (leaks, waste) = (answers.leaks(), answers.waste());
    digest(text, answers, &types, &leaks, out)?;
    if !types.alive.is_empty() {
        out.write_all(b"\n")?;
        table(text, &types.alive, out)?;
    }
    largest(text, answers, out)?;
    candidates(text, &types, &leaks, out)?;
    savings(text, &leaks, &waste, out)?;
    let mut remarks = Vec::new();
    if leaks.lost_count + leaks.weak_count > 0 && leaks.unread_threads > 0 {
        let threads = counted(leaks.unread_threads, "thread", "threads");
        remarks.push(format!(
            "{threads} slept in a system call with registers that were not read: what only they hold is among the leak candidates; \
             `heap take --interrupt-calls` reads them"
        ));
    }
    if leaks.lost_count + leaks.weak_count > 0 && leaks.unread_mappings > 0 {
        let mappings = counted(leaks.unread_mappings, "mapping", "mappings");
        remarks.push(format!(
            "{mappings} with memory that could not be read: what only they hold is among the leak candidates"
        ));
    }
    let all = total(&types.alive).self_size;
    let unknown: u64 =
        types.alive.iter().filter(|row| is_unknown_type(&row.name)).map(|row| row.self_size).sum();
    if unknown > all / 2 {
        let share = percent_text(unknown, all);
        remarks.push(format!("{share} of {} have no type: {RECORD_TYPES}", text.size_title()));
    }
    if waste.duplicates.is_none() && !types.alive.is_empty() {
        remarks.push("the snapshot has no texts of strings, so equal ones are not known".to_owned());
    }
    let (grouped_into, members) = groups(answers);
    if grouped_into > 0 {
        let nodes = counted(grouped_into, "node", "nodes");
        remarks.push(format!(
            "`--group small` put {} small blocks into {nodes}; counts are those of blocks",
            count_text(members)
        ));
    }
    if text.counts {
        remarks.push("each block has the size 1 (`--all-one`): sizes are numbers of blocks".to_owned());
    }
    notes(text, &remarks, out)
}

/// The number of groups of small blocks, and of their members.
fn groups(answers: &HeapAnswers<'_>) -> (u64, u64) {
    let groups = answers.graph().members.iter().filter(|members| **members > 1);
    groups.fold((0, 0), |(groups, members), more| (groups + 1, members + u64::from(*more)))
}

fn digest(
    text: &HeapText,
    answers: &HeapAnswers<'_>,
    types: &TypeTable,
    leaks: &Leaks,
    out: &mut dyn Write,
) -> io::Result<()> {
    let alive = total(&types.alive);
    let mut line = Line::new();
    line.push(Paint::Bold, cut_right(&sanitize(&text.name), 32)).plain("  ");
    if !text.counts {
        line.push(Paint::Bold, text.size(alive.self_size)).plain(" alive in ");
    }
    line.push(Paint::Bold, count_text(alive.count));
    // The others are below: in doubt, or perhaps leaked.
    let all = alive.count + total(&types.unreachable).count;
    if all > alive.count {
        line.plain(format!(" of {}", count_text(all)));
    }
    line.plain(if all == 1 { " block" } else { " blocks" });
    line.plain(if text.counts { " alive" } else { "" });
    line.plain(format!(", {} edges", count_text(answers.graph().targets.len() as u64)));
    line.cut(text.cols).write(text.style, out)?;
    held_by(text, answers, out)?;
    let mut line = titled("leaked?");
    match (leaks.lost_count, leaks.weak_count) {
        (0, 0) => line.plain("nothing: roots reach all blocks"),
        (0, _) => line.plain("nothing for certain: edges lead to all blocks"),
        (count, _) => {
            sum(text, &mut line, leaks.lost_size, count);
            line.plain(" to which nothing leads")
        }
    };
    line.cut(text.cols).write(text.style, out)?;
    if leaks.weak_count == 0 {
        return Ok(());
    }
    let mut line = titled("in doubt");
    sum(text, &mut line, leaks.weak_size, leaks.weak_count);
    line.plain(" to which only weak edges lead");
    line.cut(text.cols).write(text.style, out)
}

/// `12.7 kB in 10 blocks`.
fn sum(text: &HeapText, line: &mut Line, bytes: u64, blocks: u64) {
    if !text.counts {
        line.push(Paint::Bold, text.size(bytes)).plain(" in ");
    }
    line.push(Paint::Bold, count_text(blocks)).plain(if blocks == 1 { " block" } else { " blocks" });
}

/// Which roots hold how much. The sizes add up to what is alive.
fn held_by(text: &HeapText, answers: &HeapAnswers<'_>, out: &mut dyn Write) -> io::Result<()> {
    let roots = answers.roots();
    let mut parts: Vec<(u64, String)> = Vec::new();
    for (name, size) in &roots.groups {
        parts.push((*size, sanitize(name).trim_matches(['(', ')']).to_owned()));
    }
    parts.push((roots.others, "other roots".to_owned()));
    parts.push((roots.shared, "two or more of them".to_owned()));
    parts.retain(|(size, _)| *size > 0);
    if parts.is_empty() {
        return Ok(());
    }
    let mut line = titled("held by");
    for (index, (size, name)) in parts.iter().enumerate() {
        let size = text.size(*size);
        let comma = if index + 1 == parts.len() { "" } else { "," };
        let needed = 1 + width(&size) + 1 + width(name) + comma.len();
        if index > 0 && line.width() + needed > text.cols {
            line.cut(text.cols).write(text.style, out)?;
            line = titled("");
        } else if index > 0 {
            line.plain(" ");
        }
        line.push(Paint::Bold, size).plain(format!(" {name}{comma}"));
    }
    line.cut(text.cols).write(text.style, out)
}

const TYPES: [(&str, usize); 4] = [("%", 4), ("count", 6), ("own", 7), ("retained", 8)];

fn table(text: &HeapText, rows: &[TypeRow], out: &mut dyn Write) -> io::Result<()> {
    let whole = total(rows).self_size;
    header(text, &TYPES, "type", out)?;
    let shown = text.shown(rows.len());
    for row in &rows[..shown] {
        let values = [
            share(row.self_size, whole),
            count_text(row.count),
            text.size(row.self_size),
            text.size(row.retained_size),
        ];
        let mut line = numbers(&TYPES, &values);
        push_type(text, &mut line, &row.name);
        line.cut(text.cols).write(text.style, out)?;
    }
    let rest = total(&rows[shown..]).self_size;
    let rest = format!(", {:.1} % together", percent(rest, whole));
    hidden(text, rows.len() - shown, ("type", "types"), &rest, out)
}

fn share(part: u64, whole: u64) -> String {
    let share = percent(part, whole);
    if share >= 99.95 { "100".to_owned() } else { format!("{share:.1}") }
}

const HOLDERS: [(&str, usize); 2] = [("retained", 8), ("blocks", 6)];

fn largest(text: &HeapText, answers: &HeapAnswers<'_>, out: &mut dyn Write) -> io::Result<()> {
    let rows = answers.largest(text.few().min(1000));
    if rows.is_empty() {
        return Ok(());
    }
    heading(text, "Largest holders", out)?;
    header(text, &HOLDERS, "type or variable, and the path to it", out)?;
    for row in rows {
        let mut line = numbers(&HOLDERS, &[text.size(row.retained_size), count_text(row.count)]);
        let indent = line.width();
        if row.alike > 1 {
            line.push(Paint::Bold, format!("{} × ", grouped(row.alike)));
        }
        push_type(text, &mut line, &row.name);
        line.cut(text.cols).write(text.style, out)?;
        out.write_all(" ".repeat(indent).as_bytes())?;
        short_path(text, indent, &row.path, out)?;
    }
    Ok(())
}

const OWNERS: [(&str, usize); 3] = [("bytes", 8), ("blocks", 6), ("owners", 6)];

fn candidates(text: &HeapText, types: &TypeTable, leaks: &Leaks, out: &mut dyn Write) -> io::Result<()> {
    if types.unreachable.is_empty() {
        return Ok(());
    }
    if leaks.owners.is_empty() {
        heading(text, "Not reached by roots", out)?;
        return table(text, &types.unreachable, out);
    }
    let (weak, lost): (Vec<&OwnerRow>, Vec<&OwnerRow>) = leaks.owners.iter().partition(|row| row.weak);
    if !lost.is_empty() {
        heading(text, "Leak candidates, by the type of their owners", out)?;
        owners(text, &lost, out)?;
    }
    if !weak.is_empty() {
        heading(text, "Only weak edges lead to these owners (Weak<T>, unions, integers, byte buffers)", out)?;
        owners(text, &weak, out)?;
    }
    if leaks.shared_count > 0 {
        let values = [text.size(leaks.shared_size), count_text(leaks.shared_count), String::new()];
        let mut line = numbers(&OWNERS, &values);
        line.push(Paint::Grey, "held by two or more of them").cut(text.cols).write(text.style, out)?;
    }
    Ok(())
}

fn owners(text: &HeapText, rows: &[&OwnerRow], out: &mut dyn Write) -> io::Result<()> {
    header(text, &OWNERS, "type", out)?;
    let shown = rows.len().min(text.few());
    for row in &rows[..shown] {
        let values = [text.size(row.size), count_text(row.count), count_text(row.owners)];
        let mut line = numbers(&OWNERS, &values);
        let cycles = match row.in_cycles {
            0 => "",
            some if some == row.owners => " (in cycles)",
            _ => " (some in cycles)",
        };
        let narrow = HeapText { cols: text.cols - width(cycles), ..text.clone() };
        push_type(&narrow, &mut line, &row.name);
        line.push(Paint::Yellow, cycles).cut(text.cols).write(text.style, out)?;
        // The name of a type that is not known is that of its site.
        if !row.name.starts_with("site: ") {
            sites_below(text, &row.sites, out)?;
        }
    }
    hidden(text, rows.len() - shown, ("type", "types"), "", out)
}

/// Most sites below a type.
const SITES: usize = 3;

/// The sites that allocated the owners in a row, with their number.
fn sites_below(text: &HeapText, sites: &[SiteRow], out: &mut dyn Write) -> io::Result<()> {
    let shown = if text.everything { sites.len() } else { sites.len().min(SITES) };
    for site in &sites[..shown] {
        let mut line = numbers(&OWNERS, &[String::new(), String::new(), count_text(site.count)]);
        line.push(Paint::Grey, "by ");
        let room = text.cols.saturating_sub(line.width());
        line.plain(cut_left(&sanitize(&site.name), room)).write(text.style, out)?;
    }
    let rest: u64 = sites[shown..].iter().map(|site| site.count).sum();
    if rest > 0 {
        let mut line = numbers(&OWNERS, &[String::new(), String::new(), count_text(rest)]);
        let more = counted((sites.len() - shown) as u64, "other site", "other sites");
        line.push(Paint::Grey, format!("by {more}")).cut(text.cols).write(text.style, out)?;
    }
    Ok(())
}

/// What could be saved, the largest first.
fn savings(text: &HeapText, leaks: &Leaks, waste: &Waste, out: &mut dyn Write) -> io::Result<()> {
    let mut findings: Vec<(u64, Line)> = Vec::new();
    if leaks.lost_size > 0 {
        let mut line = Line::new();
        line.plain(format!("free {}", counted(leaks.lost_count, "leaked block", "leaked blocks")));
        if leaks.owners.iter().any(|row| row.in_cycles > 0 && !row.weak) {
            line.plain("; in each cycle, make one pointer weak");
        }
        findings.push((leaks.lost_size, line));
    }
    for row in waste.unused.iter().take(text.few()) {
        let mut line = Line::new();
        let share = percent_text(row.unused_size, row.self_size);
        let buffers = counted(row.count, "buffer", "buffers");
        line.plain(format!("unused capacity: {share} of {buffers} in "));
        let narrow = HeapText { cols: text.cols.saturating_sub(10), ..text.clone() };
        push_field(&narrow, &mut line, &row.holder, &row.field);
        findings.push((row.unused_size, line));
    }
    let duplicates = waste.duplicates.as_ref().map_or(&[][..], |duplicates| &duplicates.strings);
    if duplicates.len() > text.few() {
        let copies: u64 = duplicates.iter().map(|row| row.count).sum();
        let mut line = Line::new();
        let (copies, texts) = (count_text(copies), count_text(duplicates.len() as u64));
        line.plain(format!(
            "equal strings: {copies} copies of {texts} texts, of which the largest are below"
        ));
        let waste = duplicates.iter().fold(0, |sum: u64, row| sum.saturating_add(row.waste));
        findings.push((waste, line));
    }
    for row in duplicates.iter().take(text.few()) {
        let mut line = Line::new();
        let copies = format!("{} copies of \"", count_text(row.count));
        let room = text.cols.saturating_sub(11 + width(&copies));
        line.plain(copies).plain(cut_right(&sanitize(&row.text), room)).plain("\"");
        findings.push((row.waste, line));
    }
    if findings.is_empty() {
        return Ok(());
    }
    findings.sort_by_key(|(saved, _)| std::cmp::Reverse(*saved));
    // One row takes no more space than the line that says it is hidden.
    let shown = if findings.len() <= text.few().saturating_add(1) { findings.len() } else { text.few() };
    let rest = findings.split_off(shown).len();
    heading(text, "What could be saved", out)?;
    for (saved, finding) in findings {
        let mut line = numbers(&[(text.size_title(), 8)], &[text.size(saved)]);
        line.append(finding).cut(text.cols).write(text.style, out)?;
    }
    hidden(text, rest, ("saving", "savings"), "", out)
}

/// A type in a sentence.
pub(super) fn short(name: &str, room: usize) -> String {
    shorten_type(&sanitize(name), room)
}
