//! `--wall` and `--asleep`: which states of threads a report counts.

use crate::failure::Failure;
use clap::Args;
use stackglass_profile::{Recording, State};
use stackglass_report::Metric;
use stackglass_report::call_tree::StateFilter;

/// The flags of every verb that counts time. CPU time is the default.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct StateFlags {
    /// Count threads that are asleep or ready as well, not only CPU time
    #[arg(long, conflicts_with = "asleep")]
    pub(crate) wall: bool,

    /// Count only threads that are asleep
    #[arg(long)]
    pub(crate) asleep: bool,
}

impl StateFlags {
    /// The states that are counted.
    pub(crate) fn states(self) -> StateFilter {
        match self {
            StateFlags { wall: true, .. } => StateFilter::All,
            StateFlags { asleep: true, .. } => StateFilter::Asleep,
            _ => StateFilter::Awake,
        }
    }

    /// Whether one of the flags was given.
    pub(crate) fn given(self) -> bool {
        self.wall || self.asleep
    }

    /// What counts the samples that there are, where these flags count none.
    pub(crate) fn hint(self, recording: &Recording) -> &'static str {
        let is_of_tasks = recording.samples.iter().any(|sample| sample.state == State::Task);
        match self.states() {
            StateFilter::Asleep if is_of_tasks => {
                "; this is a profile of tasks by wall time, whose waits count without --asleep"
            }
            StateFilter::Awake => "; --wall counts sleeping threads as well",
            _ => "",
        }
    }

    /// The states for a metric. Allocations count as samples of running threads.
    ///
    /// # Errors
    /// If a flag was given for a metric of allocations.
    pub(crate) fn of_metric(self, metric: Metric) -> Result<StateFilter, Failure> {
        match metric {
            Metric::Time => Ok(self.states()),
            _ if self.given() => {
                let flag = if self.wall { "--wall" } else { "--asleep" };
                let line = format!("{flag} counts time: it cannot be combined with --metric {metric}");
                Err(Failure { status: 2, line })
            }
            _ => Ok(StateFilter::Awake),
        }
    }
}
