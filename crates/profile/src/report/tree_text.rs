//! The tree as text.

use super::{SortedBy, groups::Context, order, tree::Tree};
use crate::columns::{self, digits};
use crate::style::{Line, Paint};
use std::io::{self, Write};

pub(super) fn write_header(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "Overhead ╎ [+additional indent] Count File:Line  Function\n{}", "=".repeat(57))
}

/// Digits of what is printed in the two columns of numbers, the same for the whole tree.
struct Digits {
    overhead: usize,
    count: usize,
}

/// Writes all lines below the root, depth first.
pub(super) fn write(tree: &Tree<'_>, context: &Context<'_>, out: &mut dyn Write) -> io::Result<()> {
    let report = context.report;
    let max = |value: fn(&super::tree::Node<'_>) -> u64| tree.nodes.iter().map(value).max().unwrap_or(0);
    let sizes = Digits { overhead: digits(max(|node| node.overhead)), count: digits(max(|node| node.count)) };
    // What is still to print, the next one last.
    let mut open: Vec<Open> = Vec::new();
    let mut next = Some(Open { node: 0, depth: 0, line_digits: 0 });
    while let Some(entry) = next {
        let Open { node: number, depth, .. } = entry;
        let node = &tree.nodes[number as usize];
        if depth > 0 {
            line(tree, &entry, &sizes, context).cut(report.cols).write(report.style, out)?;
        }
        if i64::try_from(depth).unwrap_or(i64::MAX) <= report.maxdepth {
            let noise = match number {
                0 => 0.0,
                _ => (report.noisefloor.max(0.0) * (node.count as f64).sqrt()).floor(),
            };
            let frames = tree.children(number).filter_map(|child| tree.nodes[child as usize].frame);
            let line_digits = frames.map(|frame| digits(frame.line.unsigned_abs())).max().unwrap_or(1);
            let first = open.len();
            for child in sorted(tree, number, report.sorted_by) {
                let count = tree.nodes[child as usize].count;
                if count >= report.mincount && count as f64 >= noise {
                    open.push(Open { node: child, depth: depth + 1, line_digits });
                }
            }
            open[first..].reverse();
        }
        next = open.pop();
    }
    Ok(())
}

/// Siblings in ascending order; equal ones by file, function and line, then as they were met.
fn sorted(tree: &Tree<'_>, parent: u32, key: SortedBy) -> Vec<u32> {
    let mut sorted: Vec<u32> = tree.children(parent).collect();
    sorted.reverse();
    let node = |number: &u32| &tree.nodes[*number as usize];
    sorted.sort_by(|a, b| {
        let flat_counts = tree.flat_count(*a).cmp(&tree.flat_count(*b));
        let (a, b) = (node(a), node(b));
        let by_key = match key {
            SortedBy::FileFuncLine => std::cmp::Ordering::Equal,
            SortedBy::Count => a.count.cmp(&b.count),
            SortedBy::Overhead => a.overhead.cmp(&b.overhead),
            SortedBy::FlatCount => flat_counts,
        };
        by_key.then_with(|| match (a.frame, b.frame) {
            (Some(a), Some(b)) => order::by_file_func_line(a, b),
            _ => std::cmp::Ordering::Equal,
        })
    });
    sorted
}

/// A node to print.
struct Open {
    node: u32,
    /// 1 for the outermost that are printed.
    depth: usize,
    /// Digits of the largest line number among its siblings, hidden ones too.
    line_digits: usize,
}

fn line(tree: &Tree<'_>, entry: &Open, sizes: &Digits, context: &Context<'_>) -> Line {
    let report = context.report;
    let node = &tree.nodes[entry.node as usize];
    let indent = Indent::new(entry.depth - 1, report.cols);
    let room = report
        .cols
        .saturating_sub(sizes.overhead + indent.wanted + sizes.count + entry.line_digits + 12)
        .max(30);
    let file_room = 2 * room / 5;

    let grey = if node.sleeping { Paint::Grey } else { Paint::Normal };
    let overhead = if node.overhead > 0 { node.overhead.to_string() } else { String::new() };
    let mut line = Line::new();
    line.bold(node.overhead > 0).push(grey, columns::pad_left(&overhead, sizes.overhead));
    line.plain(format!("╎{}", indent.text));
    line.push(grey, columns::pad_right(&node.count.to_string(), sizes.count)).plain(" ");
    let Some(frame) = node.frame.filter(|frame| !frame.is_unknown()) else {
        line.plain("[unknown stackframe]");
        return line;
    };
    if frame.line as u64 == node.address && frame.line >= 0 {
        line.plain(format!("[unknown function] (pointer: 0x{:016x})", node.address));
        return line;
    }
    let file = context.names.file(&frame.file);
    let rest_room = file_room.saturating_sub(columns::width(&file.prefix) + 1).max(1);
    let rest = columns::cut_left(&file.rest, rest_room);
    let slash = if file.prefix.is_empty() || rest.starts_with('/') { "" } else { "/" };
    let number = if frame.line == -1 { "?".to_owned() } else { frame.line.to_string() };
    // No prefix takes its turn among the colours as well, as in the reference.
    let (paint, link) = (context.names.paint(&file.prefix), context.names.link(frame));
    if !file.prefix.is_empty() {
        line.push_linked(paint, &*file.prefix, link.clone());
    }
    line.linked(format!("{slash}{rest}:{number}"), link);
    line.plain("  ");
    if !report.combine {
        line.plain(format!("0x{:016x} ", node.address));
    }
    let name = match node.mixed && !report.quirks.any_spec {
        true => columns::harmless(&frame.func),
        false => context.names.function(frame),
    };
    line.push(grey, name);
    line
}

/// What stands between the bar and the count.
struct Indent {
    text: String,
    /// Columns set aside for it, which short terminals may not have.
    wanted: usize,
}

impl Indent {
    fn new(level: usize, cols: usize) -> Indent {
        let wanted = level.min(cols / 2);
        let bars = |columns: usize| -> String {
            let filler = "    ╎".chars().cycle().take(columns.saturating_sub(1));
            filler.chain(std::iter::once(' ')).collect()
        };
        let text = match level - wanted {
            0 if wanted == 0 => String::new(),
            0 => bars(wanted),
            extra => {
                let left = wanted as i64 - (digits(extra as u64) as i64 + 2);
                match left {
                    0 => format!("+{extra} "),
                    _ => format!("{}+{extra} ", bars(left.max(0) as usize)),
                }
            }
        };
        Indent { text, wanted }
    }
}
