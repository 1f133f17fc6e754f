//! `--metric`: what a view of a recording counts.

use crate::failure::Failure;
use crate::input::Input;
use crate::message;
use crate::values::one_of;
use clap::Args;
use stackglass_profile::{Nanos, Recording};
use stackglass_report::{Metric, Source};

/// The flag of every verb that shows stacks.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct MetricFlag {
    /// What to count [default: time; bytes if only allocations were recorded]
    #[arg(long, value_name = "METRIC", value_parser = one_of(Metric::ALL, Metric::word, metric_help))]
    pub(crate) metric: Option<Metric>,
}

pub(crate) fn metric_help(metric: Metric) -> &'static str {
    match metric {
        Metric::Time => "time of threads",
        Metric::Bytes => "allocated bytes",
        Metric::Count => "number of allocations",
        Metric::LiveBytes => "bytes alive at the end",
        Metric::LiveCount => "blocks alive at the end",
        Metric::PeakBytes => "bytes alive at the peak",
        Metric::LeakedBytes => "bytes alive at the end that nothing holds, as --heap-at exit finds; else all",
        Metric::Temporary => "allocations freed before the next one",
    }
}

impl MetricFlag {
    /// The metric for a file: the given one, or the default of the recording.
    ///
    /// # Errors
    /// If the file has no allocations, and the metric needs them.
    pub(crate) fn of_input(self, input: &Input) -> Result<Metric, Failure> {
        match input.source() {
            Source::Recording(recording) => self.of_recording(&input.name, recording),
            Source::Data(..) if self.needs_allocations() => Err(no_allocations(&input.name)),
            Source::Data(..) => Ok(Metric::Time),
        }
    }

    /// As [`MetricFlag::of_input`], for a recording with this name.
    pub(crate) fn of_recording(self, name: &str, recording: &Recording) -> Result<Metric, Failure> {
        let allocations = &recording.allocations;
        let counts_allocations =
            self.needs_allocations() || self.metric.is_none() && recording.samples.is_empty();
        if let Some(reason) = allocations.not_sliced.filter(|_| counts_allocations) {
            return Err(Failure::new(format!("{name}: {reason}")));
        }
        if self.metric == Some(Metric::LeakedBytes) && allocations.part.is_some() {
            return Err(leaks_need_the_end());
        }
        if let Some(part) = allocations.part.filter(|_| counts_allocations) {
            let (from, to) = part.bounds();
            let seconds = |moment: Nanos| moment.0 as f64 / 1e9;
            message::print(&format!(
                "{name}: allocations from {:.3} s to {:.3} s, in whole slices of time",
                seconds(from),
                seconds(to)
            ));
        }
        match self.metric {
            Some(_) if self.needs_allocations() && !recording.allocations.were_recorded() => {
                Err(no_allocations(name))
            }
            Some(metric) => Ok(metric),
            None => Ok(Metric::default_of(recording)),
        }
    }

    fn needs_allocations(self) -> bool {
        self.metric.is_some_and(|metric| metric != Metric::Time)
    }
}

/// The failure of a view of leaks in a part of the time.
pub(crate) fn leaks_need_the_end() -> Failure {
    Failure::new(format!(
        "--metric {} is known at the end only: it needs the whole time, without --from and --to",
        Metric::LeakedBytes.word()
    ))
}

/// The failure of a view of allocations if there are none.
pub(crate) fn no_allocations(name: &str) -> Failure {
    Failure::new(format!(
        "{name} has no allocations: record them with `stackglass record --allocs -- PROGRAM`"
    ))
}
