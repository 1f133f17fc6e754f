//! A peek for programs, as documented in `docs/json.md`: the stacks of all threads now, and the profile.

use super::threads::activity_of;
use super::waits;
use crate::reports::json_frame::JsonFrame;
use crate::reports::{summary, tasks};
use crate::text::json;
use foldhash::{HashMap, HashSet};
use serde::Serialize;
use stackglass_profile::task_dump::TaskDump;
use stackglass_profile::thread_waits::ThreadWaits;
use stackglass_profile::{Activity, Recording, Sample};
use std::collections::BTreeMap;
use std::io::{self, Write};

#[derive(Serialize)]
struct Report<'a> {
    pid: u32,
    threads: Vec<Thread<'a>>,
    waits: Vec<waits::JsonWait<'a>>,
    deadlocks: Vec<waits::JsonDeadlock<'a>>,
    tasks: Option<tasks::JsonTasks<'a>>,
    profile: Option<summary::JsonSummary<'a>>,
}

#[derive(Serialize)]
struct Thread<'a> {
    tid: u32,
    name: &'a str,
    state: &'static str,
    call: Option<String>,
    complete: bool,
    stack: Vec<JsonFrame<'a>>,
}

/// Writes a peek as one object: the last stacks of all threads and what they do, by kernel thread id; which threads wait for
/// which others; the tasks; and the profile.
///
/// # Errors
/// When writing fails.
pub fn write_json(
    pid: u32,
    threads: Option<(&Recording, &HashMap<u32, Activity>)>,
    waits: &ThreadWaits,
    tasks: Option<&TaskDump>,
    profile: Option<&Recording>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (waits, deadlocks) = waits::json(waits);
    let report = Report {
        pid,
        waits,
        deadlocks,
        threads: threads.map_or(Vec::new(), |(recording, activity)| of_threads(recording, activity)),
        tasks: tasks.map(tasks::JsonTasks),
        profile: profile.map(|recording| summary::JsonSummary { recording, everything: false }),
    };
    json::write(&report, out)
}

/// What all threads do, those with a stack first.
fn of_threads<'a>(recording: &'a Recording, activity: &HashMap<u32, Activity>) -> Vec<Thread<'a>> {
    let mut last: BTreeMap<u32, &Sample> = BTreeMap::new();
    for sample in &recording.samples {
        last.insert(sample.thread.0, sample);
    }
    let mut known = HashSet::default();
    let mut threads = Vec::new();
    for sample in last.values() {
        let Some(thread) = recording.thread(sample.thread) else { continue };
        known.insert(thread.tid);
        let now = activity_of(recording, sample, activity.get(&thread.tid));
        let stack = recording.stacks.walk(sample.stack);
        let frames = stack.flat_map(|location| recording.symbols.frames_of(location));
        threads.push(Thread {
            name: &thread.name,
            complete: sample.cut.is_none(),
            stack: frames.map(JsonFrame::from).collect(),
            ..Thread::without_stack(thread.tid, &now)
        });
    }
    let mut others: Vec<_> = activity.iter().filter(|(tid, _)| !known.contains(tid)).collect();
    others.sort_by_key(|(tid, _)| **tid);
    threads.extend(others.into_iter().map(|(tid, now)| Thread::without_stack(*tid, now)));
    threads
}

impl Thread<'_> {
    fn without_stack(tid: u32, now: &Activity) -> Thread<'static> {
        let (state, call) = match now {
            Activity::Running => ("on CPU", None),
            Activity::Ready => ("ready", None),
            Activity::Asleep { call, .. } => ("asleep", call.as_deref()),
            Activity::Stopped => ("stopped", None),
        };
        let call = call.map(str::to_owned);
        Thread { tid, name: "", state, call, complete: false, stack: Vec::new() }
    }
}
