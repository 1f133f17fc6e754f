//! The end of a peek: a few lines that say where the time went. The report of a server has hundreds of lines, and a
//! terminal shows the last ones.

use super::Peek;
use crate::order;
use crate::queries::call_site::{CallLine, CallSite, call_site_with_line};
use crate::queries::function_table::FunctionTable;
use crate::text::columns::{cut_right, pad_right, width};
use crate::text::numbers::percent;
use crate::text::short::{location_text, short_function, tail};
use crate::text::style::{Line, Paint};
use foldhash::HashMap;
use stackglass_profile::{Recording, StackId, State, TaskId, ThreadNumber, sanitize};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Number of threads listed.
const THREADS: usize = 6;
/// Number of functions listed for the busiest thread.
const FUNCTIONS_OF_BUSIEST: usize = 4;
/// Number of functions listed for each other thread.
const FUNCTIONS: usize = 2;
/// Number of tasks named for each thread.
const TASKS: usize = 3;
/// Nothing below this percentage of a thread's time is named.
const NOTICEABLE: f64 = 1.0;
/// Wider lines are harder to read and say no more.
const WIDEST: usize = 100;

/// Where the time of one thread went.
#[derive(Default)]
struct ThreadTimes {
    all: u64,
    /// Time running or ready to run, as utilization counts it.
    awake: u64,
    /// The part of `awake` in which it waited for a CPU.
    waited: u64,
    stacks: HashMap<StackId, u64>,
    tasks: BTreeMap<u64, u64>,
}

impl ThreadTimes {
    fn share(&self, time: u64) -> f64 {
        percent(time, self.all)
    }
}

pub(super) fn write(peek: &Peek, recording: &Recording, out: &mut dyn Write) -> io::Result<()> {
    let mut threads: BTreeMap<u32, ThreadTimes> = BTreeMap::new();
    for sample in &recording.samples {
        let times = threads.entry(sample.thread.0).or_default();
        times.all += sample.time.0;
        if sample.state == State::Asleep {
            continue;
        }
        times.awake += sample.time.0;
        times.waited += if sample.state == State::Waiting { sample.time.0 } else { 0 };
        *times.stacks.entry(sample.stack).or_default() += sample.time.0;
        if sample.task != 0 {
            *times.tasks.entry(sample.task).or_default() += sample.time.0;
        }
    }
    if threads.is_empty() {
        return Ok(());
    }
    let cols = peek.cols.min(WIDEST);
    if threads.values().all(|times| times.awake == 0) {
        let mut line = Line::new();
        line.push(Paint::Bold, "In short").push(Paint::Grey, ": no thread ran, all were asleep or stopped");
        return line.cut(cols).write(peek.style, out);
    }
    let mut busy: Vec<(u32, ThreadTimes)> = threads.into_iter().collect();
    let all = busy.len();
    busy.retain(|(_, times)| times.share(times.awake) >= NOTICEABLE);
    busy.sort_by(|(a, first), (b, second)| order::largest_first((first.awake, a), (second.awake, b)));
    let mut title = Line::new();
    title.push(Paint::Bold, "In short").push(Paint::Grey, ", of each thread's time, the busiest first:");
    title.cut(cols).write(peek.style, out)?;
    let names = FunctionTable::new(recording);
    for (at, (number, times)) in busy.iter().take(THREADS).enumerate() {
        heading(peek, recording, ThreadNumber(*number), times, cols, out)?;
        functions(
            peek,
            recording,
            &names,
            times,
            if at == 0 { FUNCTIONS_OF_BUSIEST } else { FUNCTIONS },
            cols,
            out,
        )?;
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
    times: &ThreadTimes,
    cols: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut says = format!("{:.0}%", times.share(times.awake));
    if times.share(times.waited) >= NOTICEABLE {
        says += &format!(", {:.0}% ready", times.share(times.waited));
    }
    // A server may have one task for each request: tasks of one name are shown together.
    let mut tasks: BTreeMap<&str, u64> = BTreeMap::new();
    for (id, time) in &times.tasks {
        let name = recording.task(TaskId(*id)).map_or("without a name", |task| &*task.name);
        *tasks.entry(name).or_default() += time;
    }
    let mut tasks: Vec<(&str, u64)> =
        tasks.into_iter().filter(|(_, time)| times.share(*time) >= NOTICEABLE).collect();
    tasks.sort_by(|(_, a), (_, b)| order::longest_first(*a, *b));
    let named: Vec<String> = tasks
        .iter()
        .take(TASKS)
        .map(|(name, time)| format!("{} {:.0}%", cut_right(&sanitize(name), 24), times.share(*time)))
        .collect();
    if !named.is_empty() {
        let more = if tasks.len() > TASKS { ", …" } else { "" };
        says += &format!(", {} {}{more}", if tasks.len() == 1 { "task" } else { "tasks" }, named.join(", "));
    }
    let who = format!("Thread {} ({})", number.0, sanitize(&recording.thread_label(number)));
    let room = cols.saturating_sub(width(&says) + 2).max(20);
    let mut line = Line::new();
    line.push(Paint::BoldCyan, cut_right(&who, room)).plain(": ").plain(says);
    line.cut(cols).write(peek.style, out)
}

/// The functions with the most own time of a thread, each with its hottest line.
fn functions(
    peek: &Peek,
    recording: &Recording,
    names: &FunctionTable,
    times: &ThreadTimes,
    most: usize,
    cols: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut lines: HashMap<CallSite, u64> = HashMap::default();
    for (stack, time) in &times.stacks {
        *lines.entry(call_site_with_line(recording, names, *stack)).or_default() += time;
    }
    // Calls from several lines of a function are one entry with the hottest line.
    let mut hot: BTreeMap<_, (u64, u64, CallSite)> = BTreeMap::new();
    for (site, time) in lines {
        let (all, hottest, shown) =
            hot.entry((site.callee.clone(), site.caller.clone())).or_insert_with(|| (0, 0, site.clone()));
        *all += time;
        if (time, Reverse(&site)) > (*hottest, Reverse(&*shown)) {
            (*hottest, *shown) = (time, site);
        }
    }
    let mut hot: Vec<(u64, CallSite)> = hot.into_values().map(|(all, _, site)| (all, site)).collect();
    hot.retain(|(time, _)| times.share(*time) >= NOTICEABLE);
    hot.sort_by(|(a, at), (b, there)| order::largest_first((a, at), (b, there)));
    for (time, site) in hot.iter().take(most) {
        let location = site.line.as_ref().map_or_else(String::new, |CallLine { file, line }| {
            location_text(recording.symbols.short_path(file), file, *line, cols * 2 / 5)
        });
        let share = format!("{:>4.0}%  ", times.share(*time));
        let gap = if location.is_empty() { 0 } else { 2 };
        let room = cols.saturating_sub(share.len() + gap + width(&location));
        let mut line = Line::new();
        line.plain(share).push(Paint::Bold, pad_right(&what(site, room), if gap > 0 { room } else { 0 }));
        if let Some(CallLine { file, line: number }) = &site.line {
            let link = peek.links.as_ref().and_then(|links| links.target(file, *number));
            line.plain(" ".repeat(gap)).push_linked(Paint::Grey, location, link);
        }
        line.cut(cols).write(peek.style, out)?;
    }
    Ok(())
}

/// `memcpy <- shop::price`, or the only name that is known.
fn what(site: &CallSite, room: usize) -> String {
    match (&site.callee, &site.caller) {
        (Some(called), Some(caller)) => {
            let called = short_function(tail(called), room * 2 / 3);
            let left = room.saturating_sub(width(&called) + 4);
            format!("{called} <- {}", short_function(tail(caller), left))
        }
        (Some(only), None) | (None, Some(only)) => short_function(only, room),
        (None, None) => "unnamed code".to_owned(),
    }
}
