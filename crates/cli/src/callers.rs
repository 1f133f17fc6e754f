//! `stackglass callers FUNC [FILE]`: the callers of a function, by line and count.

use crate::failure::{Failure, Outcome};
use crate::input::{self, Input};
use crate::metric_flag::MetricFlag;
use crate::range_flags::RangeFlags;
use crate::states_flag::StateFlags;
use crate::terminal::LayoutFlags;
use clap::Args;
use regex::Regex;
use stackglass_profile::Nanos;
use stackglass_report::allocation_queries::{NamedTypes, TypeLeaf, callers_of_types, types_named};
use stackglass_report::call_tree::StateFilter;
use stackglass_report::callers::Answer;
use stackglass_report::{Callers, CallersText, FilePattern, Metric, Selection, Source};
use std::collections::BTreeSet;
use std::io::{BufWriter, Write};
use std::ops::RangeInclusive;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  stackglass callers search_path             also rg::search::search_path
  stackglass callers Searcher::search_path   the last parts of a path
  stackglass callers malloc server.glass     C functions as well
  stackglass callers poll --asleep           calls that sleep in poll
  stackglass callers --regex '^serde_.*de$'  a regular expression
  stackglass callers read --file src/io.rs --line 10-40   only these calls
  stackglass callers from_str --metric bytes   bytes allocated for them
  stackglass callers 'Vec<u8>'               the lines that allocate a type";

/// Print the callers of a function, by line.
///
/// Callers are sorted by the CPU time of the calls, unless --wall or --asleep is given. Inlined functions count as callers. A
/// recursive function is its own caller and counts once per call.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// The function: its path, or the last parts of the path; or an allocated type, if no function has this name
    #[arg(value_name = "FUNC")]
    func: String,

    /// A .glass, .jlprof or folded file, or - for stdin [default: the newest *.glass in this folder]
    #[arg(value_name = "FILE")]
    recording: Option<PathBuf>,

    /// Treat FUNC as a regular expression, searched for in whole paths
    #[arg(long)]
    regex: bool,

    /// Only functions in these source files: io.rs, src/io.rs, @serde, 'net*.rs'
    #[arg(long, value_name = "SOURCE")]
    file: Option<String>,

    /// Only calls from these lines of FUNC: 12 or 10-40
    #[arg(long, value_name = "A-B", requires = "file", value_parser = lines)]
    line: Option<RangeInclusive<i64>>,

    #[command(flatten)]
    states: StateFlags,

    #[command(flatten)]
    metric: MetricFlag,

    /// Print all functions and callers as one JSON object (docs/json.md)
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    range: RangeFlags,

    #[command(flatten)]
    layout: LayoutFlags,
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    let mut question = match flags.regex {
        false => Callers::new(&flags.func),
        true => {
            let regex = Regex::new(&flags.func).map_err(|error| Failure {
                status: 2,
                line: format!("`{}` is not a regular expression: {}", flags.func, last_line(&error)),
            })?;
            Callers::matching(move |name| regex.is_match(name))
        }
    };
    let input = input::read(&input::choose(flags.recording.as_deref())?, flags.range.range()?)?;
    let metric = flags.metric.of_input(&input)?;
    let of_types = of_types(flags, &input, metric);
    let states = flags.states.of_metric(metric)?;
    let hint = input.timed().map_or("", |recording| flags.states.hint(recording));
    let mut input = input.weighted(metric, TypeLeaf::Without).select(&Selection::new(states))?;
    let timed = input.count_time(Nanos(1));
    let source = input.source();
    if let Some(file) = &flags.file {
        let files = source.files(&FilePattern::new(file));
        if files.is_empty() {
            return Err(Failure::new(no_such_file(&input.name, file)));
        }
        question = question.file_matching(move |name| files.contains(name));
    }
    if let Some(lines) = &flags.line {
        question = question.lines(lines.clone());
    }
    let answer = question.answer(source).map_err(Failure::new)?;
    if let Some((answer, metric)) = of_types.filter(|_| answer.functions.is_empty()) {
        return print(flags, &answer, source, (metric, states, true));
    }
    if answer.functions.is_empty() {
        return Err(Failure::new(match &answer.other_lines[..] {
            [] if answer.all == 0 && metric == Metric::Time => {
                format!("{}: no {} was sampled{hint}", input.name, source.noun(states))
            }
            [] => not_seen(flags, source, &input.name),
            lines => at_other_lines(flags, lines, &input.name),
        }));
    }
    print(flags, &answer, source, (metric, states, timed))
}

fn print(
    flags: &Flags,
    answer: &Answer,
    source: Source<'_>,
    (metric, states, timed): (Metric, StateFilter, bool),
) -> Outcome {
    let layout = flags.layout.of_stdout();
    let mut out = BufWriter::new(std::io::stdout().lock());
    let text = CallersText::new(layout.columns, layout.style, layout.links);
    let text = text.metric(metric).states(states).timed(timed);
    match flags.json {
        true => text.write_json(answer, source, &mut out)?,
        false => text.write(answer, source, &mut out)?,
    }
    out.flush()?;
    Ok(0)
}

/// The sites that allocate a type, if FUNC is the name of one, and what is counted.
fn of_types(flags: &Flags, input: &Input, metric: Metric) -> Option<(Answer, Metric)> {
    if flags.regex || flags.file.is_some() || flags.metric.metric == Some(Metric::Time) {
        return None;
    }
    let Source::Recording(recording) = input.source() else { return None };
    let NamedTypes::Found(types) = types_named(recording, &flags.func) else { return None };
    let metric = if metric == Metric::Time { Metric::Bytes } else { metric };
    Some((callers_of_types(recording, &types, metric), metric))
}

/// The message if no source file matches.
pub(crate) fn no_such_file(recording: &str, pattern: &str) -> String {
    format!(
        "{recording}: no source file matches `{pattern}`; write whole parts of a path (io.rs, src/io.rs) or use `*`"
    )
}

/// The message if the function was seen only at other lines.
fn at_other_lines(flags: &Flags, lines: &[i64], name: &str) -> String {
    let first: Vec<String> = lines.iter().take(12).map(i64::to_string).collect();
    let more = if lines.len() > first.len() { ", …" } else { "" };
    format!("{name}: `{}` was not seen at these lines, only at {}{more}", flags.func, first.join(", "))
}

/// The message if the function was not seen, with similar names.
fn not_seen(flags: &Flags, source: Source<'_>, name: &str) -> String {
    let func = &flags.func;
    let place = if flags.file.is_some() { " there" } else { "" };
    let last = func.rsplit("::").next().unwrap_or(func).to_lowercase();
    let similar: BTreeSet<&str> = source
        .frames()
        .into_iter()
        .map(|frame| &*frame.func)
        .filter(|name| {
            let name = name.rsplit("::").next().unwrap_or(name);
            !last.is_empty() && name.to_lowercase().contains(&last)
        })
        .collect();
    let mut line = format!("{name}: no function `{func}` was seen{place}");
    if !similar.is_empty() && !flags.regex {
        let first: Vec<&str> = similar.iter().copied().take(4).collect();
        let more = if similar.len() > first.len() { ", …" } else { "" };
        line += &format!("; similar names: {}{more} (--regex finds parts of names)", first.join(", "));
    }
    line
}

/// The last line of a message of `regex`; the lines before it draw the expression.
fn last_line(error: &regex::Error) -> String {
    let text = error.to_string();
    text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

/// `12`, `10-40`, `10:40`.
fn lines(text: &str) -> Result<RangeInclusive<i64>, String> {
    let wrong = || "expected a line or a range of lines: 12 or 10-40".to_owned();
    let (first, last) = text.split_once(['-', ':']).unwrap_or((text, text));
    let number = |text: &str| text.trim().parse::<u32>().map(i64::from).map_err(|_| wrong());
    let (first, last) = (number(first)?, number(last)?);
    if first > last { Err(wrong()) } else { Ok(first..=last) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_lines() {
        assert_eq!(lines("12"), Ok(12..=12));
        assert_eq!(lines("10-40"), Ok(10..=40));
        assert!(lines("40-10").is_err() && lines("-3").is_err() && lines("").is_err());
    }
}
