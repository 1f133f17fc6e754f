//! The last lines of the summary: run time, number of samples, the hottest functions and lines, and the verdict. They
//! are at the end, since a terminal shows the end of what was printed.

use super::{Summary, shares, tree_text, verdict, waits};
use crate::order;
use crate::queries::cpu_tree::{CpuTree, NodeKind};
use crate::queries::cut_reasons::no_stack_text;
use crate::queries::function_table::SourceLine;
use crate::queries::hot_chains::{Chain, chains};
use crate::text::columns::{cut_right, width};
use crate::text::numbers::{counted, duration_text, grouped, part_text, percent_text, setting_text};
use crate::text::short::{cut_name, last_name, shortest_location, tail};
use crate::text::style::{Line, Paint};
use stackglass_profile::{End, Recording, State, Thread, command_text, sanitize};
use std::collections::{BTreeMap, BTreeSet};

/// The command gets at least this many columns if it is that long, even if not all numbers fit beside it.
const COMMAND: usize = 12;
/// The share of the CPU time that is nearly all.
const NEARLY_ALL: f64 = 0.9;

pub(super) fn lines(summary: &Summary, recording: &Recording, tree: &CpuTree<'_>) -> Vec<Line> {
    let has_times = shares::has_times(recording);
    let mut digest = match has_times {
        true => vec![overview(recording, tree, summary.cols), taken(recording, tree)],
        false => vec![counts(summary, recording, tree)],
    };
    if let Some(ready) = ready(recording).filter(|_| has_times) {
        let before = digest[1].width();
        match before + 2 + width(&ready) <= summary.cols {
            true => {
                let sign = if time_in(recording, State::Asleep) > 0 { ',' } else { ';' };
                digest[1].plain(format!("{sign} {ready}"));
            }
            false => digest.push(Line::from_text(
                Paint::Normal,
                format!("{ready}, without a CPU (other threads had them)"),
            )),
        }
    }
    let cpu = tree.cpu().time;
    if cpu > 0 {
        let functions = &tree.names.functions;
        let names = |name: &str| [tail(name), last_name(name)].map(str::to_owned);
        let own = functions.iter().map(|f| Entry::new(f.own.time, names(&f.name)));
        let own =
            own.chain(without_stack(tree).into_iter().map(|(name, time)| Entry::new(time, names(&name))));
        let passing = passing(tree);
        let total =
            chains(tree).into_iter().filter(|chain| !passing.contains(&chain.callee())).map(|chain| {
                let callee = &functions[chain.callee() as usize];
                // A caller with a name says more than a callee without one.
                let mut named = chain.0.iter().rev().map(|function| &functions[*function as usize]);
                let shown = named.find(|function| !function.by_start).unwrap_or(callee);
                let chain = if std::ptr::eq(shown, callee) { chain_text(tree, &chain) } else { None };
                Entry { chain, ..Entry::new(callee.total.time, names(&shown.name)) }
            });
        let lines = tree.names.lines.iter().skip(1).map(|line: &SourceLine| {
            let long = tree_text::short_location(recording, &line.file, line.line, 32);
            let names = [long, shortest_location(&line.file, line.line)];
            Entry { link: summary.link(&line.file, line.line), ..Entry::new(line.own.time, names) }
        });
        let waits = waits::largest(tree).into_iter().map(|(wait, weight)| {
            let link = summary.link(&wait.file, wait.line);
            Entry { link, ..Entry::new(weight.time, waits::names(recording, wait)) }
        });
        let is_noticeable = |entry: &Entry| entry.time as f64 >= cpu as f64 * shares::LEAST_SHOWN;
        let waits: Vec<Entry> = waits.filter(is_noticeable).collect();
        if !waits.is_empty() {
            digest.push(hottest("waits", &waits, cpu, summary.cols));
        }
        for (title, mut entries) in
            [("own time", own.collect::<Vec<_>>()), ("in total", total.collect()), ("lines", lines.collect())]
        {
            entries.retain(is_noticeable);
            entries.sort_by(|a, b| order::largest_first((a.time, &a.names), (b.time, &b.names)));
            if !entries.is_empty() {
                digest.push(hottest(title, &entries, cpu, summary.cols));
            }
        }
        digest.extend(verdict::line(recording, tree, summary.cols));
    }
    digest
}

/// CPU time of samples without functions, by the reason.
fn without_stack(tree: &CpuTree<'_>) -> BTreeMap<String, u64> {
    let mut times = BTreeMap::new();
    for node in &tree.nodes {
        if let NodeKind::Nothing(cut) = node.what {
            *times.entry(no_stack_text(cut)).or_default() += node.own.time;
        }
    }
    times
}

/// Functions that pass nearly all CPU time on to another one with nearly all: the innermost of them says most. Those that call
/// each other in turn are not among them.
fn passing(tree: &CpuTree<'_>) -> BTreeSet<u32> {
    let least = tree.cpu().time as f64 * NEARLY_ALL;
    let (mut functions, mut node) = (Vec::new(), 0);
    // Callees are ordered by time.
    while let Some(&next) = tree.nodes[node as usize].children.first()
        && tree.nodes[next as usize].total.time as f64 >= least
    {
        if let NodeKind::Function(function) = tree.nodes[next as usize].what {
            functions.push(function);
        }
        node = next;
    }
    let innermost = functions.pop();
    functions.sort_unstable();
    let calls_of_one = functions.chunk_by(|a, b| a == b);
    let once = calls_of_one.filter_map(|calls| (calls.len() == 1).then_some(calls[0]));
    once.filter(|function| Some(*function) != innermost).collect()
}

/// The command or the file, and the number of samples, which have no times.
fn counts(summary: &Summary, recording: &Recording, tree: &CpuTree<'_>) -> Line {
    let hits = tree.cpu().hits;
    let asleep = time_in(recording, State::Asleep);
    let mut text = counted(hits, "sample", "samples");
    if !recording.threads.is_empty() {
        text += &format!(" in {}", counted(recording.threads.len() as u64, "thread", "threads"));
    }
    if asleep > 0 {
        text += &format!("; {} asleep", grouped(asleep));
    }
    text += ", without times";
    let name = match (&recording.info.command[..], &summary.file) {
        ([], Some(file)) => file.clone(),
        (command, _) => command_text(command),
    };
    let room = summary.cols.saturating_sub(width(&text) + 2).min(30);
    let mut line = Line::new();
    if !name.is_empty() && room > 1 {
        line.push(Paint::Bold, cut_right(&sanitize(&name), room).into_owned()).plain("  ");
    }
    line.plain(text);
    line
}

/// The command, its times, and how it ended. The command is cut if the line is too long.
fn overview(recording: &Recording, tree: &CpuTree<'_>, cols: usize) -> Line {
    let info = &recording.info;
    let cpu = tree.cpu().time;
    let mut used = match tree.unaccounted {
        0 => format!("{} CPU", duration_text(cpu)),
        missing => format!("{} CPU sampled", part_text(cpu - missing, cpu)),
    };
    used = match recording.is_walltime() {
        true => format!("{} wall, wall-time profile", duration_text(info.wall.0)),
        false => format!("{} wall, {used}", duration_text(info.wall.0)),
    };
    let (paint, state) = match info.end {
        Some(End::Exit(0)) | None => (Paint::Normal, String::new()),
        Some(End::Exit(status)) => (Paint::Red, format!(", exit status {status}")),
        Some(End::Signal(signal)) => (Paint::Red, format!(", ended by signal {signal}")),
        Some(End::Running) => (Paint::Normal, ", still running".to_owned()),
    };
    let command = command_text(&info.command);
    let command = sanitize(&command);
    if info.wall.0 > 0 && !recording.is_walltime() {
        let busy = format!(" ({:.1} cores busy)", cpu as f64 / info.wall.0 as f64);
        let least = width(&command).min(COMMAND) + 2;
        if least + width(&used) + width(&busy) + width(&state) <= cols {
            used += &busy;
        }
    }
    let room = cols.saturating_sub(width(&used) + width(&state) + 2).min(30);
    let mut line = Line::new();
    if !command.is_empty() && room > 1 {
        line.push(Paint::Bold, cut_right(&command, room).into_owned()).plain("  ");
    }
    line.plain(used).push(paint, state);
    line
}

fn time_in(recording: &Recording, state: State) -> u64 {
    recording.samples.iter().filter(|sample| sample.state == state).map(|sample| sample.time.0).sum()
}

/// The time in which threads were ready to run but had no CPU, if it is more than usual.
fn ready(recording: &Recording) -> Option<String> {
    let ready = time_in(recording, State::Waiting);
    let is_usual = ready <= time_in(recording, State::Awake) / 20;
    (!is_usual).then(|| format!("{} ready", duration_text(ready)))
}

/// The number of samples that the tree counts.
fn taken(recording: &Recording, tree: &CpuTree<'_>) -> Line {
    let hits = tree.cpu().hits;
    let asleep = time_in(recording, State::Asleep);
    // A process that calls exec is one process of two programs.
    let distinct: BTreeSet<u32> = recording.processes.iter().map(|process| process.pid).collect();
    let processes = match distinct.len() {
        0 | 1 => String::new(),
        several => format!(" of {} processes", grouped(several as u64)),
    };
    let mut line = Line::new();
    let (what, of) = match recording.is_walltime() {
        true => (counted(hits, "sample", "samples"), sampled_tasks(recording)),
        false => {
            let threads = counted(distinct_threads(recording), "thread", "threads");
            (counted(hits, "sample", "samples"), format!("in {threads}"))
        }
    };
    // With await stacks, all tasks are sampled now and then.
    match recording.has_await_stacks() || recording.is_walltime() && recording.samples.is_empty() {
        true => line.plain(format!("{what} {of}{processes}")),
        false => {
            line.plain(format!("{what} {of}{processes}, every {}", setting_text(recording.info.delay.0)))
        }
    };
    if asleep > 0 {
        line.plain(format!("; {} asleep", duration_text(asleep)));
    }
    line
}

/// Threads by their ids: one that calls exec is one thread of two programs.
fn distinct_threads(recording: &Recording) -> u64 {
    let pid = |thread: &Thread| recording.processes.get(thread.process.0 as usize).map(|process| process.pid);
    recording.threads.iter().map(|thread| (pid(thread), thread.tid)).collect::<BTreeSet<_>>().len() as u64
}

/// `of one of 3 tasks each`.
fn sampled_tasks(recording: &Recording) -> String {
    let mut tasks: Vec<u64> = recording.samples.iter().map(|sample| sample.task).collect();
    tasks.sort_unstable();
    tasks.dedup();
    let outside = tasks.first() == Some(&0);
    match (tasks.len() - usize::from(outside)) as u64 {
        0 if !outside => "of tasks".to_owned(),
        0 => "of one thread each".to_owned(),
        n => {
            let or = if outside { " or of threads outside tasks" } else { "" };
            format!("of one of {}{or}", counted(n, "task", "tasks"))
        }
    }
}

/// One of the hottest functions or lines.
struct Entry {
    time: u64,
    /// A long and a short name.
    names: [String; 2],
    /// The chain of functions it stands for, shown if it fits.
    chain: Option<String>,
    link: Option<String>,
}

impl Entry {
    fn new(time: u64, names: [String; 2]) -> Entry {
        Entry { time, names, chain: None, link: None }
    }
}

/// `run → parse`, `run → … → parse`.
fn chain_text(tree: &CpuTree<'_>, chain: &Chain) -> Option<String> {
    let name = |function: u32| tail(&tree.names.functions[function as usize].name);
    match chain.0[..] {
        [] | [_] => None,
        [outer, inner] => Some(format!("{} → {}", name(outer), name(inner))),
        [outer, middle, inner] => Some(format!("{} → {} → {}", name(outer), name(middle), name(inner))),
        [outer, .., inner] => Some(format!("{} → … → {}", name(outer), name(inner))),
    }
}

/// As many of the hottest as fit into a line, each with the longest name that does not push out another one.
fn hottest(title: &str, entries: &[Entry], cpu: u64, cols: usize) -> Line {
    let title = format!("{title:<10}");
    let mut used = width(&title);
    let mut shown: Vec<(String, String, &Entry)> = Vec::new();
    for entry in entries.iter().take(5) {
        let [long, short] = &entry.names;
        let share = percent_text(entry.time, cpu);
        let around = width(&share) + 1 + if shown.is_empty() { 0 } else { 2 };
        let room = cols.saturating_sub(used + around);
        let name = match width(long) <= room {
            true => long.clone(),
            false if width(short) <= room => short.clone(),
            false if shown.is_empty() => cut_name(short, room),
            false => break,
        };
        used += around + width(&name);
        shown.push((share, name, entry));
    }
    for (_, name, entry) in &mut shown {
        if let Some(chain) = &entry.chain
            && used - width(name) + width(chain) <= cols
        {
            used = used - width(name) + width(chain);
            name.clone_from(chain);
        }
    }
    let mut line = Line::new();
    line.push(Paint::Grey, title);
    for (index, (share, name, entry)) in shown.into_iter().enumerate() {
        line.plain(if index == 0 { "" } else { ", " });
        line.push(if index == 0 { Paint::Bold } else { Paint::Normal }, share);
        line.plain(" ").linked(name, entry.link.clone());
    }
    line
}
