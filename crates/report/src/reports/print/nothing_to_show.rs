//! Why a report is empty, and what would show something.

use super::{NO_ALLOCATIONS, NO_SAMPLES, NO_SAMPLES_IN_GROUP, Report};
use crate::Metric;
use crate::options::GroupBy;
use crate::queries::picked;
use crate::trees::aggregated_samples::{AggregatedSamples, SampleGroup};

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
    pub(super) fn new(report: &Report, samples: &AggregatedSamples<'_>, picked: &[SampleGroup]) -> Empty {
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
    let samples: Vec<(u64, u64)> = samples.groups.iter().map(|group| (group.thread, group.task)).collect();
    picked::not_picked(&samples, &report.threads, &report.tasks)
}
