//! A peek for programs, as documented in `docs/json.md`: the stacks of all threads now, and the profile.

use super::threads::activity_of;
use crate::reports::{summary, tasks};
use crate::text::json::Object;
use foldhash::{HashMap, HashSet};
use stackglass_profile::task_dump::TaskDump;
use stackglass_profile::{Activity, Recording, Sample};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// What all threads do: an object for each, those with a stack first.
pub(super) fn threads(recording: &Recording, activity: &HashMap<u32, Activity>) -> Vec<Object> {
    let mut last: BTreeMap<u32, &Sample> = BTreeMap::new();
    for sample in &recording.samples {
        last.insert(sample.thread.0, sample);
    }
    let mut known = HashSet::default();
    let mut threads = Vec::new();
    for sample in last.values() {
        let Some(thread) = recording.thread(sample.thread) else { continue };
        known.insert(thread.tid);
        let stack = recording.stacks.walk(sample.stack);
        let stack = stack.flat_map(|location| recording.symbols.frames_of(location)).map(|frame| {
            let file = Some(&*frame.file).filter(|file| !file.is_empty());
            Object::new()
                .text("function", &frame.func)
                .text_or_null("file", file)
                .number_or_null("line", u64::try_from(frame.line).ok().filter(|line| *line > 0))
                .text("module", &frame.module)
        });
        let now = activity_of(recording, sample, activity.get(&thread.tid));
        let object = Object::new().number("tid", u64::from(thread.tid)).text("name", &thread.name);
        threads.push(state(object, &now).flag("complete", sample.cut.is_none()).list("stack", stack));
    }
    let mut others: Vec<_> = activity.iter().filter(|(tid, _)| !known.contains(tid)).collect();
    others.sort_by_key(|(tid, _)| **tid);
    threads.extend(others.into_iter().map(|(tid, now)| {
        let object = Object::new().number("tid", u64::from(*tid)).text("name", "");
        state(object, now).flag("complete", false).list("stack", [])
    }));
    threads
}

fn state(object: Object, now: &Activity) -> Object {
    let (word, call) = match now {
        Activity::Running => ("on CPU", None),
        Activity::Ready => ("ready", None),
        Activity::Asleep { call, .. } => ("asleep", call.as_deref()),
        Activity::Stopped => ("stopped", None),
    };
    object.text("state", word).text_or_null("call", call)
}

/// Writes a peek as one object.
///
/// # Errors
/// When writing fails.
pub fn write_json(
    pid: u32,
    threads: Vec<Object>,
    tasks: Option<&TaskDump>,
    profile: Option<&Recording>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut summary = Vec::new();
    if let Some(recording) = profile {
        summary::write_json(recording, false, &mut summary)?;
    }
    let summary = String::from_utf8_lossy(&summary);
    let object = Object::new().number("pid", u64::from(pid)).list("threads", threads);
    let object = object.raw("tasks", tasks.map_or("null".to_owned(), |dump| tasks::object(dump).end()));
    let profile = if summary.is_empty() { "null" } else { summary.trim_end() };
    writeln!(out, "{}", object.raw("profile", profile).end())
}
