//! The text of the tree of CPU time.
//!
//! Columns: percent of CPU time, milliseconds, milliseconds in the function itself, stacks taken. A sole callee is
//! printed below its caller without indentation, siblings get branches. So deep stacks stay readable at 80 columns.

use super::cut_reasons::cut_reason;
use super::{NOTICEABLE, Summary};
use crate::kinds::Class;
use crate::queries::cpu_tree::{CpuTree, NodeKind};
use crate::text::columns::{cut_right, width, wrap};
use crate::text::numbers::{counted, grouped, millis_text, percent, percent_text};
use crate::text::short::{location_text, short_function};
use crate::text::style::{Line, Paint};
use stackglass_profile::{Recording, harmless};
use std::io::{self, Write};

/// Columns per level of branch lines.
const LEVEL: usize = 2;

/// Widths of the columns of numbers.
struct Columns {
    total: usize,
    own: usize,
    hits: usize,
}

/// A node to write.
struct Open {
    node: u32,
    /// The branch lines before this node's own sign.
    guides: Guides,
    branch: Branch,
    /// Number of library frames omitted between this node and its parent.
    skipped: u32,
}

#[derive(Clone, Copy, PartialEq)]
enum Branch {
    /// The only callee shown.
    Only,
    Middle,
    Last,
}

pub(super) fn write(summary: &Summary, tree: &CpuTree<'_>, out: &mut dyn Write) -> io::Result<()> {
    let cpu = tree.cpu();
    if cpu.time == 0 {
        for line in wrap("No CPU time was sampled: nothing ran, or for less than one tick.", summary.cols) {
            writeln!(out, "{line}")?;
        }
        return out.write_all(b"\n");
    }
    let own = tree.nodes.iter().map(|call| call.own.time).max().unwrap_or(0);
    let columns = Columns {
        total: width(&millis_text(cpu.time)).max(4),
        own: width(&millis_text(own)).max(6),
        hits: width(&grouped(cpu.hits)).max(6),
    };
    let mut header = Line::new();
    header.push(
        Paint::Grey,
        format!(
            "    %  {:>1$}  {2:>3$}  {4:>5$}  function (a sole callee is not indented)",
            "ms", columns.total, "own ms", columns.own, "stacks", columns.hits
        ),
    );
    header.cut(summary.cols).write(summary.style, out)?;
    let mut hidden = Hidden::default();
    let mut open: Vec<Open> = Vec::new();
    push_children(summary, tree, 0, &Guides::default(), &mut open, &mut hidden);
    while let Some(entry) = open.pop() {
        row(summary, tree, &entry, &columns).cut(summary.cols).write(summary.style, out)?;
        let below = match entry.branch {
            Branch::Only => entry.guides.clone(),
            Branch::Middle => entry.guides.extended("│ ", summary.cols),
            Branch::Last => entry.guides.extended("  ", summary.cols),
        };
        push_children(summary, tree, entry.node, &below, &mut open, &mut hidden);
    }
    if hidden.lines > 0 {
        let lines = counted(hidden.lines, "line", "lines");
        let share = percent_text(hidden.time, cpu.time);
        let mut line = Line::new();
        line.push(Paint::Grey, format!("{lines} under 0.5 % hidden, {share} together: --all shows them"));
        line.cut(summary.cols).write(summary.style, out)?;
    }
    out.write_all(b"\n")
}

/// What was hidden.
#[derive(Default)]
struct Hidden {
    lines: u64,
    time: u64,
}

fn push_children(
    summary: &Summary,
    tree: &CpuTree<'_>,
    parent: u32,
    guides: &Guides,
    open: &mut Vec<Open>,
    hidden: &mut Hidden,
) {
    let least = if summary.everything { 0.0 } else { tree.cpu().time as f64 * NOTICEABLE };
    let noticeable = |node: u32| tree.nodes[node as usize].total.time as f64 >= least;
    let (shown, folded): (Vec<u32>, Vec<u32>) =
        tree.nodes[parent as usize].children.iter().partition(|child| noticeable(**child));
    for child in folded {
        hidden.time += tree.nodes[child as usize].total.time;
        hidden.lines += lines_below(tree, child);
    }
    let count = shown.len();
    let mut entries: Vec<Open> = Vec::with_capacity(count);
    for (index, child) in shown.into_iter().enumerate() {
        let branch = match (count, index + 1 == count) {
            (1, _) => Branch::Only,
            (_, true) => Branch::Last,
            (_, false) => Branch::Middle,
        };
        let (node, skipped) =
            if summary.everything { (child, 0) } else { skip_plumbing(tree, child, least, hidden) };
        entries.push(Open { node, guides: guides.clone(), branch, skipped });
    }
    open.extend(entries.into_iter().rev());
}

/// Skips library functions that only call one other function. Returns the node reached and the number skipped.
fn skip_plumbing(tree: &CpuTree<'_>, from: u32, least: f64, hidden: &mut Hidden) -> (u32, u32) {
    let (mut node, mut skipped) = (from, 0);
    loop {
        let call = &tree.nodes[node as usize];
        let library = match call.what {
            NodeKind::Function(function) => tree.names.functions[function as usize].class == Class::Std,
            _ => false,
        };
        let (large, small): (Vec<u32>, Vec<u32>) =
            call.children.iter().partition(|child| tree.nodes[**child as usize].total.time as f64 >= least);
        match large[..] {
            [only] if library && (call.own.time as f64) < least => {
                for child in small {
                    hidden.time += tree.nodes[child as usize].total.time;
                    hidden.lines += lines_below(tree, child);
                }
                node = only;
                skipped += 1;
            }
            _ => return (node, skipped),
        }
    }
}

fn lines_below(tree: &CpuTree<'_>, node: u32) -> u64 {
    let (mut lines, mut open) = (0, vec![node]);
    while let Some(node) = open.pop() {
        lines += 1;
        open.extend(&tree.nodes[node as usize].children);
    }
    lines
}

fn row(summary: &Summary, tree: &CpuTree<'_>, entry: &Open, columns: &Columns) -> Line {
    let call = &tree.nodes[entry.node as usize];
    let cpu = tree.cpu().time;
    let share = percent(call.total.time, cpu);
    let own_matters = call.own.time as f64 >= cpu as f64 * NOTICEABLE;
    let weight = if own_matters { Paint::Bold } else { Paint::Normal };
    let own = if call.own.time > 0 { millis_text(call.own.time) } else { String::new() };
    // Unaccounted time has no stacks.
    let without_stack =
        matches!(call.what, NodeKind::Unaccounted | NodeKind::Nothing(_)) && call.total.hits == 0;
    let hits = if without_stack { String::new() } else { grouped(call.total.hits) };
    let mut line = Line::new();
    line.push(weight, format!("{share:>5.1}")).plain(format!(
        "  {:>1$}",
        millis_text(call.total.time),
        columns.total
    ));
    line.push(weight, format!("  {own:>0$}", columns.own));
    line.push(Paint::Grey, format!("  {hits:>0$}  ", columns.hits));
    let sign = match entry.branch {
        Branch::Only => "",
        Branch::Middle => "├ ",
        Branch::Last => "└ ",
    };
    let guides = entry.guides.extended(sign, summary.cols);
    let room = summary.cols.saturating_sub(line.width());
    line.push(Paint::Grey, guides.fit(room / 2));
    if entry.skipped > 0 {
        line.push(Paint::Grey, "⋯ ");
    }
    let room = summary.cols.saturating_sub(line.width());
    match call.what {
        NodeKind::Root => {}
        NodeKind::Unaccounted => drop(line.plain("[unaccounted]")),
        NodeKind::Nothing(None) => drop(line.plain("[start and end of threads]")),
        NodeKind::Nothing(Some(cut)) => {
            let why = cut_reason(cut).map_or("unknown reason", |reason| reason.word);
            line.plain(format!("[no stack: {why}]"));
        }
        NodeKind::Program(program) => {
            let program = &tree.programs[program as usize];
            let times =
                if program.processes > 1 { format!(" ×{}", program.processes) } else { String::new() };
            line.push(Paint::Cyan, format!("{}{times}", harmless(&program.name)));
        }
        NodeKind::Function(function) => {
            let function = &tree.names.functions[function as usize];
            let name = &function.name;
            let mark = if call.recursive { " ↻" } else { "" };
            let hottest = call.lines.iter().max_by_key(|(line, time)| (**time, std::cmp::Reverse(**line)));
            let location = hottest.map(|(line, _)| &tree.names.lines[*line as usize]);
            let left = room.saturating_sub(width(name) + width(mark) + 2);
            let (location, link) = match location {
                // For the C library, the module says more than a line.
                Some(at) if !at.file.is_empty() && function.class != Class::C => (
                    short_location(tree.recording, &at.file, at.line, left.max(room / 3)),
                    summary.link(&at.file, at.line),
                ),
                // A module that is part of the name, or shown one line above, is not repeated.
                _ if name.starts_with('[')
                    || function.by_start
                    || module_of(tree, call.parent) == Some(&function.module) =>
                {
                    (String::new(), None)
                }
                _ => (cut_right(&harmless(&function.module), left.max(room / 4)).into_owned(), None),
            };
            let for_name = match location.is_empty() {
                true => room,
                false => room.saturating_sub(width(&location) + 2),
            };
            let name = short_function(name, for_name.saturating_sub(width(mark)));
            let used = width(&name) + width(mark);
            line.push(weight, name).plain(mark);
            if !location.is_empty() {
                let gap = room.saturating_sub(used + width(&location));
                line.plain(" ".repeat(gap)).push_linked(Paint::Grey, location, link);
            }
        }
    }
    line
}

/// The module of a node's function.
fn module_of<'c>(tree: &'c CpuTree<'_>, node: u32) -> Option<&'c String> {
    match tree.nodes[node as usize].what {
        NodeKind::Function(function) => Some(&tree.names.functions[function as usize].module),
        _ => None,
    }
}

/// The branch lines from a node's callers down to it.
#[derive(Clone, Default)]
struct Guides {
    text: String,
    /// Number of outer levels dropped from the text, so that it stays short.
    cut: usize,
}

impl Guides {
    fn extended(&self, by: &str, cols: usize) -> Guides {
        let mut longer = Guides { text: format!("{}{by}", self.text), cut: self.cut };
        if width(&longer.text) > cols {
            longer.text = longer.text.chars().skip(LEVEL).collect();
            longer.cut += 1;
        }
        longer
    }

    /// The innermost levels that fit, after the number of those that do not.
    fn fit(&self, room: usize) -> String {
        let columns = width(&self.text);
        let (mut cut, mut mark) = (0, if self.cut > 0 { format!("+{} ", self.cut) } else { String::new() });
        while columns + width(&mark) > room + cut * LEVEL && cut * LEVEL < columns {
            cut += 1;
            mark = format!("+{} ", self.cut + cut);
        }
        mark + &self.text.chars().skip(cut * LEVEL).collect::<String>()
    }
}

/// `@crate/src/file.rs:41` where it fits, else `file.rs:41`.
pub(super) fn short_location(recording: &Recording, file: &str, line: i64, room: usize) -> String {
    location_text(recording.symbols.short_path(file), file, line, room)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_guides_are_cut() {
        let guides = |text: &str| Guides { text: text.to_owned(), cut: 0 };
        assert_eq!(guides("│ │ ├ ").fit(6), "│ │ ├ ");
        assert_eq!(guides("│ │ │ │ ├ ").fit(6), "+4 ├ ");
        let longer = guides("│ │ ").extended("├ ", 4);
        assert_eq!((longer.fit(10), longer.fit(5)), ("+1 │ ├ ".into(), "+2 ├ ".into()));
    }
}
