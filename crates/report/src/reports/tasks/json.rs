//! Tasks for programs, as documented in `docs/json.md`.

use super::groups::groups;
use super::{origins, threads};
use crate::text::json::Object;
use stackglass_profile::task_dump::{AwaitFrame, AwaitPoint, TaskDump, TaskState, WaitTarget};
use std::io::{self, Write};

/// Writes the tasks of a process as one object.
///
/// # Errors
/// When writing fails.
pub fn write_json(dump: &TaskDump, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", object(dump).end())
}

/// The tasks of a process as an object.
pub fn object(dump: &TaskDump) -> Object {
    let runtime = dump.runtimes.first().map(|runtime| &*runtime.name);
    let groups = groups(dump).into_iter().map(|group| {
        let ids = group.tasks.iter().map(|task| dump.tasks[*task].id).filter(|id| *id != 0);
        let tid = match group.state {
            TaskState::BlockOn(tid) => Some(u64::from(tid)),
            _ => None,
        };
        Object::new()
            .number("count", group.tasks.len() as u64)
            .raw("ids", numbers(ids))
            .text("state", group.state.word())
            .text("name", &group.name)
            .number_or_null("tid", tid)
            .raw("stack", branches(group.stack))
            .text("source", origins::source_word(group.source))
            .number_or_null("waited", group.waited.map(|time| time.0))
            .texts("given_names", origins::given_names(dump, &group))
            .list("created", origins::created(dump, &group).into_iter().map(origins::place_object))
            .raw("thread", threads::object(dump, &group).map_or("null".to_owned(), Object::end))
    });
    let name = |index: &usize| dump.tasks[*index].id;
    let deadlocks = dump.deadlocks.iter().map(|deadlock| {
        let via: Vec<String> = deadlock.via.iter().map(|target| target_text(*target)).collect();
        Object::new()
            .raw("tasks", numbers(deadlock.tasks.iter().map(name)))
            .texts("via", via.iter().map(String::as_str))
            .flag("certain", deadlock.is_certain)
    });
    let locks = dump.locks.iter().map(|lock| {
        let holders = lock.holders.iter().map(|holder| {
            let line = holder.line.as_ref();
            Object::new()
                .number("task", dump.tasks[holder.task].id)
                .text_or_null("file", line.map(|(file, _)| &**file))
                .number_or_null("line", line.map(|(_, line)| u64::from(*line)))
                .flag("described", holder.is_described)
                .flag("certain", holder.is_certain)
        });
        Object::new()
            .text("kind", lock.kind.name())
            .text("address", &format!("{:#x}", lock.address))
            .list("holders", holders)
            .raw("waiters", numbers(lock.waiters.iter().map(name)))
    });
    Object::new()
        .number("pid", u64::from(dump.pid))
        .text_or_null("runtime", runtime)
        .texts("runtimes", dump.runtimes.iter().map(|runtime| &*runtime.name))
        .number("tasks", dump.count() as u64)
        .list("groups", groups)
        .raw("blocking", numbers(dump.blocking().iter().map(name)))
        .list("deadlocks", deadlocks)
        .list("locks", locks)
        .number("pause", dump.pause.0)
        .texts("remarks", dump.remarks.iter().map(String::as_str))
}

/// `Mutex 0x7f00`, `task 12`.
pub(super) fn target_text(target: WaitTarget) -> String {
    match target {
        WaitTarget::Task(id) => format!("task {id}"),
        WaitTarget::Shared { kind, address } => format!("{} {address:#x}", kind.name()),
    }
}

fn numbers(numbers: impl Iterator<Item = u64>) -> String {
    let numbers: Vec<String> = numbers.map(|number| number.to_string()).collect();
    format!("[{}]", numbers.join(","))
}

/// A stack, outermost frame first. Where it branches, the last element has the branches.
fn branches(frames: &[AwaitFrame]) -> String {
    let mut elements = Vec::new();
    let mut now = frames;
    while let [frame] = now {
        elements.push(frame_object(frame).end());
        now = &frame.children;
    }
    if !now.is_empty() {
        let branches: Vec<String> =
            now.iter().map(|frame| self::branches(std::slice::from_ref(frame))).collect();
        elements.push(Object::new().raw("branches", format!("[{}]", branches.join(","))).end());
    }
    format!("[{}]", elements.join(","))
}

fn frame_object(frame: &AwaitFrame) -> Object {
    let (file, line, note) = match &frame.point {
        AwaitPoint::Await(Some((file, line))) => (Some(&**file), Some(u64::from(*line)), None),
        AwaitPoint::Await(None) => (None, None, None),
        AwaitPoint::NotStarted => (None, None, Some("not started".to_owned())),
        AwaitPoint::Finished => (None, None, Some("finished".to_owned())),
        AwaitPoint::Leaf => (None, None, Some("leaf".to_owned())),
        AwaitPoint::Lost(why) => (None, None, Some(format!("not followed: {why}"))),
    };
    let object = Object::new()
        .text("function", &frame.function)
        .text_or_null("file", file)
        .number_or_null("line", line);
    match note {
        Some(note) => object.text("note", &note),
        None => object,
    }
}
