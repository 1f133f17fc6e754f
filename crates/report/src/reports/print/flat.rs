//! The flat table: one row for each frame or address, whatever called it.

use super::Report;
use super::context::Context;
use crate::order::{self, SortKeys};
use crate::text::columns::{self, digits, width};
use crate::text::short::in_brackets;
use crate::text::style::{Line, Paint};
use crate::trees::aggregated_samples::{AggregatedSamples, SampleGroup};
use foldhash::HashMap;
use stackglass_profile::{Frame, ShortPath};
use std::io::{self, Write};

/// A row.
pub(super) struct Row<'a> {
    frame: &'a Frame,
    address: u64,
    /// Snapshots that had it on the stack.
    count: u64,
    /// Snapshots that ended in it.
    overhead: u64,
    mixed: bool,
}

impl Row<'_> {
    fn keys(&self) -> SortKeys<'_> {
        SortKeys { count: self.count, overhead: self.overhead, flat_count: 0, frame: Some(self.frame) }
    }
}

/// The rows, in the order in which they were first met: from the newest sample on, from root to leaf.
pub(super) struct Table<'a> {
    rows: Vec<Row<'a>>,
}

impl<'a> Table<'a> {
    pub(super) fn build(
        samples: &'a AggregatedSamples<'a>,
        groups: &[SampleGroup],
        report: &Report,
    ) -> Table<'a> {
        let mut rows: Vec<Row<'a>> = Vec::new();
        // Frames without names are distinguished by their modules.
        let mut frame_rows: HashMap<(&Frame, &str), u32> = HashMap::default();
        // Rows by address number, outermost first, filled when the address is first met.
        let mut rows_of: Vec<Option<Box<[u32]>>> = vec![None; samples.addresses.len()];
        let met = samples.nodes_met(groups.iter().map(|group| group.stack));
        for node in &met {
            let number = samples.nodes[*node as usize].address as usize;
            if rows_of[number].is_some() {
                continue;
            }
            let resolved = &samples.addresses[number];
            let mut own: Vec<u32> = Vec::new();
            for index in (0..resolved.frames.len()).rev() {
                let frame = resolved.frames.get(index);
                if frame.foreign && !report.c {
                    continue;
                }
                let mut add = || {
                    rows.push(Row {
                        frame,
                        address: resolved.address_of(index),
                        count: 0,
                        overhead: 0,
                        mixed: false,
                    });
                    rows.len() as u32 - 1
                };
                let row = match (report.combine, own.first()) {
                    (true, _) => {
                        let key = (frame, report.quirks.module_of_nameless(frame));
                        *frame_rows.entry(key).or_insert_with(add)
                    }
                    (false, Some(row)) => *row,
                    (false, None) => add(),
                };
                // All functions inlined at an address share its row. Nothing is merged in it.
                let mixed = report.combine && rows[row as usize].frame.spec != frame.spec;
                rows[row as usize].mixed |= mixed;
                own.push(row);
            }
            rows_of[number] = Some(own.into());
        }

        let rows_at = |node: u32| -> &[u32] {
            rows_of[samples.nodes[node as usize].address as usize].as_deref().unwrap_or(&[])
        };
        let mut ending = vec![0_u64; samples.nodes.len()];
        let mut leaf_row: Vec<Option<u32>> = vec![None; samples.nodes.len()];
        // By node: one of its children, and the next child of the same caller; 0 for none.
        let mut child = vec![0_u32; samples.nodes.len()];
        let mut sibling = vec![0_u32; samples.nodes.len()];
        for node in &met {
            let caller = samples.nodes[*node as usize].caller;
            sibling[*node as usize] = std::mem::replace(&mut child[caller as usize], *node);
            leaf_row[*node as usize] = rows_at(*node).last().copied().or(leaf_row[caller as usize]);
        }
        for group in groups {
            ending[group.stack as usize] += group.count;
            if let Some(row) = leaf_row[group.stack as usize] {
                rows[row as usize].overhead += group.count;
            }
        }
        if report.quirks.earliest_earns_nothing
            && let Some(group) = groups.iter().max_by_key(|group| group.oldest)
            && let Some(row) = leaf_row[group.stack as usize]
        {
            rows[row as usize].overhead -= 1;
        }
        // Samples that ended in or below a node count for the rows that its path meets there first.
        let mut below = ending;
        for node in met.iter().rev() {
            below[samples.nodes[*node as usize].caller as usize] += below[*node as usize];
        }
        let mut open = vec![0_u32; rows.len()];
        let enter_children = |node: u32, path: &mut Vec<Step>| {
            let mut at = child[node as usize];
            while at != 0 {
                path.push(Step::Enter(at));
                at = sibling[at as usize];
            }
        };
        let mut path: Vec<Step> = Vec::new();
        enter_children(0, &mut path);
        while let Some(step) = path.pop() {
            match step {
                Step::Enter(node) => {
                    for row in rows_at(node) {
                        if open[*row as usize] == 0 {
                            rows[*row as usize].count += below[node as usize];
                        }
                        open[*row as usize] += 1;
                    }
                    path.push(Step::Leave(node));
                    enter_children(node, &mut path);
                }
                Step::Leave(node) => rows_at(node).iter().for_each(|row| open[*row as usize] -= 1),
            }
        }
        Table { rows }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

enum Step {
    Enter(u32),
    Leave(u32),
}

/// Column widths.
struct Widths {
    count: usize,
    overhead: usize,
    file: usize,
    /// Space between File and Line in rows.
    gap: usize,
    line: usize,
    func: usize,
}

impl Widths {
    fn new(rows: &[Row<'_>], files: &[ShortPath], context: &Context<'_>) -> Widths {
        let quirks = context.report.quirks;
        let max = |value: fn(&Row<'_>) -> u64| rows.iter().map(value).max().unwrap_or(0);
        let count = digits(max(|row| row.count)).max(6);
        let overhead = digits(max(|row| row.overhead)).max(9);
        let line = digits(max(|row| row.frame.line.max(1) as u64)).max(5);
        let file =
            files.iter().map(|file| width(&file.prefix) + width(&file.rest) + 1).max().unwrap_or(0).max(6);
        let func = rows.iter().map(|row| width(&row.frame.func)).max().unwrap_or(0).max(10) + 25;
        let gap = usize::from(!quirks.flat_without_gap);
        let room = context.report.cols.saturating_sub(count + overhead + line + 3 + gap).max(20);
        let (file, func) = if file + func > room {
            (2 * room / 5, 3 * room / 5)
        } else if quirks.flat_cuts_functions {
            (file, room - func)
        } else {
            (file, room - file)
        };
        Widths { count, overhead, file, gap, line, func }
    }
}

/// Writes header and rows.
pub(super) fn write(table: &Table<'_>, context: &Context<'_>, out: &mut dyn Write) -> io::Result<()> {
    let report = context.report;
    let rows = &table.rows;
    let files: Vec<ShortPath> = rows.iter().map(|row| context.labels.file(&row.frame.file)).collect();
    let widths = Widths::new(rows, &files, context);
    for [count, overhead, file, line, func] in
        [["Count", "Overhead", "File", "Line", "Function"], ["=====", "========", "====", "====", "========"]]
    {
        let (count, overhead) =
            (columns::pad_left(count, widths.count), columns::pad_left(overhead, widths.overhead));
        let (file, line) = (columns::pad_right(file, widths.file), columns::pad_left(line, widths.line));
        writeln!(out, "{count} {overhead} {file} {line} {func}")?;
    }
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by(|a, b| order::flat_rows(report.sorted_by, &rows[*a].keys(), &rows[*b].keys()));
    for index in order {
        if rows[index].count >= report.mincount {
            row(&rows[index], &files[index], &widths, context).write(report.style, out)?;
        }
    }
    Ok(())
}

fn row(row: &Row<'_>, file: &ShortPath, widths: &Widths, context: &Context<'_>) -> Line {
    let report = context.report;
    let weight = if row.overhead > 0 { Paint::Bold } else { Paint::Normal };
    let mut line = Line::new();
    line.push(weight, columns::pad_left(&row.count.to_string(), widths.count)).plain(" ");
    line.push(weight, columns::pad_left(&row.overhead.to_string(), widths.overhead)).plain(" ");
    if row.frame.is_unknown() {
        let address = (!report.combine && row.address != 0).then(|| format!("@0x{:x}", row.address));
        match (address, report.quirks.module_of_nameless(row.frame)) {
            (Some(address), "") => line.plain(address),
            (None, "") => line.plain("[any unknown stackframes]"),
            (Some(address), module) => {
                line.plain(format!("{address} {}", in_brackets(module))).cut(report.cols)
            }
            (None, module) => line.plain(in_brackets(module)).cut(report.cols),
        };
        return line;
    }
    let prefix = width(&file.prefix);
    let rest_room = match (report.quirks.flat_prefix_pushes, prefix) {
        (true, _) | (false, 0) => widths.file,
        (false, _) => widths.file.saturating_sub(prefix + 1),
    };
    let rest = columns::cut_left(&file.rest, rest_room.max(1));
    let slash = if file.prefix.is_empty() || rest.starts_with('/') { "" } else { "/" };
    // As in the reference, an empty prefix takes a colour, too.
    let paint = context.labels.paint(&file.prefix);
    if !file.prefix.is_empty() {
        line.push(paint, &*file.prefix).plain(slash);
    }
    let padding = widths.file.saturating_sub(prefix + slash.len() + width(&rest));
    line.linked(rest, context.labels.link(row.frame)).plain(" ".repeat(padding));
    line.plain(" ".repeat(widths.gap));
    let number = if row.frame.line <= 0 { "?".to_owned() } else { row.frame.line.to_string() };
    line.plain(columns::pad_left(&number, widths.line)).plain(" ");
    let name = match row.mixed && !report.quirks.any_spec {
        true => context.labels.text(&row.frame.func),
        false => context.labels.function(row.frame),
    };
    let name = if name.is_empty() { "[unknown function]".into() } else { name };
    line.push(weight, columns::cut_right(&name, widths.func).into_owned());
    line
}
