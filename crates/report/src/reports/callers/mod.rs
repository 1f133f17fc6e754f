//! The callers of a function as a table, readable at 80 columns.

mod json;

use crate::call_tree::StateFilter;
use crate::metric::Unit;
use crate::queries::callers::{Answer, Called, Caller};
use crate::queries::function_table::public_name;
use crate::reports::json_head::Quantity;
use crate::text::columns::{pad_right, width};
use crate::text::numbers::{counted, duration_text, grouped, millis_text, part_text, percent, percent_text};
use crate::text::short::{in_brackets, location_text, short_function};
use crate::text::style::{Line, Paint};
use crate::text::type_name::shorten_type;
use crate::{Links, Metric, Source, Style};
use stackglass_profile::sanitize;
use std::io::{self, Write};

/// Number of functions shown if several match.
const SHOWN: usize = 10;

/// How an [`Answer`] is written.
#[derive(Clone, Debug)]
pub struct CallersText {
    cols: usize,
    style: Style,
    links: Option<Links>,
    metric: Metric,
    states: StateFilter,
    timed: bool,
}

impl CallersText {
    /// A width of at least 40 columns, with or without colours and links.
    pub fn new(cols: usize, style: Style, links: Option<Links>) -> CallersText {
        CallersText {
            cols: cols.max(40),
            style,
            links,
            metric: Metric::Time,
            states: StateFilter::All,
            timed: false,
        }
    }

    /// What is counted: samples by default. For allocations, the answer must be that of
    /// [`weighted`](crate::allocation_queries::weighted).
    pub fn metric(self, metric: Metric) -> CallersText {
        CallersText { metric, ..self }
    }

    /// The states of threads that were selected: all by default.
    pub fn states(self, states: StateFilter) -> CallersText {
        CallersText { states, ..self }
    }

    /// Counts are nanoseconds, see [`count_time`](crate::count_time).
    pub fn timed(self, timed: bool) -> CallersText {
        CallersText { timed, ..self }
    }

    /// A count in a column: milliseconds, samples, or an amount of the metric.
    fn count(&self, count: u64) -> String {
        match self.metric {
            Metric::Time if self.timed => millis_text(count),
            Metric::Time => grouped(count),
            metric => metric.unit().text(count),
        }
    }

    /// `166 of 244 ms of CPU time (68 %)`.
    fn part(&self, part: u64, all: u64, source: Source<'_>) -> String {
        let share = percent_text(part, all);
        match self.metric {
            Metric::Time if self.timed => {
                format!("for {} of {} ({share})", part_text(part, all), source.noun(self.states))
            }
            Metric::Time => {
                format!("in {} of {} ({share})", grouped(part), counted(all, "sample", "samples"))
            }
            _ => format!("for {}", self.part_of_metric(part, all)),
        }
    }

    fn part_of_metric(&self, part: u64, all: u64) -> String {
        let share = percent_text(part, all);
        let (part, all, noun) = (self.count(part), self.count(all), self.metric.noun());
        format!("{part} of {all} ({share} of the {noun})")
    }

    /// Writes all functions and their callers as one JSON object.
    ///
    /// # Errors
    /// When writing fails.
    pub fn write_json(&self, answer: &Answer, source: Source<'_>, out: &mut dyn Write) -> io::Result<()> {
        let quantity = Quantity {
            metric: self.metric,
            states: self.states,
            timed: self.timed || self.metric != Metric::Time,
        };
        json::write(answer, source, quantity, out)
    }

    /// Writes for each function how often it was seen, and one line for each caller.
    ///
    /// # Errors
    /// When writing fails.
    pub fn write(&self, answer: &Answer, source: Source<'_>, out: &mut dyn Write) -> io::Result<()> {
        let functions = &answer.functions;
        let shown = if functions.len() > SHOWN { SHOWN - 1 } else { SHOWN };
        for (index, called) in functions.iter().take(shown).enumerate() {
            if index > 0 {
                out.write_all(b"\n")?;
            }
            self.function(called, answer.all, source, out)?;
        }
        if functions.len() > shown {
            let more = functions.len() - shown;
            let functions = if more == 1 { "function matches" } else { "functions match" };
            let text = format!("{more} more {functions}, less often seen: give more of the path");
            let mut line = Line::new();
            out.write_all(b"\n")?;
            line.push(Paint::Grey, text).cut(self.cols).write(self.style, out)?;
        }
        Ok(())
    }

    fn function(&self, called: &Called, all: u64, source: Source<'_>, out: &mut dyn Write) -> io::Result<()> {
        let name = match &*called.func {
            "" if called.module.is_empty() => "[unknown functions]".into(),
            "" => in_brackets(&called.module),
            name if called.is_type => shorten_type(&sanitize(name), self.cols),
            func => short_function(&sanitize(public_name(func)), self.cols),
        };
        let mut line = Line::new();
        line.push(Paint::Bold, name).write(self.style, out)?;
        let mut line = Line::new();
        match called.is_type {
            true => line.plain(self.part_of_metric(called.snapshots, all)),
            false => line.plain(format!("on the stack {}", self.part(called.snapshots, all, source))),
        };
        let mixed = self.states == StateFilter::All;
        if mixed && called.asleep > 0 {
            let asleep = match self.timed {
                true => duration_text(called.asleep),
                false => counted(called.asleep, "sample", "samples"),
            };
            line.plain(format!(", {asleep} of it asleep"));
        }
        line.cut(self.cols).write(self.style, out)?;

        let calls = called.callers.iter().map(|caller| caller.count).sum::<u64>() + called.uncalled;
        let asleep = mixed && called.callers.iter().any(|caller| caller.asleep > 0);
        let counts = called.callers.iter().map(|caller| width(&self.count(caller.count)));
        let wide = counts.chain([width(&self.count(calls)), 7]).max().unwrap_or(7);
        let sleep = if asleep { "  asleep" } else { "" };
        let mut line = Line::new();
        line.push(
            Paint::Grey,
            format!("    %  {:>wide$}{sleep}  caller, at the line of the call", self.title()),
        );
        line.cut(self.cols).write(self.style, out)?;
        for caller in &called.callers {
            let mut line = self.numbers(caller.count, calls, wide, asleep.then_some(caller.asleep));
            self.place(caller, source, &mut line);
            line.cut(self.cols).write(self.style, out)?;
        }
        if called.uncalled > 0 {
            let mut line = self.numbers(called.uncalled, calls, wide, asleep.then_some(0));
            line.push(Paint::Grey, "[none: outermost frame]").cut(self.cols).write(self.style, out)?;
        }
        Ok(())
    }

    /// The title of the column of counts.
    fn title(&self) -> &'static str {
        match self.metric.unit() {
            Unit::Nanoseconds if self.timed => "ms",
            Unit::Nanoseconds => "samples",
            Unit::Bytes => "bytes",
            Unit::Allocations => "count",
        }
    }

    fn numbers(&self, count: u64, calls: u64, wide: usize, asleep: Option<u64>) -> Line {
        let mut line = Line::new();
        line.push(Paint::Bold, format!("{:>5.1}", percent(count, calls)));
        line.plain(format!("  {:>wide$}", self.count(count)));
        if let Some(asleep) = asleep {
            let asleep = if asleep > 0 { self.count(asleep) } else { String::new() };
            line.push(Paint::Grey, format!("  {asleep:>6}"));
        }
        line.plain("  ");
        line
    }

    fn place(&self, caller: &Caller, source: Source<'_>, line: &mut Line) {
        let frame = &caller.frame;
        let room = self.cols.saturating_sub(line.width());
        let func = match &*sanitize(&frame.func) {
            "" if frame.module.is_empty() => "[unknown function]".to_owned(),
            "" => in_brackets(&frame.module),
            func => public_name(func).to_owned(),
        };
        let (location, link) = match frame.file.is_empty() {
            true => (String::new(), None),
            false => {
                let left = room.saturating_sub(width(&func) + 2).max(room / 2);
                let link = self.links.as_ref().and_then(|links| links.target(&frame.file, frame.line));
                (location_text(source.short_path(&frame.file), &frame.file, frame.line, left), link)
            }
        };
        let for_name = room.saturating_sub(if location.is_empty() { 0 } else { width(&location) + 2 });
        let name = short_function(&func, for_name);
        if location.is_empty() {
            line.plain(name);
        } else if self.cols > 120 {
            // Wide output goes to files and pipes, where nothing is aligned at the right edge.
            line.plain(name).plain("  ").push_linked(Paint::Grey, location, link);
        } else {
            line.plain(pad_right(&name, for_name)).plain("  ").push_linked(Paint::Grey, location, link);
        }
    }
}
