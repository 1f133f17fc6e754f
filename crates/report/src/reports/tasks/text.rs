//! Tasks as text.

use super::TasksText;
use super::groups::{TaskGroup, groups, is_library};
use super::json::without_waker;
use super::lines::{INDENT, NAMED, ShownFrame, note, place_text};
use super::{origins, threads, tree, waits};
use crate::text::columns::{cut_left, wrap};
use crate::text::numbers::{counted, duration_text, grouped, pause_text};
use crate::text::short::{last_name, short_function};
use crate::text::style::{Line, Paint};
use stackglass_profile::task_dump::{
    AsyncRuntime, AwaitFrame, AwaitPoint, Deadlock, Holder, Lock, SharedKind, TaskDump, TaskState, WaitTarget,
};
use stackglass_profile::{Nanos, sanitize};
use std::io::{self, Write};

/// Most groups of the short report.
const GROUPS: usize = 20;

pub(super) fn write(text: &TasksText, dump: &TaskDump, tree: bool, out: &mut dyn Write) -> io::Result<()> {
    let groups = groups(dump);
    let of_tasks = groups.iter().filter(|group| !matches!(group.state, TaskState::BlockOn(_)));
    let whole_out = out;
    let mut begin = Vec::new();
    let out: &mut dyn Write = &mut begin;
    head(text, dump, of_tasks.count(), out)?;
    for deadlock in dump.deadlocks.iter().take(if text.everything { usize::MAX } else { NAMED }) {
        write_deadlock(text, dump, deadlock, out)?;
    }
    if dump.deadlocks.iter().any(|deadlock| !deadlock.is_certain) {
        let note = "  It is none if a guard was given to drop(), or if a branch of try_join! fails.";
        Line::from_text(Paint::Grey, note).cut(text.cols).write(text.style, out)?;
    }
    write_without_waker(text, dump, out)?;
    threads::write_blocking(text, dump, out)?;
    threads::write_pools(text, dump, out)?;
    let mut end = Vec::new();
    origins::write_sources(text, dump, &mut end)?;
    let out = whole_out;
    out.write_all(&begin)?;
    if tree {
        tree::write(text, dump, &groups, out)?;
        return out.write_all(&end);
    }
    // The line about more groups, an empty line before it, and the shell's prompt.
    let around = lines_of(&begin) + lines_of(&end) + 3;
    let mut lines_left = match text.everything {
        true => usize::MAX,
        false => text.rows.map_or(usize::MAX, |rows| rows.saturating_sub(around)),
    };
    let most = if text.everything { usize::MAX } else { GROUPS };
    let written = groups.iter().take(most).map(|group| {
        let mut buffer = Vec::new();
        write_group(text, dump, group, &mut buffer).map(|()| buffer)
    });
    let written = written.collect::<io::Result<Vec<Vec<u8>>>>()?;
    let lines: usize = written.iter().map(|buffer| lines_of(buffer)).sum();
    // If not all fit a screen, half of it has groups in one line each.
    let is_short = text.rows.is_some() && lines > lines_left;
    let mut for_whole = if is_short { lines_left / 2 } else { lines_left };
    let mut shown = 0;
    for buffer in written {
        let lines = lines_of(&buffer);
        if lines > for_whole && shown > 0 {
            break;
        }
        for_whole = for_whole.saturating_sub(lines);
        lines_left = lines_left.saturating_sub(lines);
        out.write_all(&buffer)?;
        shown += 1;
    }
    if is_short && shown < groups.len() && lines_left > 2 {
        out.write_all(b"\n")?;
        for group in groups[shown..].iter().take(lines_left - 1) {
            one_line(text, group).write(text.style, out)?;
            shown += 1;
        }
    }
    let rest: usize = groups[shown..].iter().map(|group| group.tasks.len()).sum();
    if rest > 0 {
        out.write_all(b"\n")?;
        let more = counted((groups.len() - shown) as u64, "more group", "more groups");
        let tasks = counted(rest as u64, "task", "tasks");
        let sentence = format!("{more} with {tasks}: {} them, --tree one tree of all", text.rest);
        for line in wrap(&sentence, text.cols) {
            Line::from_text(Paint::Grey, line).write(text.style, out)?;
        }
    }
    out.write_all(&end)
}

fn lines_of(text: &[u8]) -> usize {
    text.iter().filter(|byte| **byte == b'\n').count()
}

/// `app (1234): 2 003 tasks, 2 001 wait at 2 places · tokio 1.54.1, multi-thread`.
fn head(text: &TasksText, dump: &TaskDump, groups: usize, out: &mut dyn Write) -> io::Result<()> {
    let tasks = dump.count();
    let states = [
        (TaskState::Waiting, "waiting"),
        (TaskState::Ready, "ready"),
        (TaskState::Running, "running"),
        (TaskState::Blocking, "blocking"),
        (TaskState::Queued, "queued"),
        (TaskState::Finished, "finished"),
    ];
    let counts: Vec<String> = states
        .iter()
        .map(|(state, word)| (dump.tasks.iter().filter(|task| task.state == *state).count(), word))
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{} {word}", grouped(count as u64)))
        .collect();
    let first = format!("{}: {}", sanitize(&dump.program), counted(tasks as u64, "task", "tasks"));
    let counts = if counts.is_empty() { String::new() } else { format!(" ({})", counts.join(", ")) };
    let sentence = format!("{first}{counts} in {}", counted(groups as u64, "group", "groups"));
    for (number, part) in wrap(&sentence, text.cols).into_iter().enumerate() {
        let mut line = Line::new();
        match part.strip_prefix(&first).filter(|_| number == 0) {
            Some(rest) => line.push(Paint::Bold, &first).plain(rest),
            None if number == 0 => line.push(Paint::Bold, part),
            None => line.plain(part),
        };
        line.cut(text.cols).write(text.style, out)?;
    }
    if !dump.runtimes.is_empty() {
        let sentence = format!("{}; {}", runtimes_text(dump), pause_text(dump.pause.0));
        for line in wrap(&sentence, text.cols) {
            Line::from_text(Paint::Grey, line).write(text.style, out)?;
        }
    }
    Ok(())
}

/// `tokio 1.54.1, multi-thread; 8 of tokio 1.54.1, current-thread`.
fn runtimes_text(dump: &TaskDump) -> String {
    let mut kinds: Vec<(&str, usize)> = Vec::new();
    for AsyncRuntime { name } in &dump.runtimes {
        match kinds.iter_mut().find(|(known, _)| known == name) {
            Some((_, count)) => *count += 1,
            None => kinds.push((name, 1)),
        }
    }
    let texts = kinds.into_iter().map(|(name, count)| match count {
        1 => name.to_owned(),
        _ => format!("{} of {name}", grouped(count as u64)),
    });
    texts.collect::<Vec<_>>().join("; ")
}

/// `deadlock: task 12 (app::a) waits for Mutex 0x10, held by task 15 (app::b), which waits …`.
fn write_deadlock(
    text: &TasksText,
    dump: &TaskDump,
    deadlock: &Deadlock,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut of = match deadlock.tasks.len() {
        1 => "a task waits for itself".to_owned(),
        count => format!("{count} tasks wait for each other"),
    };
    if !deadlock.is_certain {
        of += ", unless other code ends a wait";
    }
    let mut line = Line::new();
    let word = if deadlock.is_certain { "deadlock: " } else { "possible deadlock: " };
    line.push(Paint::Red, word).push(Paint::Bold, of);
    line.cut(text.cols).write(text.style, out)?;
    let next = deadlock.tasks.iter().cycle().skip(1);
    for ((task, other), via) in deadlock.tasks.iter().zip(next).zip(&deadlock.via).take(NAMED) {
        let what = match via {
            WaitTarget::Task(_) => format!("for {}", task_text(dump, *other, false)),
            WaitTarget::Shared { kind, .. } if task == other => match kind {
                SharedKind::EmptyChannel | SharedKind::Oneshot | SharedKind::Watch => {
                    format!("for the {} of which it has the sender", kind.name())
                }
                SharedKind::FullChannel => "for the full channel of which it has the receiver".to_owned(),
                _ => format!("for the {} that it holds", kind.name()),
            },
            WaitTarget::Shared { kind, .. } => {
                format!("for the {} of {}", kind.name(), task_text(dump, *other, false))
            }
        };
        let sentence = format!("{} waits {what}", task_text(dump, *task, true));
        for (number, part) in wrap(&sentence, text.cols.saturating_sub(4)).into_iter().enumerate() {
            let indent = if number == 0 { "  " } else { "    " };
            Line::from_text(Paint::Normal, format!("{indent}{part}")).write(text.style, out)?;
        }
    }
    if deadlock.tasks.len() > NAMED {
        let more = deadlock.tasks.len() - NAMED;
        Line::from_text(Paint::Grey, format!("  and so on: {more} more tasks")).write(text.style, out)?;
    }
    Ok(())
}

/// `nothing can wake task 12 (worker, main.rs:31)`.
fn write_without_waker(text: &TasksText, dump: &TaskDump, out: &mut dyn Write) -> io::Result<()> {
    let tasks: Vec<usize> = without_waker(dump).collect();
    let most = if text.everything { usize::MAX } else { NAMED };
    for task in tasks.iter().take(most) {
        let sentence = format!("nothing can wake {}: no waker of it is left", task_text(dump, *task, true));
        for (number, part) in wrap(&sentence, text.cols.saturating_sub(2)).into_iter().enumerate() {
            let indent = if number == 0 { "" } else { "  " };
            Line::from_text(Paint::Red, format!("{indent}{part}")).write(text.style, out)?;
        }
    }
    if tasks.len() > most {
        let more = counted((tasks.len() - most) as u64, "more task", "more tasks");
        let line = format!("  nor {more}: {} them", text.rest);
        Line::from_text(Paint::Grey, line).cut(text.cols).write(text.style, out)?;
    }
    Ok(())
}

/// `task 12 (worker, main.rs:31)`: the function and the line are those of the innermost `.await` in the user's code that has all
/// branches of the task.
fn task_text(dump: &TaskDump, index: usize, with_line: bool) -> String {
    let task = &dump.tasks[index];
    let own =
        above_branches(&task.stack).or_else(|| innermost_own(&task.stack)).map(|frame| match &frame.point {
            AwaitPoint::Await(Some((file, line))) => (last_name(&frame.function), place_text(file, *line)),
            _ => (last_name(&frame.function), String::new()),
        });
    let (function, place) = own.unwrap_or((last_name(&task.name), String::new()));
    let inside = match with_line && !place.is_empty() {
        true => format!("{}, {place}", sanitize(function)),
        false => sanitize(function).into_owned(),
    };
    match task.state {
        TaskState::BlockOn(tid) => format!("block_on of thread {tid} ({inside})"),
        _ => format!("task {} ({inside})", task.id),
    }
}

/// The innermost `.await` in the user's code before the stack branches.
fn above_branches(frames: &[AwaitFrame]) -> Option<&AwaitFrame> {
    let (mut now, mut found) = (frames, None);
    while let [frame] = now {
        if matches!(frame.point, AwaitPoint::Await(Some(_))) && !is_library(frame) {
            found = Some(frame);
        }
        now = &frame.children;
    }
    found
}

/// The innermost `.await` in the user's code, in the first branch that has one.
fn innermost_own(frames: &[AwaitFrame]) -> Option<&AwaitFrame> {
    for frame in frames {
        if let Some(inner) = innermost_own(&frame.children) {
            return Some(inner);
        }
        if matches!(frame.point, AwaitPoint::Await(Some(_))) && !is_library(frame) {
            return Some(frame);
        }
    }
    None
}

/// `, held by task 15 at main.rs:40`. Without a line of the guard, the task's function and line tell which task it is.
pub(super) fn holders_text(dump: &TaskDump, lock: &Lock) -> String {
    if is_channel(lock.kind) {
        return ends_text(dump, lock);
    }
    let name = |holder: &Holder| match dump.tasks[holder.task].state {
        _ if holder.line.is_none() => task_text(dump, holder.task, true),
        TaskState::BlockOn(tid) => format!("block_on of thread {tid}"),
        _ => format!("task {}", dump.tasks[holder.task].id),
    };
    let place = |holder: &Holder| {
        let place = holder.line.as_ref().map(|(file, line)| format!(" at {}", place_text(file, *line)));
        place.unwrap_or_default()
    };
    let has_one = matches!(lock.kind, SharedKind::Mutex | SharedKind::OtherMutex | SharedKind::BlockingMutex);
    match &lock.holders[..] {
        [] => String::new(),
        [one] if one.is_certain => format!(", held by {}{}", name(one), place(one)),
        [one, other] if lock.holders.iter().all(|holder| holder.is_certain) => {
            format!(", held by {} and {}", name(one), name(other))
        }
        [one, rest @ ..] if lock.holders.iter().all(|holder| holder.is_certain) => {
            format!(", held by {} and {} more", name(one), rest.len())
        }
        [one] => {
            format!(", probably held by {}{}", name(one), place(one))
        }
        // Guards that are moved away look like those that are not, and a mutex has one holder.
        [one, other] if has_one => {
            format!(", probably held by {} or {}", name(one), name(other))
        }
        [one, rest @ ..] if has_one => {
            format!(", probably held by {} or one of {} others", name(one), rest.len())
        }
        [one, rest @ ..] => format!(", probably held by {} and {} more", name(one), rest.len()),
    }
}

fn is_channel(kind: SharedKind) -> bool {
    use SharedKind::{Barrier, EmptyChannel, FullChannel, Notify, Oneshot, Watch};
    matches!(kind, Barrier | EmptyChannel | FullChannel | Notify | Oneshot | Watch)
}

/// `, whose sender is in task 5 (serve, main.rs:31)`.
fn ends_text(dump: &TaskDump, lock: &Lock) -> String {
    let arrived =
        lock.arrived.map(|(arrived, all)| format!(" ({arrived} of {all} arrived)")).unwrap_or_default();
    let end = match lock.kind {
        SharedKind::FullChannel => Some("receiver"),
        SharedKind::EmptyChannel | SharedKind::Oneshot | SharedKind::Watch => Some("sender"),
        _ => None,
    };
    let all_certain = lock.holders.iter().all(|holder| holder.is_certain);
    let probably = if all_certain { "" } else { "probably " };
    let seen = lock.holders.len();
    let tasks = match &lock.holders[..] {
        [] => String::new(),
        [one] => task_text(dump, one.task, true),
        [one, other] => {
            format!("{} and {}", task_text(dump, one.task, true), task_text(dump, other.task, false))
        }
        [one, rest @ ..] => {
            format!("{} and {} more", task_text(dump, one.task, true), grouped(rest.len() as u64))
        }
    };
    let text = match (end, lock.ends) {
        (Some(_), None) if seen == 0 => String::new(),
        (Some(end), Some(0)) => format!(", all of whose {end}s are gone"),
        (Some(end), Some(1)) if seen == 0 => format!(", whose {end} is in no task that is read"),
        (Some(end), Some(all)) if seen == 0 => {
            format!(", whose {} {end}s are in no task that is read", grouped(all))
        }
        (Some(end), _) if lock.holders.iter().any(|holder| holder.is_shared) => {
            let verb = if seen == 1 { "has" } else { "have" };
            format!(", whose {end} {tasks} {probably}{verb} in an Arc")
        }
        (Some(end), Some(all)) if seen > 0 && all > 1 && (seen as u64) < all => {
            let some = if seen == 1 { "one" } else { "some" };
            let verb = if seen == 1 { "is" } else { "are" };
            format!(", {some} of whose {} {end}s {verb} {probably}in {tasks}", grouped(all))
        }
        (Some(end), _) if seen == 1 => format!(", whose {end} is {probably}in {tasks}"),
        (Some(end), _) => format!(", whose {end}s are {probably}in {tasks}"),
        (None, Some(0)) => ", which nothing else has".to_owned(),
        (None, _) if seen == 0 => String::new(),
        (None, _) => {
            let verb = if seen == 1 { "has" } else { "have" };
            format!(", which {tasks} {probably}{verb}, too")
        }
    };
    arrived + &text
}

/// A group in one line.
fn one_line(text: &TasksText, group: &TaskGroup<'_>) -> Line {
    let mut line = Line::from_text(Paint::Bold, format!("{:>INDENT$} ", grouped(group.tasks.len() as u64)));
    line.plain(format!("{} in ", group.state.word()));
    let place = sanitize(&group_place(group)).into_owned();
    let room = text.cols.saturating_sub(line.width());
    line.push(Paint::Cyan, cut_left(&place, room).into_owned());
    line
}

/// Where the tasks of a group are, in the user's code: `app::price (main.rs:42)`.
pub fn group_place(group: &TaskGroup<'_>) -> String {
    if let Some(frame) = group.thread.and_then(threads::innermost_own) {
        let line = u32::try_from(frame.line).unwrap_or_default();
        return format!("{} ({})", frame.func, place_text(&frame.file, line));
    }
    match innermost_own(group.stack) {
        Some(AwaitFrame { function, point: AwaitPoint::Await(Some((file, line))), .. }) => {
            format!("{function} ({})", place_text(file, *line))
        }
        Some(frame) => frame.function.to_string(),
        None => group.name.to_string(),
    }
}

/// What a group is called: the function of the user's code in which its tasks are, or else their own.
pub(super) fn group_name<'g>(group: &'g TaskGroup<'_>) -> &'g str {
    let of_thread = || group.thread.and_then(threads::innermost_own).map(|frame| &frame.func);
    let name = innermost_own(group.stack).map(|frame| &frame.function).or_else(of_thread);
    name.unwrap_or(&group.name)
}

pub(super) fn write_group(
    text: &TasksText,
    dump: &TaskDump,
    group: &TaskGroup<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    out.write_all(b"\n")?;
    let count = group.tasks.len() as u64;
    let mut line = Line::new();
    match group.state {
        TaskState::BlockOn(tid) => {
            line.push(Paint::Bold, format!("block_on of thread {tid}"));
        }
        state => {
            line.push(Paint::Bold, counted(count, "task", "tasks"));
            line.plain(format!(" {}", state.word()));
            if let Some(waited) = group.waited {
                line.plain(format!(" for up to {}", duration_text(waited.0)));
            } else if let Some(unpolled) = group.unpolled.filter(|time| is_long(*time)) {
                line.plain(format!(" for at least {}", duration_text(unpolled.0)));
            }
        }
    }
    let name = group_name(group);
    let room = text.cols.saturating_sub(line.width() + 4);
    line.plain(" in ").push(Paint::Cyan, short_function(&sanitize(name), room));
    let ids: Vec<u64> = group.tasks.iter().map(|task| dump.tasks[*task].id).filter(|id| *id != 0).collect();
    let ids = ids_text(&ids, text.everything);
    if !ids.is_empty() && line.width() + ids.len() + 2 <= text.cols {
        let space = text.cols - line.width() - ids.len();
        line.plain(" ".repeat(space)).push(Paint::Grey, &ids);
        line.write(text.style, out)?;
    } else {
        line.cut(text.cols).write(text.style, out)?;
        if !ids.is_empty() {
            note(text, &ids, out)?;
        }
    }
    write_frames(text, group.stack, "", out)?;
    if group.waited.is_none() && group.unpolled.is_none() {
        write_unpolled(text, dump, group, out)?;
    }
    write_timers(text, dump, group, out)?;
    threads::write_thread(text, dump, group, out)?;
    origins::write(text, dump, group, out)?;
    waits::write(text, dump, group, out)
}

/// Whether it is worth a word that tasks were not polled for this time. Each reading takes some of it.
fn is_long(unpolled: Nanos) -> bool {
    unpolled >= Nanos(1_000_000_000)
}

/// `3 of 12 tasks wait for at least 5.00 s (ids 4, 7, 9)`: those of a group of which it is known.
fn write_unpolled(
    text: &TasksText,
    dump: &TaskDump,
    group: &TaskGroup<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let known = |task: &&usize| dump.tasks[**task].unpolled.is_some_and(is_long);
    let tasks: Vec<usize> = group.tasks.iter().filter(known).copied().collect();
    let Some(time) = tasks.iter().filter_map(|task| dump.tasks[*task].unpolled).min() else { return Ok(()) };
    let ids: Vec<u64> = tasks.iter().map(|task| dump.tasks[*task].id).collect();
    let (some, all) = (grouped(tasks.len() as u64), grouped(group.tasks.len() as u64));
    let verb = if tasks.len() == 1 { "waits" } else { "wait" };
    let (time, ids) = (duration_text(time.0), ids_text(&ids, text.everything));
    note(text, &format!("{some} of {all} tasks {verb} for at least {time} ({ids})"), out)
}

/// `timer fires in 3.02 s`, `timers fire in 3.02 s to 60.0 s`: the first timers of the tasks of a group.
fn write_timers(
    text: &TasksText,
    dump: &TaskDump,
    group: &TaskGroup<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Some((first, last)) = timers(dump, group) else { return Ok(()) };
    let (first, last) = (duration_text(first.0), duration_text(last.0));
    match first == last {
        true if group.tasks.len() == 1 => note(text, &format!("timer fires in {first}"), out),
        true => note(text, &format!("timers fire in {first}"), out),
        false => note(text, &format!("timers fire in {first} to {last}"), out),
    }
}

/// When the first timers of the tasks of a group fire: the first of them, and the last.
pub(super) fn timers(dump: &TaskDump, group: &TaskGroup<'_>) -> Option<(Nanos, Nanos)> {
    let times = group.tasks.iter().filter_map(|task| dump.fires_in(&dump.tasks[*task]));
    times.fold(None, |all, time| {
        let (first, last) = all.unwrap_or((time, time));
        Some((time.min(first), time.max(last)))
    })
}

/// `note: …`, for each remark.
pub(super) fn write_remarks(text: &TasksText, dump: &TaskDump, out: &mut dyn Write) -> io::Result<()> {
    for remark in &dump.remarks {
        for line in wrap(&format!("note: {remark}"), text.cols) {
            Line::from_text(Paint::Grey, line).write(text.style, out)?;
        }
    }
    Ok(())
}

/// `ids 1, 2, 3, …`.
fn ids_text(ids: &[u64], all: bool) -> String {
    let most = if all { usize::MAX } else { NAMED };
    let mut texts: Vec<String> = ids.iter().take(most).map(u64::to_string).collect();
    if ids.len() > most {
        texts.push("…".to_owned());
    }
    match ids.len() {
        0 => String::new(),
        1 => format!("id {}", texts.join(", ")),
        _ => format!("ids {}", texts.join(", ")),
    }
}

/// Frames below each other; where a stack branches, a tree.
fn write_frames(text: &TasksText, frames: &[AwaitFrame], stem: &str, out: &mut dyn Write) -> io::Result<()> {
    for (number, frame) in frames.iter().enumerate() {
        let is_last = number + 1 == frames.len();
        let (own, below) = match (frames.len(), is_last) {
            (1, _) => (stem.to_owned(), stem.to_owned()),
            (_, false) => (format!("{stem}├ "), format!("{stem}│ ")),
            (_, true) => (format!("{stem}└ "), format!("{stem}  ")),
        };
        // Frames of libraries that follow each other without a branch are one row.
        let mut last = frame;
        let mut folded = 0;
        if !text.everything && is_library(frame) {
            while let [next] = &last.children[..] {
                if !is_library(next) {
                    break;
                }
                last = next;
                folded += 1;
            }
        }
        let lead = Line::from_text(Paint::Normal, " ".repeat(INDENT));
        let is_grey = is_library(frame);
        let shown = ShownFrame { frame, is_grey, folded, more: "", own: &own, below: &below };
        shown.write(text, lead, out)?;
        write_frames(text, &last.children, &below, out)?;
    }
    Ok(())
}
