//! Threads that poll tasks or run functions of `spawn_blocking`: their stacks, and the tasks that block their worker.

use super::TasksText;
use super::groups::TaskGroup;
use super::lines::{INDENT, NAMED, PLACE, ShownFrame, note};
use crate::kinds;
use crate::reports::json_frame::JsonFrame;
use crate::text::columns::wrap;
use crate::text::numbers::{counted, duration_text, grouped};
use crate::text::style::{Line, Paint};
use serde::Serialize;
use stackglass_profile::task_dump::{AwaitFrame, AwaitPoint, PollingThread, TaskDump, TaskState};
use stackglass_profile::{Frame, Nanos};
use std::io::{self, Write};

/// Own frames of a thread in the short report.
const OWN_FRAMES: usize = 3;

/// Writes the tasks that block their worker, each with the stack of its thread.
pub(super) fn write_blocking(text: &TasksText, dump: &TaskDump, out: &mut dyn Write) -> io::Result<()> {
    let blocking = dump.blocking();
    let most = if text.everything { usize::MAX } else { NAMED };
    for index in blocking.iter().take(most) {
        let task = &dump.tasks[*index];
        let Some(thread) = &task.thread else { continue };
        let lasts = duration_text(thread.polled_for.unwrap_or_default().0);
        let sentence = format!("task {} has been in one poll for over {lasts}", task.id);
        const LEAD: &str = "blocks its worker: ";
        for (number, part) in wrap(&sentence, text.cols.saturating_sub(LEAD.len())).into_iter().enumerate() {
            let mut line = Line::new();
            line.push(Paint::Red, if number == 0 { LEAD } else { "  " }).push(Paint::Bold, part);
            line.write(text.style, out)?;
        }
        write_stack(text, thread, out)?;
    }
    if blocking.len() > most {
        let more = counted((blocking.len() - most) as u64, "more task blocks", "more tasks block");
        Line::from_text(Paint::Grey, format!("  and {more} a worker: {} them", text.rest))
            .cut(text.cols)
            .write(text.style, out)?;
    }
    Ok(())
}

/// Writes the pools whose threads all run functions, while others wait.
pub(super) fn write_pools(text: &TasksText, dump: &TaskDump, out: &mut dyn Write) -> io::Result<()> {
    for pool in dump.pools.iter().filter(|pool| pool.is_exhausted && pool.queued > 0) {
        let busy = pool.busy.map_or_else(|| "all".to_owned(), grouped);
        let queued = grouped(pool.queued);
        let verb = if pool.queued == 1 { "waits" } else { "wait" };
        let mut line = Line::new();
        line.push(Paint::Red, "blocking pool exhausted: ")
            .push(Paint::Bold, format!("{busy} busy, {queued} {verb}"));
        line.cut(text.cols).write(text.style, out)?;
    }
    Ok(())
}

/// Writes what is known of the thread of a group's tasks.
pub(super) fn write_thread(
    text: &TasksText,
    dump: &TaskDump,
    group: &TaskGroup<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let running = group.state == TaskState::Running;
    let Some(thread) = group.thread else {
        return match group.state {
            TaskState::Running => note(text, "a thread polls it: `stackglass peek` shows all threads", out),
            TaskState::Blocking => note(text, "a function of spawn_blocking, on a thread of its own", out),
            TaskState::Queued => note(text, "a function of spawn_blocking that waits for a thread", out),
            _ => Ok(()),
        };
    };
    let blocking = dump.blocking();
    let said = if text.everything { usize::MAX } else { NAMED };
    let is_said = group.tasks.iter().all(|task| blocking.iter().take(said).any(|index| index == task));
    if is_said {
        return note(text, &format!("on thread {}: see above", thread.tid), out);
    }
    let others = match group.tasks.len() {
        1 => format!("on thread {}", thread.tid),
        count => format!("on thread {} and {} more", thread.tid, count - 1),
    };
    let lasts = match (polled_for(dump, group), thread.is_in_place()) {
        (Some(lasts), true) => {
            let lasts = duration_text(lasts.0);
            format!(", for over {lasts} in block_in_place: its worker's other tasks have another thread")
        }
        (Some(lasts), false) => format!(", in one poll for over {}", duration_text(lasts.0)),
        (None, _) if running && thread.seen_again => {
            ", also in a second look; it may have returned between the two".to_owned()
        }
        _ => String::new(),
    };
    note(text, &(others + &lasts), out)?;
    write_stack(text, thread, out)
}

/// Writes a stack, outermost frame first: the innermost frames of the user, and what the last of them calls.
fn write_stack(text: &TasksText, thread: &PollingThread, out: &mut dyn Write) -> io::Result<()> {
    let own = thread.stack.iter().filter(|frame| is_own(frame)).count();
    if !text.everything && own > OWN_FRAMES {
        let more = counted((own - OWN_FRAMES) as u64, "frame", "frames");
        note(text, &format!("{:PLACE$} … {more} further out", ""), out)?;
    }
    for frame in shown_frames(text, thread) {
        let lead = Line::from_text(Paint::Normal, " ".repeat(INDENT));
        let (frame, is_grey) = (&frame.0, !frame.1);
        ShownFrame { frame, is_grey, folded: 0, more: "", own: "", below: "" }.write(text, lead, out)?;
    }
    Ok(())
}

/// These frames, outermost first, and whether they are the user's own.
pub(super) fn shown_frames(text: &TasksText, thread: &PollingThread) -> Vec<(AwaitFrame, bool)> {
    let frames = &thread.stack;
    let own: Vec<usize> = (0..frames.len()).filter(|number| is_own(&frames[*number])).collect();
    let shown: Vec<usize> = match (text.everything, own.first()) {
        (true, _) => (0..frames.len()).collect(),
        (false, None) => (0..frames.len().min(2)).collect(),
        (false, Some(innermost)) => {
            innermost.checked_sub(1).into_iter().chain(own.iter().copied().take(OWN_FRAMES)).collect()
        }
    };
    let frame = |number: usize| {
        let Frame { func, file, line, .. } = &frames[number];
        let line = u32::try_from(*line).ok().filter(|line| *line > 0);
        let frame = AwaitFrame {
            function: if func.is_empty() { "(unknown function)".into() } else { func.clone() },
            point: AwaitPoint::Await(line.map(|line| (file.clone(), line))),
            children: Vec::new(),
            is_race: false,
        };
        (frame, is_own(&frames[number]))
    };
    shown.into_iter().rev().map(frame).collect()
}

/// How long the polls of all tasks of a group last at least.
fn polled_for(dump: &TaskDump, group: &TaskGroup<'_>) -> Option<Nanos> {
    let threads = group.tasks.iter().filter_map(|task| dump.tasks[*task].thread.as_ref());
    threads.map(|thread| thread.polled_for).min().flatten()
}

/// The innermost frame of the user's own code.
pub(super) fn innermost_own(thread: &PollingThread) -> Option<&Frame> {
    thread.stack.iter().find(|frame| is_own(frame))
}

/// Whether a frame is of the user's own code.
fn is_own(frame: &Frame) -> bool {
    !frame.foreign
        && frame.line > 0
        && kinds::class(frame) == kinds::Class::Own
        && !kinds::is_dependency(&frame.file)
}

/// A thread for programs.
#[derive(Serialize)]
pub(super) struct JsonThread<'a> {
    tid: u32,
    tids: Vec<u32>,
    stack: Vec<JsonFrame<'a>>,
    polled_for: Option<u64>,
    seen_again: bool,
    in_place: bool,
}

/// The thread of a group's tasks for programs.
pub(super) fn json<'a>(dump: &TaskDump, group: &TaskGroup<'a>) -> Option<JsonThread<'a>> {
    let thread = group.thread?;
    let of_task = |task: &usize| dump.tasks[*task].thread.as_ref();
    Some(JsonThread {
        tid: thread.tid,
        tids: group.tasks.iter().filter_map(of_task).map(|thread| thread.tid).collect(),
        stack: thread.stack.iter().map(JsonFrame::from).collect(),
        polled_for: polled_for(dump, group).map(|time| time.0),
        seen_again: thread.seen_again,
        in_place: thread.is_in_place(),
    })
}
