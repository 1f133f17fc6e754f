//! The options of the full report as flags, named as in Julia's `Profile.print`.

use crate::failure::Failure;
use crate::input::Input;
use crate::pick_flags::PickFlags;
use crate::values::{one_of, whole};
use clap::Args;
use stackglass_report::{Format, GroupBy, Recur, Report, SortedBy};

/// All options of a [`Report`].
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Full report")]
pub(crate) struct ReportFlags {
    /// Layout of the report [default: summary, or tree with other options of the full report]
    #[arg(long, value_parser = one_of(PrintFormat::ALL, PrintFormat::word, PrintFormat::help))]
    format: Option<PrintFormat>,

    /// Show foreign frames (not compiled from Rust) [default: only if the program has no others]
    #[arg(long, overrides_with = "no_c")]
    c: bool,

    /// Show only frames compiled from Rust
    #[arg(long, overrides_with = "c")]
    no_c: bool,

    /// Merge entries of the same function and line [default]
    #[arg(long, overrides_with = "no_combine")]
    combine: bool,

    /// One entry per address
    #[arg(long, overrides_with = "combine")]
    no_combine: bool,

    /// Deepest level to print; the root is level 0 (tree)
    #[arg(long, value_name = "LEVEL", allow_negative_numbers = true, value_parser = whole::<i64>)]
    maxdepth: Option<i64>,

    /// Hide entries with a lower count; in a tree, also everything below them
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true, value_parser = whole::<u64>)]
    mincount: Option<u64>,

    /// Hide entries below FACTOR × √(caller's count) (tree)
    #[arg(long, value_name = "FACTOR", allow_negative_numbers = true, value_parser = factor)]
    noisefloor: Option<f64>,

    /// Ascending order of siblings or rows [default: filefuncline]
    #[arg(long, value_name = "KEY", value_parser = one_of(SortedBy::ALL, SortedBy::word, sort_help))]
    sortedby: Option<SortedBy>,

    /// Split the report [default: none]
    #[arg(long, value_name = "KEY", value_parser = one_of(GroupBy::ALL, GroupBy::word, group_help))]
    groupby: Option<GroupBy>,

    /// Fold recursive calls from the same call site (tree) [default: off]
    #[arg(long, value_name = "HOW", value_parser = one_of(Recur::ALL, Recur::word, recur_help))]
    recur: Option<Recur>,

    #[command(flatten)]
    pick: PickFlags,
}

/// The short report, or a format of the full one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PrintFormat {
    Summary,
    Full(Format),
}

impl PrintFormat {
    const ALL: &[PrintFormat] =
        &[PrintFormat::Summary, PrintFormat::Full(Format::Tree), PrintFormat::Full(Format::Flat)];

    fn word(self) -> &'static str {
        match self {
            PrintFormat::Summary => "summary",
            PrintFormat::Full(format) => format.word(),
        }
    }

    fn help(self) -> &'static str {
        match self {
            PrintFormat::Summary => "the short report",
            PrintFormat::Full(Format::Tree) => "callers above their callees",
            PrintFormat::Full(Format::Flat) => "one row per function and line",
        }
    }
}

impl ReportFlags {
    /// The format of the full report, if one was given.
    fn full_format(&self) -> Option<Format> {
        match self.format {
            Some(PrintFormat::Full(format)) => Some(format),
            Some(PrintFormat::Summary) | None => None,
        }
    }

    /// Whether the summary was asked for by name.
    pub(crate) fn asks_for_summary(&self) -> bool {
        self.format == Some(PrintFormat::Summary)
    }

    /// Whether any of these flags asks for the full report.
    pub(crate) fn given(&self) -> bool {
        let flags = [self.c, self.no_c, self.combine, self.no_combine];
        let values = [
            self.full_format().is_some(),
            self.maxdepth.is_some(),
            self.mincount.is_some(),
            self.noisefloor.is_some(),
            self.sortedby.is_some(),
            self.groupby.is_some(),
            self.recur.is_some(),
            self.pick.given(),
        ];
        flags.into_iter().chain(values).any(|given| given)
    }

    /// Why two of the options contradict each other, if they do.
    pub(crate) fn contradiction(&self) -> Option<String> {
        if self.format == Some(PrintFormat::Summary) && self.given() {
            return Some("the summary has no options of the full report: omit --format summary".into());
        }
        if self.full_format() != Some(Format::Flat) {
            return None;
        }
        if self.recur.is_some_and(|recur| recur != Recur::Off) {
            return Some(stackglass_report::ReportError::FlatRecur.to_string());
        }
        // Julia ignores them without a word, as if nothing had been hidden.
        let of_trees = [("--maxdepth", self.maxdepth.is_some()), ("--noisefloor", self.noisefloor.is_some())];
        let (flag, _) = of_trees.into_iter().find(|(_, given)| *given)?;
        Some(format!("the flat format has no levels: omit {flag}, or use the tree format"))
    }

    /// Fails if no sample is of the selected threads and tasks.
    pub(crate) fn check_selection(&self, input: &Input) -> Result<(), Failure> {
        self.pick.check(&input.name, input.source())
    }

    /// The report with these options. Foreign frames are shown if `foreign`, unless a flag says otherwise.
    pub(crate) fn report(&self, foreign: bool) -> Report {
        let mut report = Report::new()
            .format(self.full_format().unwrap_or_default())
            .c((foreign || self.c) && !self.no_c)
            .combine(!self.no_combine)
            .sorted_by(self.sortedby.unwrap_or_default())
            .group_by(self.groupby.unwrap_or_default())
            .recur(self.recur.unwrap_or_default());
        if let Some(depth) = self.maxdepth {
            report = report.maxdepth(depth);
        }
        if let Some(count) = self.mincount {
            report = report.mincount(count);
        }
        if let Some(factor) = self.noisefloor {
            report = report.noisefloor(factor);
        }
        if let Some(threads) = &self.pick.threads {
            report = report.threads(threads.clone());
        }
        if let Some(tasks) = &self.pick.tasks {
            report = report.tasks(tasks.clone());
        }
        report
    }
}

fn sort_help(key: SortedBy) -> &'static str {
    match key {
        SortedBy::FileFuncLine => "file, function, line",
        SortedBy::Count => "snapshots in the function or its callees",
        SortedBy::Overhead => "snapshots in the function itself",
        SortedBy::FlatCount => "as count, with recursion folded (tree)",
    }
}

fn group_help(key: GroupBy) -> &'static str {
    match key {
        GroupBy::None => "one report",
        GroupBy::Thread => "one part per thread",
        GroupBy::Task => "one part per task",
        GroupBy::ThreadTask => "by thread, then by task",
        GroupBy::TaskThread => "by task, then by thread",
    }
}

pub(crate) fn recur_help(recur: Recur) -> &'static str {
    match recur {
        Recur::Off => "do not fold",
        Recur::Flat => "fold, unless the call site is foreign",
        Recur::FlatC => "always fold",
    }
}

fn factor(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|factor: &f64| factor.is_finite() && *factor >= 0.0)
        .ok_or_else(|| "expected a number >= 0, such as 0.5 or 2".into())
}
