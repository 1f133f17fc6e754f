//! The text of the tree.

use super::context::Context;
use crate::order::{self, SortKeys};
use crate::text::columns::{self, digits};
use crate::text::short::in_brackets;
use crate::text::style::{Line, Paint};
use crate::trees::tree::{Node, Tree, TreeFrame};
use std::io::{self, Write};

pub(super) fn write_header(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "Overhead ╎ [+additional indent] Count File:Line  Function\n{}", "=".repeat(57))
}

/// Widths of the two columns of numbers, the same for the whole tree.
struct Digits {
    overhead: usize,
    count: usize,
}

/// Writes all lines below the root, depth first.
pub(super) fn write(tree: &Tree<'_>, context: &Context<'_>, out: &mut dyn Write) -> io::Result<()> {
    let report = context.report;
    let max = |value: fn(&Node) -> u64| tree.nodes.iter().map(value).max().unwrap_or(0);
    let sizes = Digits { overhead: digits(tree.greatest_overhead()), count: digits(max(|node| node.count)) };
    let mut indents = Indents { cols: report.cols, known: Vec::new() };
    let mut text = Line::new();
    // Nodes still to print, the next one last.
    let mut open: Vec<Open> = Vec::new();
    let mut next = Some(Open { node: 0, depth: 0, line_digits: 0 });
    while let Some(entry) = next {
        let Open { node: number, depth, .. } = entry;
        let node = &tree.nodes[number as usize];
        if depth > 0 {
            line(tree, &entry, &sizes, context, &mut indents, &mut text);
            text.cut(report.cols).write(report.style, out)?;
        }
        if i64::try_from(depth).unwrap_or(i64::MAX) <= report.maxdepth {
            let noise = match number {
                0 => 0.0,
                _ => (report.noisefloor.max(0.0) * (node.count as f64).sqrt()).floor(),
            };
            let lines = tree.children(number).filter_map(|child| Some(tree.frame(child)?.frame.line));
            let line_digits = lines.map(|line| digits(line.unsigned_abs())).max().unwrap_or(1);
            let first = open.len();
            open.extend(tree.children(number).filter_map(|child| {
                let count = tree.nodes[child as usize].count;
                let shown = count >= report.mincount && count as f64 >= noise;
                shown.then_some(Open { node: child, depth: depth + 1, line_digits })
            }));
            // The last one is printed next. Children come last met first, so the reversed comparison keeps equal ones
            // in the order in which they were met.
            open[first..]
                .sort_by(|a, b| order::siblings(report.sorted_by, &keys(tree, b.node), &keys(tree, a.node)));
        }
        next = open.pop();
    }
    Ok(())
}

fn keys<'t>(tree: &'t Tree<'_>, node: u32) -> SortKeys<'t> {
    SortKeys {
        count: tree.nodes[node as usize].count,
        overhead: tree.overhead(node),
        flat_count: tree.flat_count(node),
        frame: tree.frame(node).map(|shown| shown.frame),
    }
}

/// A node to print.
struct Open {
    node: u32,
    /// 1 for children of the root.
    depth: usize,
    /// Digits of the largest line number among its siblings, including hidden ones.
    line_digits: usize,
}

fn line(
    tree: &Tree<'_>,
    entry: &Open,
    sizes: &Digits,
    context: &Context<'_>,
    indents: &mut Indents,
    line: &mut Line,
) {
    let report = context.report;
    let node = &tree.nodes[entry.node as usize];
    let deep;
    let indent = match indents.get(entry.depth - 1) {
        Some(known) => known,
        None => {
            deep = Indent::new(entry.depth - 1, report.cols);
            &deep
        }
    };
    let room = report
        .cols
        .saturating_sub(sizes.overhead + indent.wanted + sizes.count + entry.line_digits + 12)
        .max(30);
    let file_room = 2 * room / 5;

    let grey = if node.sleeping { Paint::Grey } else { Paint::Normal };
    line.clear();
    let overhead = tree.overhead(entry.node);
    line.bold(overhead > 0);
    match overhead {
        0 => line.push(grey, format_args!("{:1$}", "", sizes.overhead)),
        overhead => line.push(grey, format_args!("{overhead:>0$}", sizes.overhead)),
    };
    line.plain(format_args!("╎{}", indent.text));
    line.push(grey, format_args!("{:<1$}", node.count, sizes.count)).plain(" ");
    let shown = tree.frame(entry.node).filter(|shown| !shown.frame.is_unknown());
    let Some(TreeFrame { frame, address, .. }) = shown else {
        let nameless =
            tree.frame(entry.node).map(|shown| (shown, report.quirks.module_of_nameless(shown.frame)));
        match nameless {
            None | Some((_, "")) => line.plain("[unknown stackframe]"),
            Some((_, module)) if report.combine => line.push(grey, in_brackets(module)),
            Some((shown, module)) => {
                line.plain(format_args!("0x{:016x} ", shown.address)).push(grey, in_brackets(module))
            }
        };
        return;
    };
    if frame.line as u64 == *address && frame.line >= 0 {
        line.plain(format_args!("[unknown function] (pointer: 0x{address:016x})"));
        return;
    }
    let file = context.labels.file(&frame.file);
    let rest_room = file_room.saturating_sub(columns::width(&file.prefix) + 1).max(1);
    let rest = columns::cut_left(&file.rest, rest_room);
    let slash = if file.prefix.is_empty() || rest.starts_with('/') { "" } else { "/" };
    // As in the reference, an empty prefix takes a colour, too.
    let (paint, link) = (context.labels.paint(&file.prefix), context.labels.link(frame));
    if !file.prefix.is_empty() {
        line.push_linked(paint, &*file.prefix, link.clone());
    }
    match frame.line {
        -1 => line.linked(format_args!("{slash}{rest}:?"), link),
        number => line.linked(format_args!("{slash}{rest}:{number}"), link),
    };
    line.plain("  ");
    if !report.combine {
        line.plain(format_args!("0x{address:016x} "));
    }
    let name = match !report.generics || (node.mixed && !report.quirks.any_spec) {
        true => context.labels.text(&frame.func),
        false => context.labels.function(frame),
    };
    line.push(grey, name);
}

/// The indents by level, cached for the usual levels.
struct Indents {
    cols: usize,
    known: Vec<Indent>,
}

impl Indents {
    /// `None` for levels beyond half of the columns.
    fn get(&mut self, level: usize) -> Option<&Indent> {
        while self.known.len() <= level.min(self.cols / 2) {
            self.known.push(Indent::new(self.known.len(), self.cols));
        }
        self.known.get(level)
    }
}

/// The text between the bar and the count.
struct Indent {
    text: String,
    /// Columns reserved for it. Narrow terminals may have fewer.
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
