//! The table of a comparison.

mod json;

use crate::Metric;
use crate::queries::comparison::{BEYOND, Comparison, ComparisonKey, Cost, Row, Waited};
use crate::text::numbers::grouped;
use crate::text::short::short_function;
use crate::text::style::{Line, Paint, Style};
use crate::text::type_name::shorten_type;
use stackglass_profile::sanitize;
use std::io::{self, Write};

/// Number of rows with exact changes shown by default.
const CHANGED: usize = 20;

/// Number of rows within the noise shown by default.
const WITHIN: usize = 8;

/// If threads waited for a CPU for at least this percentage of their time, times are unreliable.
const BUSY: f64 = 20.0;

/// Width of a name within a sentence.
const NAME: usize = 24;

/// Length of the line under the heading.
const RULE: usize = 72;

/// The text of a [`Comparison`].
#[derive(Clone, Copy, Debug)]
pub struct ComparisonText<'a> {
    comparison: &'a Comparison,
    /// Width of the terminal.
    columns: usize,
    style: Style,
    all: bool,
}

impl<'a> ComparisonText<'a> {
    /// A table of this width.
    pub fn new(comparison: &'a Comparison, columns: usize, style: Style) -> ComparisonText<'a> {
        ComparisonText { comparison, columns, style, all: false }
    }

    /// Shows all rows, not only the first ones within the noise.
    pub fn all(self, all: bool) -> ComparisonText<'a> {
        ComparisonText { all, ..self }
    }

    /// Writes it, with the names of both profiles.
    ///
    /// # Errors
    /// What the writer says.
    pub fn write(&self, names: (&str, &str), out: &mut dyn Write) -> io::Result<()> {
        let Comparison { rows, before, after, .. } = self.comparison;
        self.line(Paint::Bold, format!("{} → {}", sanitize(names.0), sanitize(names.1)), out)?;
        for text in self.headlines(before, after) {
            self.line(Paint::Normal, text, out)?;
        }
        let beyond = rows.iter().filter(|row| row.is_beyond_noise()).count();
        let within = rows.len() - beyond;
        writeln!(out)?;
        let exact = self.comparison.exact;
        let what = match self.comparison.metric {
            Metric::Time if self.comparison.of_tasks => "own wall time of tasks",
            Metric::Time if self.comparison.timed => "own CPU time",
            Metric::Time => "samples of its own",
            metric => metric.noun(),
        };
        self.line(
            Paint::Bold,
            format!(
                "   {:>9} {:>9} {:>8} {:>9} → {:<9} {}",
                "change",
                if exact { "" } else { "± error" },
                "%",
                "before",
                "after",
                self.comparison.key.word()
            ),
            out,
        )?;
        self.line(Paint::Bold, "=".repeat(self.columns.min(RULE)), out)?;
        // Exact numbers differ for every function that does a little more or less.
        let changed = if exact && !self.all { beyond.min(CHANGED) } else { beyond };
        for row in &rows[..changed] {
            self.row(row, out)?;
        }
        if changed < beyond {
            let more = format!("… and {} more changed (--all shows them)", beyond - changed);
            self.line(Paint::Grey, more, out)?;
        }
        if beyond > 0 && within > 0 {
            writeln!(out)?;
        }
        if within > 0 {
            let title = match exact {
                true => "unchanged:".to_owned(),
                false => format!("within the noise (less than {BEYOND:.0} standard errors):"),
            };
            self.line(Paint::Grey, title, out)?;
        }
        let shown = if self.all { within } else { within.min(WITHIN) };
        for row in &rows[beyond..beyond + shown] {
            self.row(row, out)?;
        }
        if shown < within {
            self.line(Paint::Grey, format!("… and {} more (--all shows them)", within - shown), out)?;
        }
        writeln!(out)?;
        let beyond_noise = if exact { "" } else { " beyond the noise" };
        let noun = self.comparison.key.word();
        let functions = |n: usize| {
            if n == 1 { format!("1 {noun}") } else { format!("{} {noun}s", grouped(n as u64)) }
        };
        self.line(
            Paint::Normal,
            format!("{beyond} of {} changed{beyond_noise}, by {what}", functions(rows.len())),
            out,
        )?;
        match self.least() {
            Some(least) if beyond == 0 => self.line(Paint::Grey, least, out),
            _ => Ok(()),
        }
    }

    /// Writes all rows as one JSON object, with the names of both profiles.
    ///
    /// # Errors
    /// What the writer says.
    pub fn write_json(&self, names: (&str, &str), out: &mut dyn Write) -> io::Result<()> {
        json::write(self.comparison, names, out)
    }

    /// The smallest change that could be detected, for the function with the most time.
    fn least(&self) -> Option<String> {
        let expected = |row: &Row| row.expected(self.comparison.common);
        let most = self.comparison.rows.iter().max_by(|a, b| expected(a).total_cmp(&expected(b)))?;
        let percent = BEYOND * most.error / expected(most) * 100.0;
        let name = self.name(most, NAME);
        (percent >= 5.0 && percent.is_finite())
            .then(|| format!("a change of {name} by less than {percent:.0} % would not show: record longer"))
    }

    fn headlines(&self, before: &Cost, after: &Cost) -> Vec<String> {
        let Comparison { common, spread, timed, of_tasks, metric, exact, .. } = self.comparison;
        let what = match metric {
            Metric::Time if *of_tasks => "wall time of tasks",
            Metric::Time if *timed => "CPU time",
            Metric::Time => "samples",
            metric => metric.noun(),
        };
        let mut lines = vec![match before.amount > 0.0 {
            false => format!("{what} {} → {}", self.amount(before.amount), self.amount(after.amount)),
            true => {
                let ratio = after.amount / before.amount;
                let error = ratio * relative(before).hypot(relative(after));
                let error = if *exact { String::new() } else { format!(" ± {:.1}", error * 100.0) };
                format!(
                    "{what} {} → {} ({:+.1} %{error})",
                    self.amount(before.amount),
                    self.amount(after.amount),
                    (ratio - 1.0) * 100.0,
                )
            }
        }];
        if *common != 1.0 {
            lines.push(format!(
                "{:+.1} % is common to most functions: `before` includes it, changes do not",
                (common - 1.0) * 100.0
            ));
        }
        if *spread > 1.0 {
            lines.push(format!(
                "these runs differ {spread:.1} times as much as their hits explain: errors are scaled by that"
            ));
        }
        let Waited { before, after } = self.comparison.waited;
        let (old, new) = (before * 100.0, after * 100.0);
        if old.max(new) >= BUSY {
            lines.push(format!(
                "the machine was busy (threads were ready, without a CPU, for {old:.0} % and {new:.0} % of the time that \
                 they were not asleep):"
            ));
            lines.push("times may vary by more than the errors; repeat measurements that matter".to_owned());
        }
        lines
    }

    fn row(&self, row: &Row, out: &mut dyn Write) -> io::Result<()> {
        let beyond = row.is_beyond_noise();
        let sign = if row.change < 0.0 { "-" } else { "+" };
        let percent = match row.percent(self.comparison.common) {
            _ if row.after.amount == 0.0 => "gone".to_owned(),
            None => "new".to_owned(),
            Some(percent) if percent.abs() >= 999.5 => format!("{sign}{}×", (percent.abs() / 100.0).round()),
            Some(percent) => format!("{percent:+.1}"),
        };
        let numbers = format!(
            "{:>9} {:>9} {percent:>8} {:>9} → {:<9} ",
            format!("{sign}{}", self.amount(row.change.abs())),
            if self.comparison.exact { String::new() } else { format!("±{}", self.amount(row.error)) },
            self.amount(row.expected(self.comparison.common)),
            self.amount(row.after.amount),
        );
        let paint = match (beyond, row.change > 0.0) {
            (false, _) => Paint::Grey,
            (true, true) => Paint::Red,
            (true, false) => Paint::Green,
        };
        let room = self.columns.saturating_sub(3 + crate::text::columns::width(&numbers)).max(12);
        let mut line = Line::new();
        line.push(paint, if beyond { " ! " } else { "   " }.to_owned());
        line.push(paint, numbers);
        line.push(if beyond { Paint::Bold } else { Paint::Normal }, self.name(row, room));
        line.cut(self.columns).write(self.style, out)
    }

    /// The name of a row in at most `room` columns.
    fn name(&self, row: &Row, room: usize) -> String {
        match self.comparison.key {
            ComparisonKey::Function => short_function(&sanitize(&row.name), room),
            ComparisonKey::Type => shorten_type(&sanitize(&row.name), room),
        }
    }

    fn amount(&self, amount: f64) -> String {
        match self.comparison.timed {
            true => self.comparison.metric.unit().text(amount.round() as u64),
            false => grouped(amount.round() as u64),
        }
    }

    fn line(&self, paint: Paint, text: String, out: &mut dyn Write) -> io::Result<()> {
        let mut line = Line::new();
        line.push(paint, text);
        line.cut(self.columns).write(self.style, out)
    }
}

fn relative(cost: &Cost) -> f64 {
    if cost.amount > 0.0 { cost.error() / cost.amount } else { 0.0 }
}
