//! The text of the listing: for each file its hot lines with context; other lines are folded.

use super::{Annotate, Listed, SourceFile};
use crate::Metric;
use crate::metric::Unit;
use crate::queries::line_times::{Counted, Counts, SeenFile};
use crate::text::columns::{cut_left, cut_right, width, wrap};
use crate::text::numbers::{bytes_text, counted, grouped, millis_text, of_all, percent, percent_text};
use crate::text::short::short_function;
use crate::text::style::{Line, Paint};
use stackglass_profile::{Recording, sanitize};
use std::io::{self, Write};

/// Lines and files below this share of the total are not shown.
const NOTICEABLE: f64 = 0.005;
/// Number of files shown by default.
const SHOWN: usize = 5;
/// Gaps of fewer lines than this are shown rather than folded.
const FOLDED: i64 = 2;

/// Widths of the columns.
struct Columns {
    total: usize,
    own: usize,
    hits: usize,
    /// `None` if allocations were not recorded.
    bytes: Option<usize>,
    line: usize,
}

pub(super) fn write(
    annotate: &Annotate,
    recording: &Recording,
    counts: &Counts,
    source: &mut dyn FnMut(&str) -> SourceFile,
    out: &mut dyn Write,
) -> io::Result<Listed> {
    let whole = counts.measure(counts.all);
    let matters = |counted: &Counted| {
        let least = if annotate.everything { 0.0 } else { whole as f64 * NOTICEABLE };
        counts.measure(counted.own) as f64 >= least || allocates(counts, counted)
    };
    let is_meant = |file: &&SeenFile| match &annotate.pattern {
        Some(pattern) => pattern.matches(&file.file, recording.symbols.short_path(&file.file)),
        None => true,
    };
    let mut listed =
        Listed { any: counts.files.iter().any(|file| has_anything(counts, &file.counted)), files: 0 };
    if !listed.any {
        return Ok(listed);
    }
    let mut absent: Vec<&SeenFile> = Vec::new();
    let mut left: Vec<&SeenFile> = Vec::new();
    for file in counts.files.iter().filter(is_meant) {
        let asked = annotate.pattern.is_some() || annotate.everything;
        if !asked && (listed.files >= SHOWN || !matters(&file.counted)) {
            left.push(file);
            continue;
        }
        let now = source(&file.file);
        if now.text.is_none() && annotate.pattern.is_none() {
            absent.push(file);
            continue;
        }
        if listed.files > 0 {
            out.write_all(b"\n")?;
        }
        listed.files += 1;
        let lines = now.text.as_ref().map_or(0, |text| text.lines().count() as i64);
        Listing { annotate, recording, counts, file, now: &now, lines }.write(out)?;
    }
    let closing = closing(annotate, recording, counts, &absent, &left);
    if listed.files > 0 && !closing.is_empty() {
        out.write_all(b"\n")?;
    }
    for line in closing.iter().flat_map(|line| wrap(line, annotate.cols)) {
        let mut painted = Line::new();
        painted.push(Paint::Grey, line).write(annotate.style, out)?;
    }
    Ok(listed)
}

/// Whether a line or file has time of its own, or allocated.
fn has_anything(counts: &Counts, counted: &Counted) -> bool {
    counts.measure(counted.own) > 0 || counted.bytes > 0
}

/// Whether a line or file allocated a noticeable share of all bytes.
fn allocates(counts: &Counts, counted: &Counted) -> bool {
    counted.bytes > 0 && counted.bytes as f64 >= counts.bytes.unwrap_or(0) as f64 * NOTICEABLE
}

/// The lines at the end: what was not shown, and why.
fn closing(
    annotate: &Annotate,
    recording: &Recording,
    counts: &Counts,
    absent: &[&SeenFile],
    left: &[&SeenFile],
) -> Vec<String> {
    let whole = counts.measure(counts.all);
    let own = |files: &[&SeenFile]| {
        percent_text(files.iter().map(|file| counts.measure(file.counted.own)).sum(), whole)
    };
    let bytes = |files: &[&SeenFile]| match counts.bytes {
        Some(all) => {
            let bytes = files.iter().fold(0u64, |sum, file| sum.saturating_add(file.counted.bytes));
            format!(" and {} of the bytes", percent_text(bytes, all))
        }
        None => String::new(),
    };
    let name = |file: &SeenFile| match recording.symbols.short_path(&file.file) {
        Some(short) => sanitize(&format!("{}/{}", short.prefix, short.rest)).into_owned(),
        None => sanitize(&file.file).into_owned(),
    };
    let of_whole = of_all(annotate.noun(recording));
    let is_time = annotate.metric == Metric::Time;
    let mut lines = Vec::new();
    if !absent.is_empty() {
        let names: Vec<String> = absent.iter().take(4).map(|file| name(file)).collect();
        let more = if absent.len() > names.len() { ", …" } else { "" };
        let library = match absent.iter().any(|file| file.file.starts_with("/rustc/")) {
            true => "; `rustup component add rust-src` installs the standard library's",
            false => "",
        };
        lines.push(format!(
            "{} not found here, with {} {of_whole}{}: {}{more}{library}",
            counted(absent.len() as u64, "source file", "source files"),
            own(absent),
            bytes(absent),
            names.join(", "),
        ));
    }
    if !left.is_empty() {
        lines.push(format!(
            "{} with {} {of_whole}{} not shown: --file NAME or --all shows them",
            counted(left.len() as u64, "more file", "more files"),
            own(left),
            bytes(left)
        ));
    }
    if counts.without_lines.hits > 0 && annotate.pattern.is_none() {
        let share = percent_text(counts.measure(counts.without_lines), whole);
        lines.push(format!(
            "{share} {of_whole} {} in code without source lines",
            if is_time { "is" } else { "are" }
        ));
    }
    lines
}

/// One file.
struct Listing<'l> {
    annotate: &'l Annotate,
    recording: &'l Recording,
    counts: &'l Counts,
    file: &'l SeenFile,
    now: &'l SourceFile,
    /// Its current number of lines.
    lines: i64,
}

impl Listing<'_> {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        self.heading(out)?;
        let text: Vec<&str> = self.now.text.as_deref().map_or(Vec::new(), |text| text.lines().collect());
        let matters =
            |counted: &Counted| self.share(counted.total) >= NOTICEABLE || allocates(self.counts, counted);
        let seen = self.file.lines.iter();
        let marked: Vec<i64> = match seen.clone().any(|(_, line)| matters(&line.counted)) {
            // A requested file is never shown empty.
            true if !self.annotate.everything => {
                seen.filter(|(_, line)| matters(&line.counted)).map(|(line, _)| *line).collect()
            }
            _ => seen.map(|(line, _)| *line).collect(),
        };
        let columns = self.columns(&marked);
        self.header(&columns).cut(self.annotate.cols).write(self.annotate.style, out)?;
        let mut next = 1;
        for (first, end) in regions(&marked, self.annotate.context as i64, self.lines) {
            self.fold(next, first, &columns, out)?;
            let indent = (first..=end).filter_map(|line| indent_of(text.get(line as usize - 1)?)).min();
            for line in first..=end {
                self.row(line, text.get(line as usize - 1).copied(), indent.unwrap_or(0), &columns, out)?;
            }
            next = end + 1;
        }
        self.fold(next, self.lines + 1, &columns, out)
    }

    fn heading(&self, out: &mut dyn Write) -> io::Result<()> {
        let (cols, style) = (self.annotate.cols, self.annotate.style);
        let whole = self.counts.measure(self.counts.all);
        let share = |weight| percent_text(self.counts.measure(weight), whole);
        let Counted { total, own, bytes } = self.file.counted;
        let time = match self.counts.timed {
            true => self.annotate.metric.unit().text(total.time),
            false => counted(total.hits, "sample", "samples"),
        };
        let mut numbers = format!("  {} ({time}), {} its own", share(total), share(own));
        if bytes > 0 {
            numbers += &format!(", {} allocated", bytes_text(bytes));
        }
        let name = match self.recording.symbols.short_path(&self.file.file) {
            Some(short) => format!("{}/{}", short.prefix, short.rest.trim_start_matches('/')),
            None => self.file.file.to_string(),
        };
        let room = cols.saturating_sub(width(&numbers));
        let mut line = Line::new();
        let name = cut_left(&sanitize(&name), room).into_owned();
        line.push_linked(Paint::BoldCyan, name, self.link(1)).plain(numbers);
        line.cut(cols).write(style, out)?;
        let missing = self.now.text.is_none().then(|| match &self.now.remark {
            Some(why) => why.clone(),
            None => "not found here: functions are shown instead of lines".to_owned(),
        });
        for remark in missing.iter().chain(self.now.remark.as_ref().filter(|_| self.now.text.is_some())) {
            for text in wrap(&sanitize(remark), cols) {
                let mut line = Line::new();
                line.push(Paint::Yellow, text).write(style, out)?;
            }
        }
        Ok(())
    }

    fn columns(&self, marked: &[i64]) -> Columns {
        let lines = marked.iter().filter_map(|line| self.file.lines.get(line)).map(|line| &line.counted);
        let number = |weight| if self.counts.timed { self.amount(weight) } else { String::new() };
        let widest =
            |text: &dyn Fn(&Counted) -> String| lines.clone().map(|c| width(&text(c))).max().unwrap_or(0);
        Columns {
            total: widest(&|counted| number(counted.total.time)).max(4),
            own: widest(&|counted| self.own_text(counted)).max(6),
            hits: widest(&|counted| grouped(counted.total.hits)).max(7),
            bytes: self.counts.bytes.map(|_| widest(&|counted| bytes_text(counted.bytes)).max(5)),
            line: marked
                .last()
                .map_or(1, |line| width(&(line + self.annotate.context as i64).to_string()))
                .max(4),
        }
    }

    fn header(&self, columns: &Columns) -> Line {
        let mut text = "    %".to_owned();
        if self.counts.timed {
            let (total, own, hits) = match self.annotate.metric.unit() {
                Unit::Nanoseconds => ("ms", "own ms", "samples"),
                Unit::Bytes => ("bytes", "own", "blocks"),
                Unit::Allocations => ("count", "own", "blocks"),
            };
            text +=
                &format!("  {total:>0$}  {own:>1$}  {hits:>2$}", columns.total, columns.own, columns.hits);
        } else {
            text += &format!("  {:>1$}  {2:>3$}", "samples", columns.hits, "own", columns.own);
        }
        if let Some(width) = columns.bytes {
            text += &format!("  {:>width$}", "bytes");
        }
        let mut line = Line::new();
        line.push(Paint::Grey, format!("{text}  {:>1$}  source", "line", columns.line));
        line
    }

    /// The numbers of a line, blank if it was not seen.
    fn numbers(&self, line: i64, columns: &Columns) -> (Line, bool) {
        let mut numbers = Line::new();
        let seen = self.file.lines.get(&line).map(|line| line.counted).unwrap_or_default();
        let Counted { total, own, bytes } = seen;
        let is_seen = total.hits > 0 || total.time > 0;
        let own_matters = self.share(own) >= NOTICEABLE;
        let weight = if own_matters { Paint::Bold } else { Paint::Normal };
        let shown = |text: String| if is_seen { text } else { String::new() };
        let share = shown(format!("{:.1}", self.share(total) * 100.0));
        numbers.push(weight, format!("{share:>5}"));
        let own = shown(self.own_text(&seen));
        let hits = shown(grouped(total.hits));
        if self.counts.timed {
            numbers.plain(format!("  {:>1$}", shown(self.amount(total.time)), columns.total));
            numbers.push(weight, format!("  {own:>0$}", columns.own));
            numbers.push(Paint::Grey, format!("  {hits:>0$}", columns.hits));
        } else {
            numbers.plain(format!("  {hits:>0$}", columns.hits));
            numbers.push(weight, format!("  {own:>0$}", columns.own));
        }
        if let Some(width) = columns.bytes {
            let text = if bytes > 0 { bytes_text(bytes) } else { String::new() };
            let weight = if allocates(self.counts, &seen) { Paint::Bold } else { Paint::Normal };
            numbers.push(weight, format!("  {text:>width$}"));
        }
        (numbers, is_seen || bytes > 0)
    }

    /// An amount of the metric in a column: milliseconds without a unit, bytes with one.
    fn amount(&self, amount: u64) -> String {
        match self.annotate.metric.unit() {
            Unit::Nanoseconds => millis_text(amount),
            unit => unit.text(amount),
        }
    }

    fn own_text(&self, counted: &Counted) -> String {
        match (self.counts.measure(counted.own), self.counts.timed) {
            (0, _) => String::new(),
            (amount, true) => self.amount(amount),
            (hits, false) => grouped(hits),
        }
    }

    fn row(
        &self,
        number: i64,
        text: Option<&str>,
        indent: usize,
        columns: &Columns,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let (mut line, seen) = self.numbers(number, columns);
        let paint = if seen { Paint::Normal } else { Paint::Grey };
        line.plain("  ").push_linked(Paint::Grey, format!("{number:>0$}", columns.line), self.link(number));
        line.plain("  ");
        let room = self.annotate.cols.saturating_sub(line.width());
        match text {
            Some(text) => {
                let text = spaced(text);
                let text = text.get(indent..).unwrap_or("").trim_end();
                line.push(paint, cut_right(&sanitize(text), room).into_owned());
            }
            None => {
                let func = self.file.lines.get(&number).map_or("", |line| &line.func);
                line.push(Paint::Grey, short_function(&format!("[{}]", sanitize(func)), room));
            }
        }
        line.cut(self.annotate.cols).write(self.annotate.style, out)
    }

    /// The line that stands for folded lines.
    fn fold(&self, from: i64, to: i64, columns: &Columns, out: &mut dyn Write) -> io::Result<()> {
        let lines = to.min(self.lines + 1) - from;
        if lines <= 0 || self.now.text.is_none() {
            return Ok(());
        }
        let (line, _) = self.numbers(-1, columns);
        let mut folded = Line::new();
        let before = line.width() + 2 + columns.line - 1;
        folded.push(Paint::Grey, format!("{}⋮", " ".repeat(before)));
        folded.push(Paint::Grey, format!("  {}", counted(lines as u64, "line", "lines")));
        folded.cut(self.annotate.cols).write(self.annotate.style, out)
    }

    fn share(&self, weight: crate::queries::weight::Weight) -> f64 {
        percent(self.counts.measure(weight), self.counts.measure(self.counts.all)) / 100.0
    }

    fn link(&self, line: i64) -> Option<String> {
        let path = self.now.found.as_deref().unwrap_or(&self.file.file);
        self.annotate.links.as_ref()?.target(path, line)
    }
}

/// Ranges of marked lines with their context. Overlapping and adjacent ranges are joined. Lines beyond the end of the
/// file stand alone.
fn regions(marked: &[i64], context: i64, last: i64) -> Vec<(i64, i64)> {
    let mut regions: Vec<(i64, i64)> = Vec::new();
    for line in marked {
        let (first, end) = match *line <= last {
            true => ((line - context).max(1), (line + context).min(last)),
            false => (*line, *line),
        };
        match regions.last_mut() {
            Some(before) if first <= before.1 + FOLDED && *line <= last => before.1 = end,
            _ => regions.push((first, end)),
        }
    }
    match regions.first_mut() {
        Some(first) if first.0 <= FOLDED && last > 0 => first.0 = first.0.min(1),
        _ => {}
    }
    match regions.last_mut() {
        Some(end) if end.1 < last && end.1 + FOLDED > last => end.1 = last,
        _ => {}
    }
    regions
}

/// The text with tabs as four columns.
fn spaced(text: &str) -> String {
    text.replace('\t', "    ")
}

/// Number of leading spaces; `None` for an empty line.
fn indent_of(text: &&str) -> Option<usize> {
    let text = spaced(text);
    let rest = text.trim_start_matches(' ');
    (!rest.trim().is_empty()).then(|| text.len() - rest.len())
}

#[cfg(test)]
mod tests {
    use super::regions;

    #[test]
    fn regions_join_and_end_with_the_file() {
        assert_eq!(regions(&[10, 14, 40], 2, 100), [(8, 16), (38, 42)]);
        assert_eq!(regions(&[10, 15], 2, 16), [(8, 16)], "one line between is not folded");
        assert_eq!(regions(&[4], 2, 7), [(1, 7)], "nor is one at an end");
        assert_eq!(regions(&[3, 9, 12], 2, 9), [(1, 9), (12, 12)], "line 12 is beyond the end");
        assert_eq!(regions(&[5, 6, 90], 2, 0), [(5, 5), (6, 6), (90, 90)], "no text");
    }
}
