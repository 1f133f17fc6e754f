//! The text of the tree of CPU time.
//!
//! Columns: percent of CPU time, milliseconds, milliseconds in the function itself, stacks taken. A sole callee is
//! printed below its caller without indentation, siblings get branches. So deep stacks stay readable at 80 columns.

use super::Summary;
use super::cut_reasons::cut_reason;
use super::shares::{LEAST_SHOWN, has_times};
use super::tree_rows::{self, Row};
use crate::kinds::Class;
use crate::queries::cpu_tree::{CpuNode, CpuTree, NodeKind};
use crate::queries::unaccounted_cpu::UNACCOUNTED;
use crate::text::columns::{cut_right, width, wrap};
use crate::text::numbers::{counted, grouped, millis_text, percent, percent_text};
use crate::text::short::{location_text, short_function};
use crate::text::style::{Line, Paint};
use stackglass_profile::{Recording, sanitize};

/// Columns per level of branch lines.
const LEVEL: usize = 2;

/// Widths of the columns of numbers.
struct Columns {
    /// Samples have times. Otherwise there are no columns of times, and that of own time has numbers of samples.
    times: bool,
    total: usize,
    own: usize,
    hits: usize,
    /// There is room for the share and the time only, so that names can be read.
    narrow: bool,
}

/// From so many columns on, all columns of numbers are shown.
const WIDE: usize = 60;

/// Number of lines around the rows: the header, and what is hidden.
const AROUND: usize = 2;

/// The lines of the tree, at most `most` of them.
pub(super) fn lines(summary: &Summary, tree: &CpuTree<'_>, most: usize) -> Vec<Line> {
    let cpu = tree.cpu();
    if cpu.time == 0 {
        let text = match has_times(tree.recording) {
            _ if tree.recording.is_walltime() => "No task was seen.",
            // Nobody knows what the lost rest of the file had.
            true if tree.recording.info.end.is_none() => "There are no samples of CPU time.",
            true => "No CPU time was sampled: nothing ran, or for less than one tick.",
            false => "No sample was taken on a CPU.",
        };
        return wrap(text, summary.cols)
            .into_iter()
            .map(|text| Line::from_text(Paint::Normal, text))
            .collect();
    }
    let own = tree.nodes.iter().map(|call| call.own.time).max().unwrap_or(0);
    let columns = Columns {
        times: has_times(tree.recording),
        total: width(&millis_text(cpu.time)).max(4),
        own: width(&millis_text(own)).max(6),
        hits: width(&grouped(cpu.hits)).max(7),
        narrow: summary.cols < WIDE && has_times(tree.recording),
    };
    let times = match columns.times {
        true if columns.narrow => format!("{:>1$}", "ms", columns.total),
        true => format!("{:>1$}  {2:>3$}", "ms", columns.total, "own ms", columns.own),
        false => format!("{:>1$}", "own", columns.hits),
    };
    let samples = match columns.narrow {
        true => String::new(),
        false => format!("  {:>1$}", "samples", columns.hits),
    };
    let header = format!("    %  {times}{samples}  function (a sole callee is not indented)");
    let mut lines = vec![Line::from_text(Paint::Grey, header)];
    let rows = tree_rows::all(summary, tree);
    let rows = tree_rows::fit(rows, tree, most.saturating_sub(AROUND).max(1));
    // The rows that the next one may be below, with the branch lines before their callees.
    let mut callers: Vec<(Option<usize>, Guides)> = vec![(None, Guides::default())];
    let mut last = vec![0; rows.len() + 1];
    let below = |row: &Row| row.parent.map_or(0, |parent| parent + 1);
    rows.iter().enumerate().for_each(|(index, row)| last[below(row)] = index);
    for (index, shown) in rows.iter().enumerate() {
        let (sign, extension) = match () {
            () if shown.only => ("", ""),
            () if last[below(shown)] == index => ("└ ", "  "),
            () => ("├ ", "│ "),
        };
        while callers.len() > 1 && callers[callers.len() - 1].0 != shown.parent {
            callers.pop();
        }
        let before = &callers[callers.len() - 1].1;
        lines.push(row(summary, tree, shown, &before.extended(sign, summary.cols), &columns));
        let extended = before.extended(extension, summary.cols);
        callers.push((Some(index), extended));
    }
    lines.extend(hidden(tree, &rows));
    lines
}

/// How much is not shown, and the most that any hidden branch has.
fn hidden(tree: &CpuTree<'_>, rows: &[Row]) -> Option<Line> {
    let mut is_shown = vec![false; tree.nodes.len()];
    is_shown[0] = true;
    rows.iter().for_each(|row| is_shown[row.node as usize] = true);
    let is_hidden = |(call, is_shown): &(&CpuNode, &bool)| !**is_shown && call.total.time > 0;
    let lines = tree.nodes.iter().zip(&is_shown).filter(is_hidden).count();
    // Of what a shown function was called through, `⋯` stands for it.
    for node in (1..tree.nodes.len()).rev().filter(|node| is_shown[*node]).collect::<Vec<_>>() {
        let mut caller = tree.nodes[node].parent as usize;
        while !is_shown[caller] {
            is_shown[caller] = true;
            caller = tree.nodes[caller].parent as usize;
        }
    }
    let largest = tree.nodes.iter().zip(&is_shown).filter(|(_, is_shown)| !**is_shown);
    let largest = largest.map(|(call, _)| call.total.time).max().unwrap_or(0);
    let all = tree.cpu().time;
    let share = match percent_text(largest, all) {
        share if share.starts_with("0.00 ") => "less than 0.01 %".to_owned(),
        share => format!("up to {share}"),
    };
    let own: u64 = rows.iter().map(|row| tree.nodes[row.node as usize].own.time).sum();
    let together = percent_text(all - own, all);
    let lines = match lines {
        // `⋯` stands for all of them.
        _ if largest == 0 => return None,
        1 => format!("1 line of {} hidden: --all shows it", share.trim_start_matches("up to ")),
        _ => format!(
            "{} lines of {share} hidden, {together} together: --all shows them",
            grouped(lines as u64)
        ),
    };
    Some(Line::from_text(Paint::Grey, lines))
}

fn row(summary: &Summary, tree: &CpuTree<'_>, entry: &Row, guides: &Guides, columns: &Columns) -> Line {
    let call = &tree.nodes[entry.node as usize];
    let cpu = tree.cpu().time;
    let share = percent(call.total.time, cpu);
    let own_matters = call.own.time as f64 >= cpu as f64 * LEAST_SHOWN;
    let weight = if own_matters { Paint::Bold } else { Paint::Normal };
    let own = match call.own.time {
        0 => String::new(),
        time if columns.times => millis_text(time),
        samples => grouped(samples),
    };
    // Unaccounted time has no stacks.
    let without_stack =
        matches!(call.what, NodeKind::Unaccounted | NodeKind::Nothing(_)) && call.total.hits == 0;
    let hits = if without_stack { String::new() } else { grouped(call.total.hits) };
    let mut line = Line::new();
    line.push(weight, format!("{share:>5.1}"));
    if columns.times {
        line.plain(format!("  {:>1$}", millis_text(call.total.time), columns.total));
    }
    if !columns.narrow {
        let room = if columns.times { columns.own } else { columns.hits };
        line.push(weight, format!("  {own:>room$}"));
        line.push(Paint::Grey, format!("  {hits:>0$}", columns.hits));
    }
    line.plain("  ");
    let room = summary.cols.saturating_sub(line.width());
    line.push(Paint::Grey, guides.fit(room / 2));
    if entry.skipped > 0 {
        line.push(Paint::Grey, "⋯ ");
    }
    let room = summary.cols.saturating_sub(line.width());
    match call.what {
        NodeKind::Root => {}
        NodeKind::Unaccounted => drop(line.plain(UNACCOUNTED)),
        NodeKind::Executors(executors) => {
            let (least, most) = tree.folded.get(&entry.node).copied().unwrap_or_default();
            let frames = match least == most {
                true => counted(u64::from(most), "frame", "frames"),
                false => format!("{least} to {most} frames"),
            };
            line.push(Paint::Grey, format!("⋯ {frames} of {} and std", executors.names()));
        }
        NodeKind::Nothing(None) => drop(line.plain("[fork, exec and exit]")),
        NodeKind::Nothing(Some(cut)) => {
            let why = cut_reason(cut).map_or("unknown reason", |reason| reason.word);
            line.plain(format!("[no stack: {why}]"));
        }
        NodeKind::Program(program) => {
            let program = &tree.programs[program as usize];
            let times =
                if program.processes > 1 { format!(" ×{}", program.processes) } else { String::new() };
            line.push(Paint::Cyan, format!("{}{times}", sanitize(&program.name)));
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
                _ => (cut_right(&sanitize(&function.module), left.max(room / 4)).into_owned(), None),
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
