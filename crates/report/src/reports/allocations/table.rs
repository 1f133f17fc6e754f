//! The rows of allocations.

use super::AllocationsText;
use super::digest::unusual;
use crate::allocation_queries::AllocationRow;
use crate::queries::allocations::are_estimates;
use crate::text::columns::{cut_right, pad_left};
use crate::text::numbers::{bytes_text, count_text, grouped, percent};
use crate::text::short::{location_text, short_function};
use crate::text::style::{Line, Paint};
use crate::text::type_name::shorten_type;
use crate::{AllocationKey, AllocationTable, Metric};
use stackglass_profile::{AllocationCounts, Recording, sanitize};

/// Number of rows shown by default.
const SHOWN: usize = 10;
/// Least number of columns for a function beside its line.
const FUNCTION: usize = 16;

/// A column of numbers.
#[derive(Clone, Copy)]
struct Column {
    title: &'static str,
    width: usize,
    text: fn(&AllocationCounts) -> String,
    /// The metric that it shows.
    metric: Option<Metric>,
}

const fn column(
    title: &'static str,
    width: usize,
    metric: Option<Metric>,
    text: fn(&AllocationCounts) -> String,
) -> Column {
    Column { title, width, text, metric }
}

/// The columns for a metric: always the usual ones, and for other metrics one of its own in the place of the average.
fn columns(metric: Metric) -> [Column; 5] {
    let last = match metric {
        Metric::LiveCount => column("blocks", 6, Some(metric), |counts| count_text(counts.live_count())),
        Metric::LeakedBytes => column("leaked", 7, Some(metric), |counts| bytes_text(counts.leaked_bytes())),
        Metric::Temporary => column("temp.", 6, Some(metric), |counts| count_text(counts.temporary_count)),
        _ => column("average", 7, None, |counts| bytes_text(counts.bytes / counts.count.max(1))),
    };
    [
        column("count", 6, Some(Metric::Count), |counts| count_text(counts.count)),
        column("bytes", 7, Some(Metric::Bytes), |counts| bytes_text(counts.bytes)),
        column("live", 7, Some(Metric::LiveBytes), |counts| bytes_text(counts.live_bytes())),
        column("peak", 7, Some(Metric::PeakBytes), |counts| bytes_text(counts.peak_bytes)),
        last,
    ]
}

/// The table in at most `most` lines, which is enough for a row; nothing without rows.
pub(super) fn lines(
    text: &AllocationsText,
    recording: &Recording,
    table: &AllocationTable,
    most: usize,
) -> Vec<Line> {
    if table.rows.is_empty() && table.mappings.count == 0 {
        return Vec::new();
    }
    let columns = columns(text.metric);
    let is_estimated = are_estimates(&recording.allocations);
    let mut header = Line::new();
    header.push(Paint::Grey, "   %");
    for column in &columns {
        let paint = if column.metric == Some(text.metric) { Paint::Bold } else { Paint::Grey };
        header.plain(" ").push(paint, pad_left(column.title, column.width));
    }
    if is_estimated {
        header.push(Paint::Grey, "     ±");
    }
    header.push(Paint::Grey, format!(" sites  {}", table.key.word()));
    if let Some(noun) = unusual(text.metric) {
        header.push(Paint::Grey, format!(", by {noun}"));
    }
    let mut lines = vec![header];
    let whole = text.metric.of(&table.total);
    let seen = table.rows.iter().take_while(|row| text.metric.of(&row.counts) > 0).count();
    let shown = match text.everything {
        true => table.rows.len(),
        // One row takes no more space than the line that says it is hidden.
        false if seen == table.rows.len() && seen == SHOWN + 1 => seen,
        false => seen.min(SHOWN),
    };
    // The header and [mmap]; and what is left out is counted in a line.
    let around = 1 + usize::from(table.mappings.count > 0);
    let shown = match shown + around + usize::from(shown < table.rows.len()) {
        lines if lines > most => shown.min(most.saturating_sub(around + 1)),
        _ => shown,
    };
    for row in &table.rows[..shown] {
        let share = percent(text.metric.of(&row.counts), whole);
        let share = if share >= 99.95 { "100".to_owned() } else { format!("{share:.1}") };
        let mut line = numbers(&share, &columns, &row.counts);
        if is_estimated {
            let error = row.error * 100.0;
            line.plain(format!(
                " {:>5}",
                if error < 99.5 { format!("±{error:.0}%") } else { "±100%".into() }
            ));
        }
        line.push(Paint::Grey, format!(" {:>5}", count_text(row.sites))).plain("  ");
        name(text, recording, table.key, row, &mut line);
        lines.push(line);
    }
    if table.mappings.count > 0 {
        let mut line = numbers("", &columns, &table.mappings);
        line.plain(if is_estimated { "            " } else { "      " });
        line.push(Paint::Grey, "  [mmap] (in no total)");
        lines.push(line);
    }
    let hidden = (table.rows.len() - shown) as u64;
    if hidden > 0 {
        let (one, many) = match table.key {
            AllocationKey::Type => ("type", "types"),
            AllocationKey::Site => ("site", "sites"),
            AllocationKey::Line => ("line", "lines"),
            AllocationKey::Function => ("function", "functions"),
            AllocationKey::Crate => ("crate", "crates"),
            AllocationKey::Thread => ("thread", "threads"),
            AllocationKey::Process => ("process", "processes"),
            AllocationKey::Size => ("range of sizes", "ranges of sizes"),
        };
        let share = percent(
            table.rows[shown..].iter().map(|row| text.metric.of(&row.counts)).fold(0, u64::saturating_add),
            whole,
        );
        let what = if hidden == 1 { one } else { many };
        let rest = format!("{} more {what}, {share:.1} % together: --all shows them", grouped(hidden));
        lines.push(Line::from_text(Paint::Grey, rest));
    }
    lines
}

fn numbers(share: &str, columns: &[Column], counts: &AllocationCounts) -> Line {
    let mut line = Line::new();
    line.push(Paint::Bold, format!("{share:>4}"));
    for column in columns {
        line.plain(" ").plain(pad_left(&(column.text)(counts), column.width));
    }
    line
}

/// The name of a row, in the columns that are left.
fn name(
    text: &AllocationsText,
    recording: &Recording,
    key: AllocationKey,
    row: &AllocationRow,
    line: &mut Line,
) {
    let room = text.cols.saturating_sub(line.width());
    let plain = sanitize(&row.name);
    match key {
        AllocationKey::Type => line.plain(shorten_type(&plain, room)),
        AllocationKey::Site | AllocationKey::Line if row.site.line > 0 => {
            let site = &row.site;
            let short = recording.symbols.short_path(&site.file);
            let place = location_text(short, &site.file, site.line, room);
            line.linked(place, text.link(&site.file, site.line));
            let left = text.cols.saturating_sub(line.width() + 2);
            match left >= FUNCTION {
                true => line.plain("  ").push(Paint::Grey, short_function(&sanitize(&site.func), left)),
                false => line,
            }
        }
        AllocationKey::Site | AllocationKey::Line | AllocationKey::Function => {
            line.plain(short_function(&plain, room))
        }
        AllocationKey::Crate | AllocationKey::Thread | AllocationKey::Process => {
            line.plain(cut_right(&plain, room))
        }
        AllocationKey::Size => line.plain(format!("{plain} B")),
    };
}
