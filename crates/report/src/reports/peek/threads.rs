//! The current stacks of all threads. Threads that do the same in the same place share one stack, since a pool may have
//! hundreds of them.

use super::Peek;
use crate::text::columns::{cut_left, cut_right};
use crate::text::numbers::counted;
use crate::text::short::in_brackets;
use crate::text::style::{Line, Paint};
use foldhash::{HashMap, HashSet};
use stackglass_profile::Activity;
use stackglass_profile::{Frame, Recording, Sample, StackId, State, ThreadNumber, sanitize};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Number of innermost frames shown of a deep stack.
const INNERMOST: usize = 40;
/// Number of outermost frames shown of a deep stack.
const OUTERMOST: usize = 10;
/// Number of threads named for a stack.
const NAMED: usize = 6;

/// Threads with the same activity and stack.
struct Alike {
    activity: Activity,
    stack: StackId,
    cut: bool,
    threads: Vec<ThreadNumber>,
}

pub(super) fn write(
    peek: &Peek,
    recording: &Recording,
    activity: &HashMap<u32, Activity>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut last: BTreeMap<u32, &Sample> = BTreeMap::new();
    for sample in &recording.samples {
        last.insert(sample.thread.0, sample);
    }
    let known: HashSet<u32> = last
        .keys()
        .filter_map(|number| recording.thread(ThreadNumber(*number)))
        .map(|thread| thread.tid)
        .collect();
    let mut missing: Vec<(u32, &Activity)> =
        activity.iter().filter(|(tid, _)| !known.contains(tid)).map(|(tid, now)| (*tid, now)).collect();
    missing.sort_by_key(|(tid, _)| *tid);
    for (index, process) in recording.processes.iter().enumerate() {
        let mut kinds: Vec<Alike> = Vec::new();
        let mut places: HashMap<(Activity, StackId), usize> = HashMap::default();
        let (mut running, mut all) = (0, 0);
        for sample in last.values() {
            let Some(thread) = recording.thread(sample.thread) else { continue };
            if thread.process.0 as usize != index {
                continue;
            }
            let now = activity_of(recording, sample, activity.get(&thread.tid));
            all += 1;
            running += usize::from(matches!(now, Activity::Running | Activity::Ready));
            let place = *places.entry((now.clone(), sample.stack)).or_insert_with(|| {
                let cut = sample.cut.is_some();
                kinds.push(Alike { activity: now, stack: sample.stack, cut, threads: Vec::new() });
                kinds.len() - 1
            });
            kinds[place].threads.push(sample.thread);
        }
        if all == 0 {
            continue;
        }
        // Threads without a sample belong to the only process shown.
        let missing = std::mem::take(&mut missing);
        all += missing.len();
        let runs = |now: &Activity| matches!(now, Activity::Running | Activity::Ready);
        running += missing.iter().filter(|(_, now)| runs(now)).count();
        let counts = format!(" {} running {running} of {all}", process.pid);
        let room = peek.cols.saturating_sub("cmd: ".len() + counts.len()).max(20);
        writeln!(out, "\ncmd: {}{counts}", cut_left(&sanitize(&process.exe), room))?;
        for kind in &kinds {
            writeln!(out)?;
            heading(peek, recording, kind, out)?;
            stack(peek, recording, kind, out)?;
        }
        if !missing.is_empty() {
            let tids: Vec<String> = missing.iter().take(NAMED * 2).map(|(tid, _)| tid.to_string()).collect();
            let more = if missing.len() > tids.len() { ", …" } else { "" };
            let (n, tids) = (missing.len(), tids.join(", "));
            let threads = if n == 1 { "thread" } else { "threads" };
            writeln!(out, "\n{n} more {threads}, no stack yet: {tids}{more}")?;
        }
    }
    Ok(())
}

/// The activity that belongs to a sample's stack. `told` adds details of threads that still sleep there or are stopped.
pub(super) fn activity_of(recording: &Recording, sample: &Sample, told: Option<&Activity>) -> Activity {
    let asleep = |call| Activity::Asleep { call, pc: None };
    match (sample.state, told) {
        (_, Some(Activity::Stopped)) => Activity::Stopped,
        (State::Awake, _) => Activity::Running,
        (State::Waiting, _) => Activity::Ready,
        (State::Asleep | State::Task, Some(Activity::Asleep { call, pc })) => {
            // Modules are mapped by pages: the offset within a page is the same as in the file.
            let page = |address: u64| address & 0xfff;
            let leaf =
                recording.stacks.walk(sample.stack).next().map(|id| recording.stacks.location(id).offset);
            let there = pc.zip(leaf).is_none_or(|(pc, leaf)| page(pc) == page(leaf));
            asleep(call.clone().filter(|_| there))
        }
        (State::Asleep | State::Task, _) => asleep(None),
    }
}

fn heading(peek: &Peek, recording: &Recording, kind: &Alike, out: &mut dyn Write) -> io::Result<()> {
    let doing = match &kind.activity {
        Activity::Running => "on CPU".to_owned(),
        Activity::Ready => "ready".to_owned(),
        Activity::Asleep { call: Some(call), .. } => format!("asleep in {call}"),
        Activity::Asleep { call: None, .. } => "asleep".to_owned(),
        Activity::Stopped => "stopped".to_owned(),
    };
    let who = who(recording, &kind.threads);
    // Names are cut, but not the activity.
    let room = peek.cols.saturating_sub(doing.len() + 2).max(20);
    let mut line = Line::new();
    line.push(Paint::BoldCyan, cut_right(&who, room)).push(Paint::BoldCyan, ": ");
    let paint =
        if matches!(kind.activity, Activity::Running | Activity::Ready) { Paint::Bold } else { Paint::Grey };
    line.push(paint, doing);
    line.write(peek.style, out)
}

/// The threads by number and name, grouped by name.
fn who(recording: &Recording, threads: &[ThreadNumber]) -> String {
    let name = |number: &ThreadNumber| recording.thread(*number).map_or("", |thread| &*thread.name);
    if let [only] = threads {
        let tid = recording.thread(*only).map_or(0, |thread| thread.tid);
        return format!("Thread {} ({}) {tid}", only.0, sanitize(name(only)));
    }
    let mut named: Vec<(&str, Vec<u32>)> = Vec::new();
    for number in threads {
        let name = name(number);
        match named.iter_mut().find(|(known, _)| *known == name) {
            Some((_, numbers)) => numbers.push(number.0),
            None => named.push((name, vec![number.0])),
        }
    }
    let part = |(name, numbers): &(&str, Vec<u32>)| {
        let shown: Vec<String> = numbers.iter().take(NAMED).map(u32::to_string).collect();
        let more = match numbers.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("{}{more} ({})", shown.join(", "), sanitize(name))
    };
    let named: Vec<String> = named.iter().map(part).collect();
    format!("{} threads: {}", threads.len(), named.join(", "))
}

fn stack(peek: &Peek, recording: &Recording, kind: &Alike, out: &mut dyn Write) -> io::Result<()> {
    let mut frames: Vec<StackLine<'_>> = Vec::new();
    for id in recording.stacks.walk(kind.stack) {
        let location = recording.stacks.location(id);
        let module = location.module.and_then(|module| recording.modules.get(module.0 as usize));
        let module = module.map_or("", |module| &*module.path);
        let before = frames.len();
        frames.extend(recording.symbols.frames_of(id).map(|frame| StackLine {
            frame: Some(frame),
            module,
            at: location.offset,
        }));
        if frames.len() == before {
            frames.push(StackLine { frame: None, module, at: location.offset });
        }
    }
    let omitted = frames.len().saturating_sub(INNERMOST + OUTERMOST);
    for (i, line) in frames.iter().enumerate() {
        if omitted > 0 && i == INNERMOST {
            writeln!(out, "  … {} more", counted(omitted as u64, "frame", "frames"))?;
        }
        if omitted == 0 || i < INNERMOST || i >= INNERMOST + omitted {
            line.write(peek, recording, out)?;
        }
    }
    match (frames.is_empty(), kind.cut) {
        (true, _) => writeln!(out, "  (no stack could be taken)"),
        (false, true) => writeln!(out, "  … its callers could not be found"),
        (false, false) => Ok(()),
    }
}

/// One line of a stack.
struct StackLine<'a> {
    frame: Option<&'a Frame>,
    module: &'a str,
    at: u64,
}

impl StackLine<'_> {
    fn write(&self, peek: &Peek, recording: &Recording, out: &mut dyn Write) -> io::Result<()> {
        let mut line = Line::new();
        let named = self.frame.filter(|frame| !frame.func.is_empty());
        let foreign = self.frame.is_none_or(|frame| frame.foreign);
        let paint = if foreign { Paint::Grey } else { Paint::Normal };
        match named {
            Some(frame) => {
                line.push(paint, format_args!("  {}", sanitize(&frame.func)));
                if frame.start_as_name().is_some() {
                    line.push(Paint::Grey, format_args!(" at {:#x}", self.at));
                } else if frame.line > 0 && !frame.file.is_empty() {
                    let short = recording.symbols.short_path(&frame.file);
                    let text = short.map_or_else(
                        || sanitize(&frame.file).into_owned(),
                        |short| match sanitize(&short.prefix) {
                            prefix if prefix.is_empty() => sanitize(&short.rest).into_owned(),
                            prefix => format!("{prefix}/{}", sanitize(&short.rest)),
                        },
                    );
                    let link = peek.links.as_ref().and_then(|links| links.target(&frame.file, frame.line));
                    line.push(Paint::Grey, " at ").push_linked(
                        Paint::Grey,
                        format_args!("{text}:{}", frame.line),
                        link,
                    );
                } else if !self.module.is_empty() {
                    line.push(Paint::Grey, format_args!(" in {}", sanitize(short_module(self.module))));
                }
            }
            None if self.module.is_empty() => {
                line.push(Paint::Grey, format_args!("  0x{:x}", self.at));
            }
            None => {
                line.push(Paint::Grey, format_args!("  {} at {:#x}", in_brackets(self.module), self.at));
            }
        }
        line.cut(peek.cols);
        line.write(peek.style, out)
    }
}

fn short_module(path: &str) -> &str {
    stackglass_profile::frame::file_name(path)
}
