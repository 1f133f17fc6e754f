//! The lines above the table: totals, the peak, and the types and lines that matter.

use super::AllocationsText;
use crate::allocation_queries::AllocationRow;
use crate::metric::Unit;
use crate::queries::allocations::site::Sites;
use crate::text::columns::{cut_right, width};
use crate::text::numbers::{bytes_text, count_text, counted, duration_text, percent, percent_text};
use crate::text::short::{location_text, short_function, shortest_location};
use crate::text::style::{Line, Paint};
use crate::text::type_name::shorten_type;
use crate::{AllocationKey, AllocationTable, Metric};
use stackglass_profile::{AllocationSampling, CountedSlices, Nanos, Recording, command_text, sanitize};

/// Number of types and lines.
const SHOWN: usize = 3;
/// Types and lines below this share are not listed.
const NOTICEABLE: f64 = 0.005;
/// Most columns for the command.
const COMMAND: usize = 24;

pub(super) fn lines(
    text: &AllocationsText,
    recording: &Recording,
    table: &AllocationTable,
    sites: &mut Sites<'_>,
) -> Vec<Line> {
    let mut lines = vec![totals(text, recording, table)];
    lines.extend(table.part.map(range));
    lines.extend(text.of_type.as_deref().map(|name| of_type(name, table)));
    lines.push(peak(text, recording, table));
    if table.total.count > 0 {
        lines.extend([at_end(table), shares(text, table)]);
        lines.extend(of_metric(text.metric, table));
        let whole = text.metric.of(&table.total);
        let types = match table.key {
            AllocationKey::Type => types(table),
            _ => types(&AllocationTable::with_sites(recording, sites, AllocationKey::Type, text.metric)),
        };
        if table.typed_share() >= super::FEW_TYPES && (text.of_type.is_none() || types.len() > 1) {
            lines.extend(largest(text, "types", &types, whole));
        }
        // The order of lines is that of the table, if it has them.
        let lines_of = |table: &AllocationTable| lines_of(text, recording, table);
        lines.extend(match table.key {
            AllocationKey::Site => largest(text, "sites", &lines_of(table), whole),
            AllocationKey::Line => largest(text, "lines", &lines_of(table), whole),
            _ => {
                let own = AllocationTable::with_sites(recording, sites, AllocationKey::Line, text.metric);
                largest(text, "lines", &lines_of(&own), whole)
            }
        });
    }
    lines
}

/// The command, the number of allocations and their bytes.
fn totals(text: &AllocationsText, recording: &Recording, table: &AllocationTable) -> Line {
    let total = &table.total;
    let mut line = Line::new();
    match command_text(&recording.info.command) {
        command if !command.is_empty() && !text.closing => {
            line.push(Paint::Bold, cut_right(&sanitize(&command), COMMAND).into_owned()).plain("  ");
        }
        _ => {}
    }
    let count = if total.count == 1 { "allocation" } else { "allocations" };
    line.push(Paint::Bold, bytes_text(total.bytes));
    if table.error > 0.0 {
        line.plain(format!(" ± {:.1} %", table.error * 100.0));
    }
    line.plain(" in ").push(Paint::Bold, count_text(total.count)).plain(format!(" {count}"));
    let seconds = recorded(recording).seconds();
    if seconds > 0.0 && total.count > 0 {
        let rate = count_text((total.count as f64 / seconds).round() as u64);
        line.plain(format!(", {rate} per second"));
    }
    let processes = recording.allocations.processes.len();
    if processes > 1 {
        line.plain(format!(", {processes} processes"));
    }
    line
}

/// The part of the time that counts: whole slices.
fn range(part: CountedSlices) -> Line {
    let (from, to) = part.bounds();
    let mut line = titled("counted");
    line.plain("from ")
        .push(Paint::Bold, seconds(from))
        .plain(" to ")
        .push(Paint::Bold, seconds(to))
        .plain(format!(", {}", counted(part.slices as u64, "slice of time", "slices of time")));
    line
}

/// A moment, to the millisecond.
fn seconds(moment: Nanos) -> String {
    format!("{:.3} s", moment.0 as f64 / 1e9)
}

/// The time during which allocations of at least one process were recorded.
fn recorded(recording: &Recording) -> Nanos {
    let processes = &recording.allocations.processes;
    let begin = processes.iter().map(|process| process.begin.0).min().unwrap_or(0);
    let begin = recording.allocations.part.map_or(begin, |part| part.begin.0.max(begin));
    let end = processes.iter().map(|process| process.end.0).max().unwrap_or(0);
    Nanos(end.saturating_sub(begin))
}

/// The type that the allocations are of.
fn of_type(name: &str, table: &AllocationTable) -> Line {
    let mut line = titled("type");
    line.push(Paint::Bold, sanitize(name).into_owned());
    if table.key == AllocationKey::Type && table.rows.len() > 1 {
        line.plain(format!(", {} types", table.rows.len()));
    }
    line
}

/// The peak.
fn peak(text: &AllocationsText, recording: &Recording, table: &AllocationTable) -> Line {
    let total = &table.total;
    let mut line = titled("peak");
    line.push(Paint::Bold, bytes_text(total.peak_bytes));
    match &recording.allocations.processes[..] {
        _ if total.peak_bytes == 0 => {}
        _ if text.of_type.is_some() => {
            line.plain(" when the process had the most bytes of all types");
        }
        [process] => {
            // Recordings without a start are relative to the first allocation.
            let start = if recording.info.start.0 > 0 { recording.info.start } else { process.begin };
            let start = table.part.map_or(start, |part| part.start);
            line.plain(format!(" after {}", duration_text(process.peak_at.0.saturating_sub(start.0))));
        }
        _ => {
            line.plain(" (sum of the processes' peaks)");
        }
    }
    line
}

/// What is alive at the end.
fn at_end(table: &AllocationTable) -> Line {
    let total = &table.total;
    let mut line = titled("at end");
    match total.live_count() {
        0 => line.plain("nothing alive"),
        blocks => line.push(Paint::Bold, bytes_text(total.live_bytes())).plain(format!(
            " in {} {} alive",
            count_text(blocks),
            if blocks == 1 { "block" } else { "blocks" }
        )),
    };
    if total.kept_bytes > 0 {
        line.plain(format!(", {} of it held", bytes_text(total.kept_bytes)));
    }
    line
}

/// A line that begins with its title.
fn titled(title: &str) -> Line {
    let mut line = Line::new();
    line.push(Paint::Grey, format!("{title:<10}"));
    line
}

/// The value of a metric that the lines above do not have.
fn of_metric(metric: Metric, table: &AllocationTable) -> Option<Line> {
    unusual(metric)?;
    let mut line = titled("metric");
    let (value, blocks) = (metric.of(&table.total), metric.blocks(&table.total));
    line.plain(format!("{metric}: ")).push(Paint::Bold, metric.unit().text(value));
    if metric.unit() == Unit::Bytes {
        line.plain(format!(" in {} {}", count_text(blocks), if blocks == 1 { "block" } else { "blocks" }));
    }
    Some(line)
}

/// Which part of the allocations is temporary, and which has a type.
fn shares(text: &AllocationsText, table: &AllocationTable) -> Line {
    let total = &table.total;
    let mut line = titled("shares");
    line.push(Paint::Bold, percent_text(total.temporary_count, total.count));
    line.plain(" temporary (freed before the next one)");
    if text.of_type.is_none() {
        line.plain("; ").push(Paint::Bold, percent_text(table.typed, total.count)).plain(" with a type");
    }
    line
}

/// A type or line, with its value.
struct Entry {
    value: u64,
    name: Name,
    link: Option<String>,
}

enum Name {
    Type(String),
    /// A long and a short form.
    Line(String, String),
    Function(String),
}

impl Name {
    fn width(&self) -> usize {
        match self {
            Name::Type(name) | Name::Line(name, _) | Name::Function(name) => width(name),
        }
    }

    fn within(&self, room: usize) -> String {
        match self {
            Name::Type(name) => shorten_type(name, room),
            Name::Line(long, _) if width(long) <= room => long.clone(),
            Name::Line(_, short) => cut_right(short, room).into_owned(),
            Name::Function(name) => short_function(name, room),
        }
    }
}

fn types(table: &AllocationTable) -> Vec<Entry> {
    let entry = |row: &AllocationRow| Entry {
        value: table.metric.of(&row.counts),
        name: Name::Type(sanitize(&row.name).into_owned()),
        link: None,
    };
    table.rows.iter().map(entry).collect()
}

/// Lines, the largest first, as the table has them.
fn lines_of(text: &AllocationsText, recording: &Recording, table: &AllocationTable) -> Vec<Entry> {
    let entry = |row: &AllocationRow| {
        let site = &row.site;
        let name = match site.line > 0 {
            true => {
                let short = recording.symbols.short_path(&site.file);
                let long = location_text(short, &site.file, site.line, 32);
                Name::Line(long, shortest_location(&site.file, site.line))
            }
            false => Name::Function(sanitize(&site.func).into_owned()),
        };
        Entry { value: text.metric.of(&row.counts), name, link: text.link(&site.file, site.line) }
    };
    table.rows.iter().take(SHOWN).map(entry).collect()
}

/// The largest entries in one line. Longer names are cut so that all fit.
fn largest(text: &AllocationsText, title: &str, entries: &[Entry], whole: u64) -> Option<Line> {
    let noticeable = |entry: &&Entry| entry.value > 0 && percent(entry.value, whole) / 100.0 >= NOTICEABLE;
    let shown: Vec<(String, &Entry)> = entries
        .iter()
        .filter(noticeable)
        .take(SHOWN)
        .map(|entry| (percent_text(entry.value, whole), entry))
        .collect();
    if shown.is_empty() {
        return None;
    }
    let mut line = titled(title);
    let around: usize =
        shown.iter().map(|(share, _)| width(share) + 1).sum::<usize>() + 2 * (shown.len() - 1);
    let room = text.cols.saturating_sub(line.width() + around);
    let longest = longest(shown.iter().map(|(_, entry)| entry.name.width()).collect(), room);
    for (index, (share, entry)) in shown.into_iter().enumerate() {
        line.plain(if index == 0 { "" } else { ", " });
        line.push(if index == 0 { Paint::Bold } else { Paint::Normal }, share);
        line.plain(" ").linked(entry.name.within(longest), entry.link.clone());
    }
    Some(line)
}

/// The largest width such that texts of these widths, cut to it, fit side by side.
fn longest(mut widths: Vec<usize>, mut room: usize) -> usize {
    widths.sort_unstable();
    let mut left = widths.len();
    for width in widths {
        if width * left > room {
            return room / left;
        }
        (room, left) = (room - width, left - 1);
    }
    usize::MAX
}

/// The noun of a metric for headings, if it is not the usual one.
pub(super) fn unusual(metric: Metric) -> Option<&'static str> {
    (metric != Metric::Bytes).then(|| metric.noun())
}

/// How allocations were sampled, in one sentence; `None` if every one was recorded.
pub(super) fn sampling(recording: &Recording) -> Option<String> {
    let of = |sampling: &AllocationSampling| match sampling {
        AllocationSampling::Every => None,
        AllocationSampling::Rate(rate) => Some(format!(
            "each allocation was recorded with a probability of {}: the numbers are those of recorded ones",
            (rate * 1e6).round() / 1e6
        )),
        AllocationSampling::ScaledRate(rate) => Some(format!(
            "each allocation was recorded with a probability of {}: the numbers are estimates, with their standard errors after ±. \
             Rare large blocks may be missing; `record --allocs=512KiB` finds them",
            (rate * 1e6).round() / 1e6
        )),
        AllocationSampling::Stacks(share) => Some(format!(
            "stacks of {:.2} % of the allocations were taken: sums are exact, and what each site has of them is an estimate, with its \
             standard error after ±. Rare blocks may have no stack",
            share * 100.0
        )),
        AllocationSampling::Bytes(n) => Some(format!(
            "sampled once in {} on average: the numbers are estimates, with their standard errors after ±",
            bytes_text(*n)
        )),
    };
    recording.allocations.processes.iter().find_map(|process| of(&process.sampling))
}

#[cfg(test)]
mod tests {
    use super::longest;

    #[test]
    fn only_long_names_are_cut() {
        assert_eq!(longest(vec![5, 40, 9], 34), 20);
        assert_eq!(longest(vec![30, 40, 9], 34), 12, "9, 12 and 12");
        assert_eq!(longest(vec![3, 4], 7), usize::MAX);
        assert_eq!(longest(vec![3, 4], 0), 0);
    }
}
