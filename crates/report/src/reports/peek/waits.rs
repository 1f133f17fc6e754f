//! Which threads wait for which others: deadlocks first, then each lock with its holder and those that wait for it.

use super::Peek;
use crate::reports::json_frame::JsonFrame;
use crate::text::columns::wrap;
use crate::text::numbers::counted;
use crate::text::style::{Line, Paint};
use serde::Serialize;
use stackglass_profile::frame::file_name;
use stackglass_profile::thread_waits::{
    HolderId, ThreadDeadlock, ThreadHolder, ThreadTarget, ThreadWait, ThreadWaits,
};
use stackglass_profile::{Frame, Recording, sanitize};
use std::io::{self, Write};

/// Most threads and holders that are named in a sentence, and most sentences.
const NAMED: usize = 4;
const SENTENCES: usize = 20;

/// Writes the waits, after an empty line. Threads have their numbers if they are in the recording.
pub(super) fn write(
    peek: &Peek,
    waits: &ThreadWaits,
    recording: Option<&Recording>,
    out: &mut dyn Write,
) -> io::Result<()> {
    if waits.waits.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    let names = Names { waits, recording };
    for deadlock in waits.deadlocks.iter().take(SENTENCES) {
        write_deadlock(peek, &names, deadlock, out)?;
    }
    let groups = groups(waits);
    for alike in groups.iter().take(SENTENCES) {
        let first = alike[0];
        let (who, verb) = match alike.len() {
            1 => (names.thread(first.tid, &first.name), "waits"),
            count => {
                let mut named: Vec<String> =
                    alike.iter().take(NAMED).map(|wait| wait.tid.to_string()).collect();
                if count > NAMED {
                    named.push("…".to_owned());
                }
                (format!("{count} threads ({})", named.join(", ")), "wait")
            }
        };
        let place = first.at.as_ref().filter(|at| alike.iter().all(|wait| wait.at.as_ref() == Some(at)));
        let place = place.map_or(String::new(), |at| format!(" in {}", place_text(at)));
        let sentence = format!("{who} {verb}{place} for {}", names.target(first, &first.holders));
        write_sentence(peek, Paint::Bold, &sentence, "", out)?;
    }
    if groups.len() > SENTENCES {
        let more = counted((groups.len() - SENTENCES) as u64, "more lock", "more locks");
        writeln!(out, "… and {more}")?;
    }
    Ok(())
}

fn write_deadlock(
    peek: &Peek,
    names: &Names<'_>,
    deadlock: &ThreadDeadlock,
    out: &mut dyn Write,
) -> io::Result<()> {
    let of = match deadlock.tids.len() {
        1 => "a thread waits for itself".to_owned(),
        count => format!("{count} threads wait for each other"),
    };
    let (word, unless) = match deadlock.is_certain {
        true => ("deadlock: ", ""),
        false => ("possible deadlock: ", ", unless one of them has dropped its guard"),
    };
    let mut line = Line::new();
    line.push(Paint::Red, word).push(Paint::Bold, format!("{of}{unless}"));
    line.cut(peek.cols).write(peek.style, out)?;
    let next = deadlock.tids.iter().cycle().skip(1);
    for (tid, other) in deadlock.tids.iter().zip(next).take(NAMED) {
        let Some(wait) = names.waits.waits.iter().find(|wait| wait.tid == *tid) else { continue };
        let what = match (&wait.what, tid == other) {
            (ThreadTarget::Lock { kind, .. }, true) => format!("the {} that it holds", kind.name()),
            (ThreadTarget::Lock { kind, .. }, false) => {
                format!("the {} of {}", kind.name(), names.thread_by_id(*other))
            }
            (ThreadTarget::File { path }, _) => format!("the lock of {}", sanitize(path)),
            (ThreadTarget::End, _) => format!("the end of {}", names.thread_by_id(*other)),
        };
        let sentence = format!("{} waits for {what}", names.thread(*tid, &wait.name));
        write_sentence(peek, Paint::Normal, &sentence, "  ", out)?;
    }
    match deadlock.tids.len().saturating_sub(NAMED) {
        0 => Ok(()),
        more => writeln!(out, "  and so on: {}", counted(more as u64, "more thread", "more threads")),
    }
}

fn write_sentence(
    peek: &Peek,
    paint: Paint,
    sentence: &str,
    indent: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    let room = peek.cols.saturating_sub(indent.len() + 2);
    for (number, part) in wrap(sentence, room).into_iter().enumerate() {
        let more = if number == 0 { "" } else { "  " };
        Line::from_text(paint, format!("{indent}{more}{part}")).write(peek.style, out)?;
    }
    Ok(())
}

/// Waits for the same, the most first.
fn groups(waits: &ThreadWaits) -> Vec<Vec<&ThreadWait>> {
    let mut groups: Vec<Vec<&ThreadWait>> = Vec::new();
    for wait in &waits.waits {
        let is_same =
            |group: &&mut Vec<&ThreadWait>| group[0].what == wait.what && group[0].holders == wait.holders;
        match groups.iter_mut().find(is_same) {
            Some(group) => group.push(wait),
            None => groups.push(vec![wait]),
        }
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
    groups
}

/// What threads are called.
struct Names<'a> {
    waits: &'a ThreadWaits,
    recording: Option<&'a Recording>,
}

impl Names<'_> {
    /// `thread 2 (worker) 14069`, as in the headings of stacks.
    fn thread(&self, tid: u32, name: &str) -> String {
        // The last with this id: ids are used again.
        let of = |recording: &Recording| recording.threads.iter().rposition(|thread| thread.tid == tid);
        let number = self.recording.and_then(of);
        let number = number.map_or(String::new(), |index| format!(" {}", index + 1));
        format!("thread{number} ({}) {tid}", sanitize(name))
    }

    fn thread_by_id(&self, tid: u32) -> String {
        let own = self.waits.waits.iter().find(|wait| wait.tid == tid).map(|wait| &*wait.name);
        self.thread(tid, own.unwrap_or_default())
    }

    /// `pthread mutex 0x4040, held by thread 3 (worker) 14070`.
    fn target(&self, wait: &ThreadWait, holders: &[ThreadHolder]) -> String {
        let mut named: Vec<String> =
            holders.iter().take(NAMED).map(|holder| self.holder(wait, holder)).collect();
        if holders.len() > NAMED {
            named.push(format!("{} more", holders.len() - NAMED));
        }
        let named = named.join(" or ");
        if named.is_empty()
            && let ThreadTarget::Lock { kind, address } = &wait.what
        {
            return format!("{} {address:#x}, whose owner is not known", kind.name());
        }
        let by = if holders.iter().all(|holder| holder.is_certain) { "held by" } else { "probably held by" };
        match &wait.what {
            ThreadTarget::Lock { kind, address } => {
                format!("{} {address:#x}, {by} {named}", kind.name())
            }
            ThreadTarget::File { path } => format!("the lock of {}, taken by {named}", sanitize(path)),
            ThreadTarget::End => format!("the end of {named}"),
        }
    }

    fn holder(&self, wait: &ThreadWait, holder: &ThreadHolder) -> String {
        let place = holder.at.as_ref().map_or(String::new(), |at| format!(" in {}", place_text(at)));
        match holder.who {
            HolderId::Thread(tid) if tid == wait.tid => format!("itself{place}"),
            HolderId::Thread(tid) => format!("{}{place}", self.thread(tid, &holder.name)),
            HolderId::GoneThread(tid) => {
                format!("thread {tid}, which has ended, or is in the process that this one was forked from")
            }
            HolderId::Process(pid) if holder.name.is_empty() => {
                format!("process {pid}, which has ended (a child may have it)")
            }
            HolderId::Process(pid) => format!("process {pid} ({})", sanitize(&holder.name)),
        }
    }
}

/// `work at a.c:12`.
fn place_text(frame: &Frame) -> String {
    match frame.line > 0 && !frame.file.is_empty() {
        true => format!("{} at {}:{}", sanitize(&frame.func), sanitize(file_name(&frame.file)), frame.line),
        false => sanitize(&frame.func).into_owned(),
    }
}

/// The waits in JSON.
#[derive(Serialize)]
pub(super) struct JsonWait<'a> {
    tid: u32,
    r#for: &'static str,
    address: Option<String>,
    path: Option<&'a str>,
    timeout: bool,
    at: Option<JsonFrame<'a>>,
    holders: Vec<JsonHolder<'a>>,
}

#[derive(Serialize)]
struct JsonHolder<'a> {
    tid: Option<u32>,
    pid: Option<u32>,
    name: &'a str,
    gone: bool,
    certain: bool,
    at: Option<JsonFrame<'a>>,
}

/// A deadlock in JSON.
#[derive(Serialize)]
pub(super) struct JsonDeadlock<'a> {
    tids: &'a [u32],
    certain: bool,
}

pub(super) fn json(waits: &ThreadWaits) -> (Vec<JsonWait<'_>>, Vec<JsonDeadlock<'_>>) {
    let deadlocks = waits.deadlocks.iter();
    let deadlocks =
        deadlocks.map(|deadlock| JsonDeadlock { tids: &deadlock.tids, certain: deadlock.is_certain });
    (waits.waits.iter().map(JsonWait::from).collect(), deadlocks.collect())
}

impl<'a> From<&'a ThreadWait> for JsonWait<'a> {
    fn from(wait: &'a ThreadWait) -> JsonWait<'a> {
        let (r#for, address, path) = match &wait.what {
            ThreadTarget::Lock { kind, address } => (kind.name(), Some(format!("{address:#x}")), None),
            ThreadTarget::File { path } => ("file lock", None, Some(path.as_str())),
            ThreadTarget::End => ("end of a thread", None, None),
        };
        let at = wait.at.as_ref().map(JsonFrame::from);
        let holders = wait.holders.iter().map(JsonHolder::from).collect();
        JsonWait { tid: wait.tid, r#for, address, path, timeout: wait.has_timeout, at, holders }
    }
}

impl<'a> From<&'a ThreadHolder> for JsonHolder<'a> {
    fn from(holder: &'a ThreadHolder) -> JsonHolder<'a> {
        let (tid, pid, gone) = match holder.who {
            HolderId::Thread(tid) => (Some(tid), None, false),
            HolderId::GoneThread(tid) => (Some(tid), None, true),
            HolderId::Process(pid) => (None, Some(pid), holder.name.is_empty()),
        };
        let at = holder.at.as_ref().map(JsonFrame::from);
        JsonHolder { tid, pid, name: &holder.name, gone, certain: holder.is_certain, at }
    }
}
