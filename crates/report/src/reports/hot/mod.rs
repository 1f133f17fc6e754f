//! The hottest functions, lines or other parts of a program as a flat table, readable at 80 columns.

mod json;

pub use json::write_json;

use super::summary::interpreters;
use crate::call_tree::StateFilter;
use crate::queries::hot::{HotKey, HotRow, HotTable};
use crate::queries::waits::Wait;
use crate::text::columns::{cut_right, width};
use crate::text::numbers::{counted, duration_text, grouped, millis_text, percent, percent_text};
use crate::text::short::{last_name, location_text, short_function, shortest_location};
use crate::text::style::{Line, Paint};
use crate::{Links, Source, Style};
use stackglass_profile::sanitize;
use std::io::{self, Write};

/// Number of rows shown by default: with the other lines they fit a terminal of 24 lines.
const SHOWN: usize = 20;

/// Most columns between the left edge and a place, so that wide terminals do not separate them.
const WIDEST: usize = 140;

/// How a [`HotTable`] is written.
#[derive(Clone, Debug)]
pub struct HotText {
    cols: usize,
    style: Style,
    links: Option<Links>,
    everything: bool,
}

impl HotText {
    /// A width of at least 60 columns, with or without colours and links.
    pub fn new(cols: usize, style: Style, links: Option<Links>) -> HotText {
        HotText { cols: cols.clamp(60, WIDEST), style, links, everything: false }
    }

    /// Shows all rows, not only the first 20.
    pub fn everything(self, everything: bool) -> HotText {
        HotText { everything, ..self }
    }

    /// Writes the totals under this name, and the table.
    ///
    /// # Errors
    /// When writing fails.
    pub fn write(
        &self,
        name: &str,
        table: &HotTable,
        source: Source<'_>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let hint = match source {
            Source::Recording(recording) => interpreters::hint_lines(recording, self.cols),
            _ => Vec::new(),
        };
        for line in &hint {
            line.write(self.style, out)?;
        }
        let samples = counted(table.samples, "sample", "samples");
        let total = duration_text(table.total);
        let what = match table.states {
            _ if !table.timed => samples,
            _ if matches!(source, Source::Recording(recording) if recording.is_walltime()) => {
                format!("{total} of wall time of tasks in {samples}")
            }
            StateFilter::Awake => format!("{total} of CPU time in {samples}"),
            StateFilter::Asleep => format!("{total} asleep"),
            StateFilter::NotOnCpu => format!("{total} asleep or ready"),
            StateFilter::All => format!("{total} on CPU, ready and asleep"),
        };
        let what = format!("{what}, by {}", table.key.word());
        let name =
            cut_right(&sanitize(name), self.cols.saturating_sub(width(&what) + 2).max(16)).into_owned();
        let mut line = Line::new();
        line.push(Paint::Bold, name).plain("  ").plain(what);
        line.cut(self.cols).write(self.style, out)?;

        let columns = Columns::from_table(table);
        let mut line = Line::new();
        line.push(Paint::Grey, columns.header(table));
        line.cut(self.cols).write(self.style, out)?;
        // Rows that only contain others say little in a flat table.
        let owning = table.rows.iter().take_while(|row| row.own > 0).count();
        let shown =
            if self.everything { table.rows.len() } else { (SHOWN - hint.len().min(SHOWN / 2)).min(owning) };
        for row in &table.rows[..shown] {
            self.row(row, table, &columns, source, out)?;
        }
        let rest = &table.rows[shown..];
        if !rest.is_empty() {
            let own: u64 = rest.iter().map(|row| row.own).sum();
            let many = match table.key {
                HotKey::Process => "processes".to_owned(),
                key => format!("{}s", key.word()),
            };
            let rows = counted(rest.len() as u64, table.key.word(), &many);
            let mut line = Line::new();
            let share = percent_text(own, table.total);
            let what = match own {
                0 => format!("{} without own time", more_rows(&rows)),
                _ => more(&rows, &share),
            };
            line.push(Paint::Grey, format!("{what}: --all shows them"));
            line.cut(self.cols).write(self.style, out)?;
        }
        Ok(())
    }

    fn row(
        &self,
        row: &HotRow,
        table: &HotTable,
        columns: &Columns,
        source: Source<'_>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let mut line = Line::new();
        line.push(Paint::Bold, format!("{:>5.1}", percent(row.own, table.total)));
        line.plain(columns.numbers(row, table)).plain("  ");
        let room = self.cols.saturating_sub(line.width());
        let (name, place) = match (&row.place, table.key) {
            (Some(at), HotKey::Line) => {
                let location = location_text(source.short_path(&at.file), &at.file, at.line, room / 2);
                (location, short_function(&sanitize(&at.function), room / 2))
            }
            (Some(at), _) => {
                let shortest = width(&shortest_location(&at.file, at.line)).min(room / 2);
                let note = row.waits_in.as_deref().map_or(0, |future| width(&Wait::words(future)) + 2);
                let left = room.saturating_sub(width(&row.name) + note + 2).max(shortest);
                (row.name.clone(), location_text(source.short_path(&at.file), &at.file, at.line, left))
            }
            (None, _) if row.alike > 1 => (format!("{} ×{}", row.name, grouped(row.alike)), String::new()),
            (None, _) if row.module.is_empty() || row.name.contains(&row.module) => {
                (row.name.clone(), String::new())
            }
            (None, _) => (row.name.clone(), cut_right(&sanitize(&row.module), room / 3).into_owned()),
        };
        let at = row.place.as_ref();
        let link = at.and_then(|at| self.links.as_ref()?.target(&at.file, at.line));
        if place.is_empty() {
            line.plain(short_function(&name, room));
        } else {
            let for_name = room.saturating_sub(width(&place) + 2);
            let (name, note) = match row.waits_in.as_deref() {
                Some(future) => waiting(&name, &sanitize(future), for_name),
                None => (short_function(&name, for_name), String::new()),
            };
            let space = for_name.saturating_sub(width(&name) + width(&note));
            line.plain(name).push(Paint::Cyan, note).plain(" ".repeat(space + 2));
            line.push_linked(Paint::Grey, place, link);
        }
        line.cut(self.cols).write(self.style, out)
    }
}

/// A function that waits and what it waits in, in as many words as fit: `app::price  waits in Acquire`, `price  in Acquire`.
fn waiting(name: &str, future: &str, room: usize) -> (String, String) {
    let (long, short) = (Wait::words(future), Wait::short(future));
    let within = if future.starts_with('[') { short.to_owned() } else { format!("in {short}") };
    if long.is_empty() {
        return (short_function(name, room), String::new());
    }
    let last = last_name(name);
    let notes = [long, within, short.to_owned()].map(|note| format!("  {note}"));
    let texts = [(name, &notes[0]), (last, &notes[0]), (last, &notes[1])];
    match texts.into_iter().find(|(name, note)| width(name) + width(note) <= room) {
        Some((name, note)) => (name.to_owned(), note.clone()),
        None => {
            let note = cut_right(&notes[2], room / 2).into_owned();
            (short_function(last, room - width(&note)), note)
        }
    }
}

/// `83 more functions, 4.2 % together`, `1 more function, 0.1 %`.
fn more(rows: &str, share: &str) -> String {
    let together = if rows.starts_with("1 ") { "" } else { " together" };
    format!("{}, {share}{together}", more_rows(rows))
}

/// `83 more functions`.
fn more_rows(rows: &str) -> String {
    let (number, noun) = rows.rsplit_once(' ').unwrap_or(("", rows));
    format!("{number} more {noun}")
}

/// The widths of the columns of numbers; `None` for a column that is not shown.
struct Columns {
    own: usize,
    error: Option<usize>,
    total: Option<usize>,
    samples: Option<usize>,
}

impl Columns {
    fn from_table(table: &HotTable) -> Columns {
        let widest = |text: &dyn Fn(&HotRow) -> String, least: usize| {
            table.rows.iter().map(|row| width(&text(row))).max().unwrap_or(0).max(least)
        };
        let sampled = table.states == StateFilter::Awake || !table.timed;
        // A thread contains nothing but itself.
        let nested = !matches!(table.key, HotKey::Thread | HotKey::Process | HotKey::Command | HotKey::Task);
        Columns {
            own: widest(&|row| amount(row.own, table), if table.timed { 6 } else { 3 }),
            error: sampled.then(|| widest(&|row| error(row, table), 4)),
            total: nested.then(|| widest(&|row| amount(row.total, table), if table.timed { 8 } else { 5 })),
            samples: (sampled && table.timed).then(|| widest(&|row| grouped(row.own_samples), 7)),
        }
    }

    fn header(&self, table: &HotTable) -> String {
        let (own, total) = if table.timed { ("own ms", "total ms") } else { ("own", "total") };
        let own = if self.total.is_none() { own.trim_start_matches("own ") } else { own };
        let error = self.error.map(|width| format!("  {:>width$}", if table.timed { "± ms" } else { "±" }));
        let total = self.total.map(|width| format!("  {total:>width$}"));
        let samples = self.samples.map(|width| format!("  {:>width$}", "samples"));
        let parts = [error, total, samples].into_iter().flatten().collect::<String>();
        format!("    %  {own:>0$}{parts}  {1}", self.own, table.key.word())
    }

    fn numbers(&self, row: &HotRow, table: &HotTable) -> String {
        let own = format!("  {:>1$}", amount(row.own, table), self.own);
        let error = self.error.map(|width| format!("  {:>width$}", error(row, table)));
        let total = self.total.map(|width| format!("  {:>width$}", amount(row.total, table)));
        let samples = self.samples.map(|width| format!("  {:>width$}", grouped(row.own_samples)));
        let parts = [error, total, samples].into_iter().flatten().collect::<String>();
        own + &parts
    }
}

/// Milliseconds, or samples.
fn amount(amount: u64, table: &HotTable) -> String {
    if table.timed { millis_text(amount) } else { grouped(amount) }
}

fn error(row: &HotRow, table: &HotTable) -> String {
    row.error.map_or(String::new(), |error| amount(error.round() as u64, table))
}
