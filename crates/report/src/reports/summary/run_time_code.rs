//! The note on code that a known runtime generates, such as node: its stacks are incomplete because the runtime does not
//! describe them.
//!
//! Such code is not always generated at run time: a library that was loaded a moment before is not known either. It is
//! attributed to a JIT compiler only if the process is known to have one.

use super::cut_reasons::is_complete;
use super::interpreters::{self, Runtime};
use super::shares::{self, NOTICEABLE};
use crate::text::numbers::percent_text;
use stackglass_profile::{Cut, ProcessIndex, Recording, Sample};
use std::collections::{BTreeMap, BTreeSet};

/// Processes of a runtime that generates code.
pub(super) fn processes(recording: &Recording) -> BTreeSet<ProcessIndex> {
    let all = recording.processes.iter().enumerate();
    let with_runtime = all.filter(|(_, process)| interpreters::runtime(recording, process).is_some());
    with_runtime.map(|(index, _)| ProcessIndex(index as u32)).collect()
}

/// Whether a stack is cut in code that a runtime has generated, or has in its own file like that: without unwind tables.
pub(super) fn is_cut_there(
    recording: &Recording,
    sample: &Sample,
    processes: &BTreeSet<ProcessIndex>,
) -> bool {
    (sample.cut == Some(Cut::NO_MODULE)
        || sample.cut == Some(Cut::NO_RULE) && !is_complete(recording, sample))
        && recording.thread(sample.thread).is_some_and(|thread| processes.contains(&thread.process))
}

/// The note, by the runtime with the most time in such code.
pub(super) fn note(recording: &Recording, cpu: u64) -> Option<String> {
    let processes = processes(recording);
    let mut times: BTreeMap<ProcessIndex, u64> = BTreeMap::new();
    for sample in recording.samples.iter().filter(|sample| sample.state.uses_cpu()) {
        if is_cut_there(recording, sample, &processes)
            && let Some(thread) = recording.thread(sample.thread)
        {
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
    let advice = runtime.remedy_for(process).map(|remedy| format!("; to have all, {remedy}"));
    Some(format!(
        "{} of {} is in code that {name} generates, without unwind tables: callers are found by frame pointers{}",
        percent_text(all, cpu),
        shares::whole(recording),
        advice.unwrap_or_default()
    ))
}
