//! Advice for code of no known file, depending on the runtime that generates such code.
//!
//! Such code is not always generated at run time: a library that was loaded a moment before is not known either. It is
//! attributed to a JIT compiler only if the process is known to have one.

use super::cut_reasons::CutReason;
use super::interpreters::{self, Runtime};
use stackglass_profile::{Cut, ProcessIndex, Recording};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Meaning and remedy for a recording, chosen by the process with the most time in such stacks.
pub(super) fn explained(
    recording: &Recording,
    reason: &'static CutReason,
) -> (Cow<'static, str>, &'static str) {
    let mut times: BTreeMap<ProcessIndex, u64> = BTreeMap::new();
    let samples = recording.samples.iter().filter(|sample| sample.state.uses_cpu());
    for sample in samples.filter(|sample| sample.cut == Some(Cut::NO_MODULE)) {
        if let Some(thread) = recording.thread(sample.thread) {
            *times.entry(thread.process).or_default() += sample.time.0;
        }
    }
    let most = times.into_iter().max_by_key(|(process, time)| (*time, std::cmp::Reverse(*process)));
    let process = most.and_then(|(process, _)| recording.processes.get(process.0 as usize));
    match process.and_then(|process| interpreters::runtime(recording, process)) {
        // A report without the hint has the names, but not all callers.
        Some(runtime @ Runtime { name, .. }) => {
            let remedy = if interpreters::hint(recording).is_some() { "" } else { runtime.remedy() };
            (format!("in code of no known file, such as {name} generates at run time").into(), remedy)
        }
        None => (reason.meaning.into(), reason.remedy),
    }
}
