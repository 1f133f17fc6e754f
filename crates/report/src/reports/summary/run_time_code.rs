//! The note on code that a known runtime generates, such as node: its stacks are incomplete because the runtime does not
//! describe them.
//!
//! Such code is not always generated at run time: a library that was loaded a moment before is not known either. It is
//! attributed to a JIT compiler only if the process is known to have one.

use super::interpreters::{self, Runtime};
use super::notes::NOTICEABLE;
use crate::text::numbers::percent_text;
use stackglass_profile::{Cut, ProcessIndex, Recording};
use std::collections::BTreeMap;

/// The note, if the process with the most time in code of no known file has such a runtime.
pub(super) fn note(recording: &Recording, cpu: u64) -> Option<String> {
    let mut times: BTreeMap<ProcessIndex, u64> = BTreeMap::new();
    let samples = recording.samples.iter().filter(|sample| sample.state.uses_cpu());
    for sample in samples.filter(|sample| sample.cut == Some(Cut::NO_MODULE)) {
        if let Some(thread) = recording.thread(sample.thread) {
            *times.entry(thread.process).or_default() += sample.time.0;
        }
    }
    let all: u64 = times.values().sum();
    if (all as f64) < cpu as f64 * NOTICEABLE || all == 0 {
        return None;
    }
    let (process, _) =
        times.into_iter().max_by_key(|(process, time)| (*time, std::cmp::Reverse(*process)))?;
    let process = recording.processes.get(process.0 as usize)?;
    let runtime @ Runtime { name, .. } = interpreters::runtime(recording, process)?;
    let share = percent_text(all, cpu);
    Some(match interpreters::hint(recording) {
        Some(_) => {
            format!("{share} of CPU time is in code that {name} generates; the first line says what names it")
        }
        // The functions have names, but not all callers.
        None => {
            format!(
                "{share} of CPU time is in code that {name} generates, without its callers: {}",
                runtime.remedy()
            )
        }
    })
}
