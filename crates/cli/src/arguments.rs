//! The verbs and how their values are read. Each verb's flags are in its own file.

use crate::{
    annotate, callers, cargo_verb, clear, completions, convert, demo, demo_workload, diff, flamegraph, info,
    man, peek, print, record, run, save, top,
};
use clap::builder::styling::AnsiColor;
use clap::builder::{PathBufValueParser, Styles, TypedValueParser};
use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

const EXAMPLES: &str = "\
Examples:
  stackglass demo                         what it looks like, in three seconds
  stackglass record -- ./server --port 1  profile a program; Ctrl-C reports
  stackglass record -- sh -c 'make -j4'   children are followed
  stackglass run -- ./server              ready to be peeked at (SIGUSR1)
  stackglass peek 1234                    what is process 1234 doing?
  stackglass top 1234                     the same, live
  stackglass print                        this folder's newest recording again
  stackglass callers malloc               who called it, from which lines
  stackglass annotate --file search.rs    source lines with their times
  stackglass flamegraph                   a picture of it, in a page
  stackglass diff before.glass after.glass  which functions became slower
  stackglass convert rg.glass rg.folded   for other tools
  cargo stackglass --bin server           build with line tables, record, report

Status: that of the program (128+N when signal N ended it); 125 when
stackglass itself failed before the program was started, 126 when the program
cannot be executed, 127 when it or its interpreter does not exist, 2 for wrong
flags.";

/// See where a program spends its time: each thread, running or asleep, down to the line.
#[derive(Parser, Debug)]
#[command(name = "stackglass", version, styles = STYLES, after_help = EXAMPLES)]
pub(crate) struct Stackglass {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Verb {
    Record(record::Flags),
    Run(run::Flags),
    Peek(peek::Flags),
    Top(top::Flags),
    Print(print::Flags),
    Callers(callers::Flags),
    Annotate(annotate::Flags),
    Flamegraph(flamegraph::Flags),
    Diff(diff::Flags),
    Convert(convert::Flags),
    Info(info::Flags),
    Save(save::Flags),
    Clear(clear::Flags),
    Demo(demo::Flags),
    #[command(hide = true)]
    DemoWorkload(demo_workload::Flags),
    Man(man::Flags),
    Completions(completions::Flags),
}

/// Cargo's view: `cargo stackglass …`.
#[derive(Parser, Debug)]
#[command(name = "cargo", bin_name = "cargo", version, styles = STYLES)]
pub(crate) struct CargoCommand {
    #[command(subcommand)]
    pub(crate) verb: CargoVerb,
}

#[derive(Subcommand, Debug)]
pub(crate) enum CargoVerb {
    Stackglass(cargo_verb::Flags),
}

/// Shortest time between two looks at a thread.
const SHORTEST_DELAY: Duration = Duration::from_micros(100);

/// `1ms`, `90s`, `1h 30min`; a bare number means seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string());
    }
    humantime::parse_duration(text).map_err(|error| format!("{error}; write 500us, 1ms, 10s or 2min"))
}

/// A [`duration`] in which something can be sampled.
pub(crate) fn positive_duration(text: &str) -> Result<Duration, String> {
    let duration = duration(text)?;
    if duration.is_zero() {
        return Err("nothing can be sampled in no time; write 500ms or 30s, or leave it out".into());
    }
    Ok(duration)
}

/// The recording's file; `-` would be a file of that name, which is never meant.
pub(crate) fn output_file() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| match path.to_str() {
        Some("-") => Err("a recording is not written to stdout; name a file, such as run.glass"),
        _ => Ok(path),
    })
}

/// A [`duration`] that leaves the program time to run.
pub(crate) fn delay(text: &str) -> Result<Duration, String> {
    if text.parse::<f64>().is_ok() {
        return Err(format!("of what? write {text}ms or {text}us"));
    }
    let delay = duration(text)?;
    if delay < SHORTEST_DELAY {
        return Err(
            "shorter than 100us (10 000 a second): the program would hardly run for taking samples".into()
        );
    }
    if delay > Duration::from_secs(3600) {
        return Err("longer than an hour".into());
    }
    Ok(delay)
}

/// The id of a process.
pub(crate) fn process_id(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("write the id of a process, a number as ps and pgrep show it".into()),
        Ok(pid) => Ok(pid),
    }
}

/// `10000000`, `10_000_000`, `10M`, `2G`.
pub(crate) fn words(text: &str) -> Result<u64, String> {
    let plain: String = text.chars().filter(|c| *c != '_').collect();
    let (digits, factor) = match plain.char_indices().last() {
        Some((at, 'k' | 'K')) => (&plain[..at], 1_000),
        Some((at, 'm' | 'M')) => (&plain[..at], 1_000_000),
        Some((at, 'g' | 'G')) => (&plain[..at], 1_000_000_000),
        _ => (plain.as_str(), 1),
    };
    let n: u64 = digits.parse().map_err(|_| "write a number of words: 10000000 or 10M".to_string())?;
    n.checked_mul(factor).ok_or_else(|| "too large".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn flags_are_consistent() {
        Stackglass::command().debug_assert();
        CargoCommand::command().debug_assert();
    }

    #[test]
    fn values_are_read_as_people_write_them() {
        assert_eq!(duration("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("250us"), Ok(Duration::from_micros(250)));
        assert_eq!(duration("2min"), Ok(Duration::from_secs(120)));
        assert!(duration("-1").is_err() && duration("soon").is_err());
        assert!(delay("5").is_err_and(|why| why.contains("5ms")));
        assert!(positive_duration("0").is_err() && positive_duration("1ms").is_ok());
        assert!(delay("99us").is_err() && delay("100us").is_ok());
        assert_eq!(words("10_000"), Ok(10_000));
        assert_eq!(words("10M"), Ok(10_000_000));
        assert!(words("M").is_err() && words("99999999999G").is_err());
    }
}
