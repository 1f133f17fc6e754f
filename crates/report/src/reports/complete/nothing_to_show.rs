//! Why a report is empty, and what would show something.

use super::{NO_ALLOCATIONS, NO_SAMPLES, NO_SAMPLES_IN_GROUP, Report};
use crate::Metric;
use crate::options::{GroupBy, Pick};
use crate::trees::aggregated_samples::{AggregatedSamples, SampleGroup};
use std::collections::BTreeSet;

/// Maximum number of ids listed in a warning.
const LISTED: usize = 12;

/// Why a report is empty. Greater values are more helpful.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Empty {
    /// There are no samples.
    NoSamples,
    /// No sample of the selected threads and tasks.
    NotPicked,
    /// All stacks are empty.
    NoFrames,
    /// All frames are foreign, which are hidden.
    Foreign,
}

impl Empty {
    /// The reason why these samples show nothing.
    pub(super) fn of(report: &Report, samples: &AggregatedSamples<'_>, picked: &[SampleGroup]) -> Empty {
        match picked {
            [] if samples.groups.is_empty() => Empty::NoSamples,
            [] => Empty::NotPicked,
            _ if report.c || picked.iter().all(|group| group.stack == 0) => Empty::NoFrames,
            _ => Empty::Foreign,
        }
    }

    /// The warning: what hides the samples, and how to show them.
    pub(super) fn text(self, report: &Report, samples: &AggregatedSamples<'_>) -> String {
        let grouped = report.group_by != GroupBy::None;
        match self {
            Empty::NoSamples if report.metric != Metric::Time => NO_ALLOCATIONS.to_owned(),
            Empty::NoSamples if grouped => NO_SAMPLES_IN_GROUP.to_owned(),
            Empty::NoSamples => NO_SAMPLES.to_owned(),
            Empty::NotPicked => not_picked(report, samples),
            Empty::NoFrames if grouped => "the stacks of one or more groups have no frames".to_owned(),
            Empty::NoFrames => "nothing to show: the stacks have no frames".to_owned(),
            Empty::Foreign if grouped => {
                "in one or more groups all frames are foreign: show them with C = true (--c)".to_owned()
            }
            Empty::Foreign => "all frames are foreign: show them with C = true (--c)".to_owned(),
        }
    }
}

/// The warning for samples of other threads and tasks.
fn not_picked(report: &Report, samples: &AggregatedSamples<'_>) -> String {
    let threads: BTreeSet<u64> = samples.groups.iter().map(|group| group.thread).collect();
    let tasks: BTreeSet<u64> = samples.groups.iter().map(|group| group.task).collect();
    let none = |pick: &Pick, ids: &BTreeSet<u64>| !ids.iter().any(|id| pick.has(*id));
    if none(&report.threads, &threads) {
        return format!("no samples of the selected threads: there are threads {}", decimal(&threads));
    }
    if none(&report.tasks, &tasks) {
        let ids = listed(tasks.iter().map(|id| format!("0x{id:x}")));
        return format!("no samples of the selected tasks: there are tasks {ids}");
    }
    // The selected threads and the selected tasks have samples, but not in common.
    let of_tasks = samples.groups.iter().filter(|group| report.tasks.has(group.task));
    let on: BTreeSet<u64> = of_tasks.map(|group| group.thread).collect();
    format!(
        "no samples of the selected tasks on the selected threads: these tasks ran on threads {}",
        decimal(&on)
    )
}

/// `1, 3, 5-7`.
fn decimal(ids: &BTreeSet<u64>) -> String {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for id in ids {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*id) => *last = *id,
            _ => ranges.push((*id, *id)),
        }
    }
    listed(ranges.into_iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    }))
}

fn listed(ids: impl ExactSizeIterator<Item = String>) -> String {
    let more = if ids.len() > LISTED { ", …" } else { "" };
    let shown: Vec<String> = ids.take(LISTED).collect();
    format!("{}{more}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_listed_as_they_are_picked() {
        assert_eq!(decimal(&BTreeSet::from([1, 3, 5, 6, 7, u64::MAX])), format!("1, 3, 5-7, {}", u64::MAX));
        let many = decimal(&(0..40).map(|id| 2 * id).collect());
        assert!(many.ends_with("22, …"), "{many}");
        assert!("1, 3, 5-7".replace(' ', "").parse::<Pick>().is_ok_and(|pick| pick.has(6)));
    }
}
