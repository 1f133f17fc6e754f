//! The end of a peek: a few lines that say where the time went. The report of a server is hundreds of lines deep, and
//! who looks at a terminal sees the last ones first.

use super::Peek;
use crate::queries::call_site::{Place, place_with_line};
use crate::queries::function_table::FunctionTable;
use crate::text::columns::{cut_right, pad_right, width};
use crate::text::numbers::percent;
use crate::text::short::{location_text, short_function, tail};
use crate::text::style::{Line, Paint};
use foldhash::HashMap;
use stackglass_profile::{Recording, StackId, State, TaskId, ThreadNumber, harmless};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Threads that have lines of their own.
const THREADS: usize = 6;
/// Functions of the busiest thread that are named, and of each other one.
const FUNCTIONS: (usize, usize) = (4, 2);
/// Tasks of a thread that are named.
const TASKS: usize = 3;
/// Percent of a thread's time below which nothing is named.
const NOTICEABLE: f64 = 1.0;
/// A wider line is harder to read, not more telling.
const WIDEST: usize = 100;

/// What one thread did.
#[derive(Default)]
struct Did {
    all: u64,
    /// Running, or ready to run: what utilization counts.
    awake: u64,
    /// Of that, without a processor.
    waited: u64,
    stacks: HashMap<StackId, u64>,
    tasks: BTreeMap<u64, u64>,
}

impl Did {
    fn share(&self, time: u64) -> f64 {
        percent(time, self.all)
    }
}

pub(super) fn write(peek: &Peek, recording: &Recording, out: &mut dyn Write) -> io::Result<()> {
    let mut threads: BTreeMap<u32, Did> = BTreeMap::new();
    for sample in &recording.samples {
        let did = threads.entry(sample.thread.0).or_default();
        did.all += sample.time.0;
        if sample.state == State::Asleep {
            continue;
        }
        did.awake += sample.time.0;
        did.waited += if sample.state == State::Waiting { sample.time.0 } else { 0 };
        *did.stacks.entry(sample.stack).or_default() += sample.time.0;
        if sample.task != 0 {
            *did.tasks.entry(sample.task).or_default() += sample.time.0;
        }
    }
    if threads.is_empty() {
        return Ok(());
    }
    let cols = peek.cols.min(WIDEST);
    if threads.values().all(|did| did.awake == 0) {
        let mut line = Line::new();
        line.push(Paint::Bold, "In short").push(Paint::Grey, ": no thread ran, all were asleep or stopped");
        return line.cut(cols).write(peek.style, out);
    }
    let mut busy: Vec<(u32, Did)> = threads.into_iter().collect();
    let all = busy.len();
    busy.retain(|(_, did)| did.share(did.awake) >= NOTICEABLE);
    busy.sort_by_key(|(number, did)| (Reverse(did.awake), *number));
    let mut title = Line::new();
    title.push(Paint::Bold, "In short").push(Paint::Grey, ", of each thread's time, the busiest first:");
    title.cut(cols).write(peek.style, out)?;
    let names = FunctionTable::new(recording);
    for (at, (number, did)) in busy.iter().take(THREADS).enumerate() {
        heading(peek, recording, ThreadNumber(*number), did, cols, out)?;
        functions(peek, recording, &names, did, if at == 0 { FUNCTIONS.0 } else { FUNCTIONS.1 }, cols, out)?;
    }
    let (more, idle) = (busy.len().saturating_sub(THREADS), all - busy.len());
    let threads = |n: usize| if n == 1 { "thread" } else { "threads" };
    let rest = match (more, idle) {
        (0, 0) => return Ok(()),
        (0, _) => format!("{idle} {} ran less than {NOTICEABLE:.0}% of the time", threads(idle)),
        (_, 0) => format!("{more} more {} ran as well", threads(more)),
        _ => format!("{more} more {} ran as well, {idle} less than {NOTICEABLE:.0}%", threads(more)),
    };
    Line::new().push(Paint::Grey, rest).cut(cols).write(peek.style, out)
}

/// `Thread 2 (worker): 98%, tasks serve 70%, repair 9%`.
fn heading(
    peek: &Peek,
    recording: &Recording,
    number: ThreadNumber,
    did: &Did,
    cols: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut says = format!("{:.0}%", did.share(did.awake));
    if did.share(did.waited) >= NOTICEABLE {
        says += &format!(", {:.0}% waiting for a processor", did.share(did.waited));
    }
    // Tasks of one name are many where each request has one.
    let mut tasks: BTreeMap<&str, u64> = BTreeMap::new();
    for (id, time) in &did.tasks {
        let name = recording.task(TaskId(*id)).map_or("without a name", |task| &*task.name);
        *tasks.entry(name).or_default() += time;
    }
    let mut tasks: Vec<(&str, u64)> =
        tasks.into_iter().filter(|(_, time)| did.share(*time) >= NOTICEABLE).collect();
    tasks.sort_by_key(|(_, time)| Reverse(*time));
    let named: Vec<String> = tasks
        .iter()
        .take(TASKS)
        .map(|(name, time)| format!("{} {:.0}%", cut_right(&harmless(name), 24), did.share(*time)))
        .collect();
    if !named.is_empty() {
        let more = if tasks.len() > TASKS { ", …" } else { "" };
        says += &format!(", {} {}{more}", if tasks.len() == 1 { "task" } else { "tasks" }, named.join(", "));
    }
    let who = format!("Thread {} ({})", number.0, harmless(&recording.thread_label(number)));
    let room = cols.saturating_sub(width(&says) + 2).max(20);
    let mut line = Line::new();
    line.push(Paint::BoldCyan, cut_right(&who, room)).plain(": ").plain(says);
    line.cut(cols).write(peek.style, out)
}

/// The hottest functions of a thread by their own time, each with its hottest line.
fn functions(
    peek: &Peek,
    recording: &Recording,
    names: &FunctionTable,
    did: &Did,
    most: usize,
    cols: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut lines: HashMap<Place, u64> = HashMap::default();
    for (stack, time) in &did.stacks {
        *lines.entry(place_with_line(recording, names, *stack)).or_default() += time;
    }
    // The same call from several lines is one function; the line shown is the hottest.
    let mut hot: BTreeMap<_, (u64, u64, Place)> = BTreeMap::new();
    for (place, time) in lines {
        let (all, hottest, shown) =
            hot.entry((place.wait.clone(), place.caller.clone())).or_insert_with(|| (0, 0, place.clone()));
        *all += time;
        if (time, Reverse(&place)) > (*hottest, Reverse(&*shown)) {
            (*hottest, *shown) = (time, place);
        }
    }
    let mut hot: Vec<(u64, Place)> = hot.into_values().map(|(all, _, place)| (all, place)).collect();
    hot.retain(|(time, _)| did.share(*time) >= NOTICEABLE);
    hot.sort_by(|(a, at), (b, there)| b.cmp(a).then_with(|| at.cmp(there)));
    for (time, place) in hot.iter().take(most) {
        let location = place.line.as_ref().map_or_else(String::new, |(file, line)| {
            location_text(recording.symbols.short_path(file), file, *line, cols * 2 / 5)
        });
        let share = format!("{:>4.0}%  ", did.share(*time));
        let gap = if location.is_empty() { 0 } else { 2 };
        let room = cols.saturating_sub(share.len() + gap + width(&location));
        let mut line = Line::new();
        line.plain(share).push(Paint::Bold, pad_right(&what(place, room), if gap > 0 { room } else { 0 }));
        if let Some((file, number)) = &place.line {
            let link = peek.links.as_ref().and_then(|links| links.target(file, *number));
            line.plain(" ".repeat(gap)).push_linked(Paint::Grey, location, link);
        }
        line.cut(cols).write(peek.style, out)?;
    }
    Ok(())
}

/// `memcpy <- shop::price`, or the one that there is.
fn what(place: &Place, room: usize) -> String {
    match (&place.wait, &place.caller) {
        (Some(called), Some(caller)) => {
            let called = short_function(tail(called), room * 2 / 3);
            let left = room.saturating_sub(width(&called) + 4);
            format!("{called} <- {}", short_function(tail(caller), left))
        }
        (Some(only), None) | (None, Some(only)) => short_function(only, room),
        (None, None) => "code without a name".to_owned(),
    }
}
