//! The options of the complete report as flags, by the names that Julia's `Profile.print` gives them.

use crate::values::{one_of, whole};
use clap::Args;
use stackglass_report::{Format, GroupBy, Pick, Recur, Report, SortedBy};

/// Everything a [`Report`] can be asked.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "The complete report")]
pub(crate) struct ReportFlags {
    /// Its shape [default: tree]
    #[arg(long, value_parser = one_of(Format::ALL, Format::word, format_help))]
    format: Option<Format>,

    /// Show foreign frames, those not compiled from Rust [default: only if the program has no other ones]
    #[arg(long, overrides_with = "no_c")]
    c: bool,

    /// Show frames compiled from Rust only
    #[arg(long, overrides_with = "c")]
    no_c: bool,

    /// One entry for equal functions at equal lines [default]
    #[arg(long, overrides_with = "no_combine")]
    combine: bool,

    /// One entry for each address
    #[arg(long, overrides_with = "combine")]
    no_combine: bool,

    /// Show this many levels and one more (tree)
    #[arg(long, value_name = "LEVEL", allow_negative_numbers = true, value_parser = whole::<i64>)]
    maxdepth: Option<i64>,

    /// Hide what was counted less often, and in a tree all below it
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true, value_parser = whole::<u64>)]
    mincount: Option<u64>,

    /// Hide what is counted less than FACTOR times the root of its caller's count (tree)
    #[arg(long, value_name = "FACTOR", allow_negative_numbers = true, value_parser = factor)]
    noisefloor: Option<f64>,

    /// Ascending order of siblings or rows [default: filefuncline]
    #[arg(long, value_name = "KEY", value_parser = one_of(SortedBy::ALL, SortedBy::word, sort_help))]
    sortedby: Option<SortedBy>,

    /// Divide the report [default: none]
    #[arg(long, value_name = "KEY", value_parser = one_of(GroupBy::ALL, GroupBy::word, group_help))]
    groupby: Option<GroupBy>,

    /// Fold recursion by call site (tree) [default: off]
    #[arg(long, value_name = "HOW", value_parser = one_of(Recur::ALL, Recur::word, recur_help))]
    recur: Option<Recur>,

    /// Count these threads only: 2, or 1,3,5-7 (numbers as in `stackglass info`)
    #[arg(long, value_name = "NUMBERS")]
    threads: Option<Pick>,

    /// Count these tasks only, by id: 0x7f00 (ids as --groupby task shows them)
    #[arg(long, value_name = "IDS")]
    tasks: Option<Pick>,
}

impl ReportFlags {
    /// Whether any of them was given.
    pub(crate) fn given(&self) -> bool {
        let flags = [self.c, self.no_c, self.combine, self.no_combine];
        let values = [
            self.format.is_some(),
            self.maxdepth.is_some(),
            self.mincount.is_some(),
            self.noisefloor.is_some(),
            self.sortedby.is_some(),
            self.groupby.is_some(),
            self.recur.is_some(),
            self.threads.is_some(),
            self.tasks.is_some(),
        ];
        flags.into_iter().chain(values).any(|given| given)
    }

    /// Options that contradict each other.
    pub(crate) fn contradiction(&self) -> Option<String> {
        if self.format != Some(Format::Flat) {
            return None;
        }
        if self.recur.is_some_and(|recur| recur != Recur::Off) {
            return Some(stackglass_report::ReportError::FlatRecur.to_string());
        }
        // The reference passes over them, which looks as if nothing had been hidden.
        let of_trees = [("--maxdepth", self.maxdepth.is_some()), ("--noisefloor", self.noisefloor.is_some())];
        let (flag, _) = of_trees.into_iter().find(|(_, given)| *given)?;
        Some(format!("the flat format has no levels: leave {flag} off, or use the tree format"))
    }

    /// The report they ask for; foreign frames are shown if `foreign` unless told otherwise.
    pub(crate) fn report(&self, foreign: bool) -> Report {
        let mut report = Report::new()
            .format(self.format.unwrap_or_default())
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
        if let Some(threads) = &self.threads {
            report = report.threads(threads.clone());
        }
        if let Some(tasks) = &self.tasks {
            report = report.tasks(tasks.clone());
        }
        report
    }
}

fn format_help(format: Format) -> &'static str {
    match format {
        Format::Tree => "callers above what they call",
        Format::Flat => "a row for each function and line",
    }
}

fn sort_help(key: SortedBy) -> &'static str {
    match key {
        SortedBy::FileFuncLine => "file, function, line",
        SortedBy::Count => "snapshots in it or below it",
        SortedBy::Overhead => "snapshots in it alone",
        SortedBy::FlatCount => "as count, with recursion folded (tree)",
    }
}

fn group_help(key: GroupBy) -> &'static str {
    match key {
        GroupBy::None => "everything together",
        GroupBy::Thread => "a part for each thread",
        GroupBy::Task => "a part for each task",
        GroupBy::ThreadTask => "for each task of each thread",
        GroupBy::TaskThread => "for each thread of each task",
    }
}

fn recur_help(recur: Recur) -> &'static str {
    match recur {
        Recur::Off => "not at all",
        Recur::Flat => "unless the call site is foreign",
        Recur::FlatC => "always",
    }
}

fn factor(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|factor: &f64| factor.is_finite() && *factor >= 0.0)
        .ok_or_else(|| "write a number from 0 on: 0.5 or 2".into())
}
