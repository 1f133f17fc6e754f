//! How many samples a recording has, and how much time they stand for.

use stackglass_profile::{Nanos, Recording, Thread};

/// The samples of a recording by state.
#[derive(Clone, Copy, Default)]
pub(crate) struct SampleTotals {
    /// Samples on a CPU.
    pub(crate) on_cpu: u64,
    /// Their time.
    pub(crate) cpu: Nanos,
    /// Stacks of threads that were asleep or ready.
    pub(crate) others: u64,
}

impl SampleTotals {
    /// Counts them.
    pub(crate) fn from_recording(recording: &Recording) -> SampleTotals {
        let mut totals = SampleTotals::default();
        for sample in &recording.samples {
            match sample.state.uses_cpu() {
                true => {
                    totals.on_cpu += u64::from(sample.hits);
                    totals.cpu.0 = totals.cpu.0.saturating_add(sample.time.0);
                }
                false => totals.others += u64::from(sample.hits),
            }
        }
        totals
    }

    /// A line for people.
    pub(crate) fn text(self, without_times: bool, of_tasks: bool) -> String {
        match self {
            SampleTotals { on_cpu, cpu, .. } if of_tasks => {
                format!("{on_cpu} in {} of wall time of tasks", seconds(cpu))
            }
            _ if without_times => (self.on_cpu + self.others).to_string(),
            SampleTotals { on_cpu, cpu, others: 0 } => format!("{on_cpu} in {} of CPU time", seconds(cpu)),
            SampleTotals { on_cpu, cpu, others } => {
                format!(
                    "{on_cpu} in {} of CPU time; {others} stacks of threads asleep or ready",
                    seconds(cpu)
                )
            }
        }
    }
}

/// A time in seconds.
pub(crate) fn seconds(time: Nanos) -> String {
    format!("{:.3} s", time.seconds())
}

/// CPU time of a thread; `None` in profiles of tasks, which do not measure it.
pub(crate) fn thread_cpu(recording: &Recording, thread: &Thread) -> Option<Nanos> {
    Some(thread.cpu).filter(|cpu| cpu.0 > 0 || !recording.is_walltime())
}
