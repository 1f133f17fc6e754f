//! The notes at the end: what limits the results, and what to do about it.

use super::cut_reasons::{cut_meaning, why_incomplete};
use super::shares::{self, CONSIDERABLE, FROM_OUTSIDE, NOTICEABLE};
use super::{Summary, few_samples, poor_names, run_time_code, short_lives};
use crate::order;
use crate::queries::cpu_tree::CpuTree;
use crate::queries::function_table::public_name;
use crate::text::columns::wrap;
use crate::text::numbers::{counted, duration_text, grouped, percent_text};
use crate::text::short::last_name;
use crate::text::style::{Line, Paint};
use stackglass_profile::frame::file_name;
use stackglass_profile::symbols::Language;
use stackglass_profile::{Cut, Recording, Sample, sanitize};
use std::collections::BTreeMap;

/// Number of notes shown of a recording in a file, unless everything is.
const SHOWN: usize = 2;
/// From this share of CPU time on, the note on missing unwind tables names functions.
const LARGE: f64 = 0.1;
/// Lines of each note on a screen that has no room for more.
const LINES: usize = 3;

/// All notes, each as one line of text, the most important first.
pub(super) fn all(recording: &Recording, tree: &CpuTree<'_>) -> Vec<String> {
    beside(recording, tree, false)
}

/// The notes beside a first line that says what shows the functions of a runtime, or without such a line.
pub(super) fn beside(recording: &Recording, tree: &CpuTree<'_>, has_hint: bool) -> Vec<String> {
    let cpu = tree.cpu().time;
    let mut notes = Vec::new();
    notes.extend(buffer_full(recording));
    notes.extend(missing(recording, tree));
    notes.extend(recording.info.remarks.iter().map(|remark| sanitize(remark).into_owned()));
    notes.extend(few_samples::note(recording, tree));
    notes.extend(run_time_code::note(recording, cpu).filter(|_| !has_hint));
    notes.extend(cut_stacks(recording, cpu));
    notes.extend(short_lives::note(recording, cpu));
    notes.extend(translated(recording));
    notes.extend(poor_names::poor_names(recording, cpu));
    notes.extend(ticks(recording));
    notes.extend(not_sampled(recording));
    notes
}

/// The first notes in at most `most` lines, and a line that counts the others.
pub(super) fn lines(summary: &Summary, notes: &[String], most: usize) -> Vec<Line> {
    // Without a file, the others could be shown nowhere else.
    let everything = summary.everything || summary.file.is_none();
    let shown = if everything { notes.len() } else { notes.len().min(SHOWN) };
    let wrapped: Vec<Vec<String>> =
        notes[..shown].iter().map(|note| wrap(note, summary.cols.saturating_sub(6))).collect();
    let all: usize = wrapped.iter().map(Vec::len).sum();
    let is_whole = all + usize::from(shown < notes.len()) <= most;
    let mut lines: Vec<Line> = Vec::new();
    let mut written = 0;
    for mut note in wrapped {
        if !is_whole && note.len() > LINES {
            note.truncate(LINES);
            note[LINES - 1] += " …";
        }
        if lines.len() + note.len() + usize::from(written + 1 < notes.len()) > most {
            break;
        }
        written += 1;
        for (index, text) in note.into_iter().enumerate() {
            let mut line = Line::new();
            line.push(Paint::Yellow, if index == 0 { "note: " } else { "      " }).plain(text);
            lines.push(line);
        }
    }
    if written < notes.len() && lines.len() < most {
        lines.push(rest(summary, notes.len() - written));
    }
    lines
}

/// `3 more notes: stackglass info app.glass`.
fn rest(summary: &Summary, count: usize) -> Line {
    let notes = counted(count as u64, "more note", "more notes");
    let shown = match &summary.file {
        Some(file) => format!("{notes}: stackglass info {}", sanitize(file)),
        None => format!("{notes}: stackglass info shows them"),
    };
    Line::from_text(Paint::Grey, shown)
}

fn buffer_full(recording: &Recording) -> Option<String> {
    let info = &recording.info;
    info.full.then(|| {
        format!(
            "the buffer was full after {} words, so sampling stopped before the program ended: \
             enlarge it with --n or sample less often with --delay (in the crate: stackglass::init)",
            grouped(info.capacity)
        )
    })
}

/// Samples whose time is CPU time.
fn awake(recording: &Recording) -> impl Iterator<Item = &Sample> {
    recording.samples.iter().filter(|sample| sample.state.uses_cpu())
}

/// The language of the code at which a stack is cut, by its source files, or else by its module.
fn language(recording: &Recording, sample: &Sample) -> Language {
    let (mut stack, mut outermost) = (sample.stack, None);
    while let Some((caller, location)) = recording.stacks.frame(stack) {
        (stack, outermost) = (caller, Some(location));
    }
    let Some(location) = outermost else { return Language::Unknown };
    let file = recording.symbols.frames_of(location).map(|frame| &*frame.file).find(|file| !file.is_empty());
    match file.and_then(|file| file.rsplit_once('.')) {
        Some((_, "rs")) => return Language::Rust,
        Some((_, "go")) => return Language::Go,
        Some((_, "c" | "cc" | "cpp" | "cxx" | "h" | "hh" | "hpp")) => return Language::C,
        _ => {}
    }
    let module = recording.stacks.location(location).module;
    let path = module.and_then(|module| recording.modules.get(module.0 as usize)).map(|module| &module.path);
    let notes = recording.symbols.notes().iter();
    notes.filter(|note| Some(&note.module) == path).map(|note| note.language).next().unwrap_or_default()
}

/// The function at which a stack is cut.
fn cut_in(recording: &Recording, sample: &Sample) -> Option<String> {
    let (mut stack, mut outermost) = (sample.stack, None);
    while let Some((caller, location)) = recording.stacks.frame(stack) {
        (stack, outermost) = (caller, Some(location));
    }
    let name = recording.symbols.frames_of(outermost?).last().map(|frame| &frame.func)?;
    (!name.is_empty()).then(|| sanitize(last_name(public_name(name))).into_owned())
}

/// The functions with the most time: `, such as memcpy and pow`.
fn such_as(functions: BTreeMap<String, u64>) -> String {
    let mut functions: Vec<(String, u64)> = functions.into_iter().collect();
    functions
        .sort_by(|(a, time_of_a), (b, time_of_b)| order::largest_first((*time_of_a, a), (*time_of_b, b)));
    let names: Vec<String> = functions.into_iter().take(2).map(|(name, _)| name).collect();
    if names.is_empty() { String::new() } else { format!(", such as {}", names.join(" and ")) }
}

fn cut_stacks(recording: &Recording, cpu: u64) -> Option<String> {
    let mut times: BTreeMap<Cut, u64> = BTreeMap::new();
    let mut compilers: BTreeMap<Language, u64> = BTreeMap::new();
    let mut functions: BTreeMap<String, u64> = BTreeMap::new();
    // Generated code has a note of its own.
    let generating = run_time_code::processes(recording);
    for sample in awake(recording) {
        let is_generated = run_time_code::is_cut_there(recording, sample, &generating);
        if let Some(cut) = why_incomplete(recording, sample).filter(|_| !is_generated) {
            *times.entry(cut).or_default() += sample.time.0;
            if cut == Cut::NO_RULE {
                *compilers.entry(language(recording, sample)).or_default() += sample.time.0;
                if let Some(function) = cut_in(recording, sample) {
                    *functions.entry(function).or_default() += sample.time.0;
                }
            }
        }
    }
    let all: u64 = times.values().sum();
    if (all as f64) < cpu as f64 * NOTICEABLE || all == 0 {
        return None;
    }
    let compiler = compilers.into_iter().max_by_key(|(_, time)| *time).map(|(language, _)| language);
    let mut times: Vec<(Cut, u64)> = times.into_iter().collect();
    times.sort_by(|(_, a), (_, b)| order::longest_first(*a, *b));
    let mut parts = Vec::new();
    times.retain(|(_, time)| *time as f64 >= all as f64 * CONSIDERABLE);
    let without_rule = times.iter().find(|(cut, _)| *cut == Cut::NO_RULE).map_or(0, |(_, time)| *time);
    let is_large = |cut: Cut| cut == Cut::NO_RULE && without_rule as f64 >= cpu as f64 * LARGE;
    for (cut, time) in times.iter().copied().take(3) {
        let (meaning, remedy) = cut_meaning(cut);
        let flag = match compiler.filter(|_| cut == Cut::NO_RULE) {
            Some(Language::Rust) => "; compile with -C force-unwind-tables=yes",
            // musl's own build turns them off.
            Some(Language::C | Language::Unknown) if is_large(cut) => {
                "; compile it with -fasynchronous-unwind-tables, which musl turns off"
            }
            Some(Language::C) => "; compile with -fasynchronous-unwind-tables",
            _ => "",
        };
        let where_cut = if is_large(cut) { such_as(std::mem::take(&mut functions)) } else { String::new() };
        let remedy = if remedy.is_empty() { String::new() } else { format!(" ({remedy}{flag})") };
        // The share of a single reason is that of all.
        let share = if times.len() == 1 { String::new() } else { percent_text(time, cpu) + " " };
        parts.push(format!("{share}{meaning}{where_cut}{remedy}"));
    }
    let whole = shares::whole(recording);
    Some(format!("{} of {whole} has incomplete stacks: {}", percent_text(all, cpu), parts.join("; ")))
}

/// Programs that translate other programs while they run them: the samples show the translator.
fn translated(recording: &Recording) -> Option<String> {
    let by_valgrind = |exe: &str| exe.contains("/valgrind/") && exe.ends_with("-linux");
    let by_qemu =
        |exe: &str| file_name(exe).starts_with("qemu-") && !file_name(exe).starts_with("qemu-system");
    let process =
        recording.processes.iter().find(|process| by_valgrind(&process.exe) || by_qemu(&process.exe))?;
    let name = sanitize(file_name(&process.exe)).into_owned();
    Some(format!(
        "{name} translates the program while running it: functions and times are those of the translator; record the \
         program without it"
    ))
}

/// The sum of a counter over all processes.
fn counter(recording: &Recording, label: &str) -> u64 {
    recording.processes.iter().filter_map(|process| process.counters.get(label)).sum()
}

fn ticks(recording: &Recording) -> Option<String> {
    let (taken, missed) = (counter(recording, "ticks"), counter(recording, "missed ticks"));
    let late = missed as f64 >= (taken + missed) as f64 * CONSIDERABLE && missed > 0;
    late.then(|| {
        format!(
            "{} of the ticks were missed because the machine was busy: times are correct, but fewer stacks were taken; a \
             longer --delay reduces the load",
            percent_text(missed, taken + missed)
        )
    })
}

/// Samples that should have been taken but were not.
fn not_sampled(recording: &Recording) -> Vec<String> {
    let mut notes = Vec::new();
    let blocked: Vec<_> = recording.threads.iter().filter(|thread| thread.blocked_signal).collect();
    if let Some(first) = blocked.first() {
        let (others, whose) = match blocked.len() - 1 {
            0 => (String::new(), "its"),
            more => (format!(" and in {}", counted(more as u64, "other thread", "other threads")), "their"),
        };
        notes.push(format!(
            "the sampling signal was blocked for a time in thread {}{others}, so some of {whose} stacks are missing; \
             if the program blocks it, it should leave SIGURG open; the C library does so while it starts threads and \
             processes",
            sanitize(&first.name)
        ));
    }
    for (label, what) in [
        (
            "events lost: stream full",
            "lost because the recorder could not keep up: sample less often with --delay",
        ),
        ("signals not answered in time", "missed because a thread did not answer the signal in time"),
        ("threads without a slot", "never sampled: too many threads at once"),
    ] {
        let lost = counter(recording, label);
        let taken: u64 = recording.samples.iter().map(|sample| u64::from(sample.hits)).sum();
        if lost as f64 > taken as f64 * NOTICEABLE {
            let (one, many) = if label.starts_with("threads") {
                ("thread was", "threads were")
            } else {
                ("stack was", "stacks were")
            };
            notes.push(format!("{} {what}", counted(lost, one, many)));
        }
    }
    notes
}

/// Unaccounted CPU time, and what may have caused it: that is not known.
fn missing(recording: &Recording, tree: &CpuTree<'_>) -> Option<String> {
    // A full buffer explains it and has its own note.
    if tree.unaccounted == 0 || recording.info.full {
        return None;
    }
    let all = tree.cpu().time;
    let seen = match all - tree.unaccounted {
        0 => "nothing was sampled; where it".to_owned(),
        sampled => format!("{} were sampled; where the rest", duration_text(sampled)),
    };
    let all = duration_text(all);
    let labels = recording.processes.first().map(|process| process.counters.keys());
    let outside = labels.is_some_and(|mut labels| labels.any(|label| label.starts_with(FROM_OUTSIDE)));
    let rest = match outside {
        true => {
            "the last moments of processes, and set-uid programs, which the kernel does not let others sample"
        }
        false => {
            "programs that cannot be sampled (static, musl, set-uid, after a change of user or root folder, with a \
             cleared environment, forked without the C library), and the first and last moments of processes"
        }
    };
    Some(format!(
        "the kernel counted {all} of CPU time (without the profiler's own); {seen} was used is not \
         known: possible are {rest}"
    ))
}
