//! The lines above the tree: how long it ran, and the few names that matter most.

use super::calls::{Call, Calls, What};
use super::classes::Class;
use super::names::{Function, SourceLine};
use super::{FirstScreen, tree_text};
use crate::columns::{cut_right, harmless, width};
use crate::frame::file_name;
use crate::numbers::{counted, duration_text, grouped, percent_text, setting_text};
use crate::short::{last_name, shortest_location, tail};
use crate::style::{Line, Paint};
use crate::{End, Recording, State};
use std::io::{self, Write};

/// A function is said to dominate when it accounts for this share of processor time.
const DOMINANT: f64 = 0.5;

pub(super) fn write(
    screen: &FirstScreen,
    recording: &Recording,
    calls: &Calls<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let lines = [overview(recording, calls), taken(recording)].into_iter().chain(waited(recording));
    for mut line in lines {
        line.cut(screen.cols).write(screen.style, out)?;
    }
    let cpu = calls.cpu().time;
    if cpu > 0 {
        let passing = passing(calls);
        let functions = calls.names.functions.iter().zip(passing);
        let name = |name: &str| ([tail(name), last_name(name)].map(str::to_owned), None);
        let own = functions.clone().map(|(function, _)| (function.own.time, name(&function.name)));
        let total = functions.filter(|(function, passing)| function.class == Class::Own && !passing);
        let total = total.map(|(function, _)| (function.total.time, name(&function.name)));
        let location = |line: &SourceLine| {
            let long = tree_text::short_location(recording, &line.file, line.line, 32);
            ([long, shortest_location(&line.file, line.line)], screen.link(&line.file, line.line))
        };
        let lines = calls.names.lines.iter().skip(1);
        let lines = lines.map(|line| (line.own.time, location(line)));
        for (title, mut entries) in
            [("own time", own.collect::<Vec<_>>()), ("in total", total.collect()), ("lines", lines.collect())]
        {
            entries.retain(|(time, _)| *time as f64 >= cpu as f64 * super::NOTICEABLE);
            entries.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
            if !entries.is_empty() {
                hottest(title, &entries, cpu, screen.cols).cut(screen.cols).write(screen.style, out)?;
            }
        }
        if let Some(mut line) = finding(calls, screen.cols) {
            line.cut(screen.cols).write(screen.style, out)?;
        }
    }
    out.write_all(b"\n")
}

/// What ran, how long, how busy, how it ended.
fn overview(recording: &Recording, calls: &Calls<'_>) -> Line {
    let about = &recording.about;
    let command: Vec<&str> = about.command.iter().map(|word| file_name(word)).take(1).collect();
    let rest = about.command.iter().skip(1).map(String::as_str);
    let command = command.into_iter().chain(rest).collect::<Vec<_>>().join(" ");
    let cpu = calls.cpu().time;
    let mut line = Line::new();
    if !command.is_empty() {
        line.push(Paint::Bold, cut_right(&harmless(&command), 30).into_owned()).plain("  ");
    }
    line.plain(format!("{} wall, {} CPU", duration_text(about.wall.0), duration_text(cpu)));
    if about.wall.0 > 0 {
        line.plain(format!(" ({:.1} cores busy)", cpu as f64 / about.wall.0 as f64));
    }
    match about.end {
        Some(End::Exit(0)) | None => {}
        Some(End::Exit(status)) => drop(line.push(Paint::Red, format!(", exit status {status}"))),
        Some(End::Signal(signal)) => drop(line.push(Paint::Red, format!(", ended by signal {signal}"))),
        Some(End::Running) => drop(line.plain(", still running")),
    }
    line
}

fn time_in(recording: &Recording, state: State) -> u64 {
    recording.samples.iter().filter(|sample| sample.state == state).map(|sample| sample.time.0).sum()
}

/// That threads were ready and had no processor, where that is more than what happens everywhere.
fn waited(recording: &Recording) -> Option<Line> {
    let waiting = time_in(recording, State::Waiting);
    if waiting <= time_in(recording, State::Awake) / 20 {
        return None;
    }
    let mut line = Line::new();
    let time = duration_text(waiting);
    line.plain(format!("{time} of thread time ready to run, but waiting for a processor"));
    Some(line)
}

/// How much was looked at.
fn taken(recording: &Recording) -> Line {
    let hits: u64 = recording.samples.iter().map(|sample| u64::from(sample.hits)).sum();
    let asleep = time_in(recording, State::Asleep);
    let processes = match recording.processes.len() {
        0 | 1 => String::new(),
        several => format!(" of {} processes", grouped(several as u64)),
    };
    let mut line = Line::new();
    line.plain(format!(
        "{} in {}{processes}, every {}",
        counted(hits, "stack", "stacks"),
        counted(recording.threads.len() as u64, "thread", "threads"),
        setting_text(recording.about.delay.0),
    ));
    if asleep > 0 {
        line.plain(format!("; {} asleep", duration_text(asleep)));
    }
    line
}

/// For each function whether it does little but call one other function, so that the other's time
/// says it all. What only starts programs is of that kind too.
fn passing(calls: &Calls<'_>) -> Vec<bool> {
    let mut passed_on = vec![0_u64; calls.names.functions.len()];
    for call in &calls.nodes {
        if let What::Function(function) = call.what
            && let Some(heaviest) = call.children.first()
            && calls.nodes[*heaviest as usize].total.time as f64 >= call.total.time as f64 * 0.95
        {
            passed_on[function as usize] += call.total.time;
        }
    }
    let passing = |(function, passed_on): (&Function, u64)| {
        function.start || passed_on as f64 >= function.total.time as f64 * 0.9
    };
    calls.names.functions.iter().zip(passed_on).map(passing).collect()
}

/// Time, a longer and a shorter name, and where the name leads.
type Entry = (u64, ([String; 2], Option<String>));

/// As many of the hottest as fit in a line, each by the longer of its names that fits.
fn hottest(title: &str, entries: &[Entry], cpu: u64, cols: usize) -> Line {
    let mut line = Line::new();
    line.push(Paint::Grey, format!("{title:<10}"));
    for (index, (time, ([long, short], link))) in entries.iter().enumerate().take(5) {
        let share = percent_text(*time, cpu);
        let separator = if index == 0 { "" } else { ", " };
        let room = cols.saturating_sub(line.width() + separator.len() + width(&share) + 1);
        let name = match width(long) <= room {
            true => long.clone(),
            false if width(short) <= room => short.clone(),
            false if index == 0 => cut_right(short, room).into_owned(),
            false => break,
        };
        line.plain(separator).push(if index == 0 { Paint::Bold } else { Paint::Normal }, share);
        line.plain(" ").linked(name, link.clone());
    }
    line
}

/// "83 % of the CPU time is under X": the innermost function that still accounts for most of it.
fn finding(calls: &Calls<'_>, cols: usize) -> Option<Line> {
    let cpu = calls.cpu().time;
    let mut node = 0_u32;
    let heavy = |call: &Call| call.total.time as f64 >= cpu as f64 * DOMINANT;
    let next = |node: u32| {
        calls.nodes[node as usize].children.iter().copied().find(|child| heavy(&calls.nodes[*child as usize]))
    };
    let mut named = None;
    while let Some(child) = next(node) {
        node = child;
        if let What::Function(function) = calls.nodes[node as usize].what
            && calls.names.functions[function as usize].class == Class::Own
        {
            named = Some((node, function));
        }
    }
    let (node, function) = named?;
    if last_name(&calls.names.functions[function as usize].name) == "main" {
        return None;
    }
    let call = &calls.nodes[node as usize];
    let (share, own) = (percent_text(call.total.time, cpu), percent_text(call.own.time, cpu));
    let name = calls.names.functions[function as usize].name.as_str();
    let caller = match calls.nodes[call.parent as usize].what {
        What::Function(caller) => {
            format!(", called from {}", tail(&calls.names.functions[caller as usize].name))
        }
        _ => String::new(),
    };
    let text = |name: &str, caller: &str| {
        let mut line = Line::new();
        line.push(Paint::Bold, share.clone());
        if call.own.time as f64 >= call.total.time as f64 * 0.95 {
            line.plain(" of the CPU time is in ").push(Paint::Bold, name).plain(format!(" itself{caller}"));
        } else {
            line.plain(" of the CPU time is under ").push(Paint::Bold, name);
            if call.own.time as f64 >= call.total.time as f64 * 0.05 {
                line.plain(format!(", {own} in itself"));
            }
        }
        line
    };
    let last = tail(name);
    let longest_first = [text(name, &caller), text(last, &caller), text(name, "")];
    let fits = longest_first.into_iter().find(|line| line.width() <= cols);
    Some(fits.unwrap_or_else(|| text(last, "")))
}
