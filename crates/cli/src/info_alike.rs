//! Processes and threads of `stackglass info`: many of one name are one row with their number.

use crate::info_samples::{seconds, thread_cpu};
use stackglass_profile::frame::file_name;
use stackglass_profile::{Nanos, ProcessIndex, Recording, Thread, sanitize};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// So many of one name have a row each.
const APART: usize = 4;
/// Most process ids that are named.
const NAMED: usize = 4;

/// Processes of one program, or a single one.
pub(crate) enum Processes {
    /// It is shown with its threads.
    One(ProcessIndex),
    /// They share a few lines.
    Alike(Vec<ProcessIndex>),
}

/// The processes in their order; those of a program that has many are where its first one is.
pub(crate) fn processes(recording: &Recording, all: bool) -> Vec<Processes> {
    let mut of_program: BTreeMap<&str, Vec<ProcessIndex>> = BTreeMap::new();
    for (index, process) in recording.processes.iter().enumerate() {
        of_program.entry(&process.exe).or_default().push(ProcessIndex(index as u32));
    }
    let mut found = Vec::new();
    for (index, process) in recording.processes.iter().enumerate() {
        let alike = &of_program[&*process.exe];
        match alike.len() {
            many if many > APART && !all => {
                if alike[0].0 as usize == index {
                    found.push(Processes::Alike(alike.clone()));
                }
            }
            _ => found.push(Processes::One(ProcessIndex(index as u32))),
        }
    }
    found
}

/// Writes processes that share a few lines.
pub(crate) fn write_processes(
    recording: &Recording,
    alike: &[ProcessIndex],
    out: &mut dyn Write,
) -> io::Result<()> {
    let processes = || alike.iter().map(|index| &recording.processes[index.0 as usize]);
    let Some(first) = processes().next() else { return Ok(()) };
    let ids: Vec<String> = processes().take(NAMED).map(|process| process.pid.to_string()).collect();
    writeln!(
        out,
        "\n{} processes of {} (ids {}, …; --all shows each): {}",
        alike.len(),
        sanitize(file_name(&first.exe)),
        ids.join(", "),
        sanitize(&first.exe)
    )?;
    let start = processes().map(|process| process.start).min().unwrap_or_default();
    let end = processes().map(|process| process.end).max_by_key(|end| end.unwrap_or(Nanos(u64::MAX)));
    writeln!(out, "  time          {}", span(start, end.flatten(), recording.info.start))?;
    let is_theirs = |thread: &&Thread| alike.contains(&thread.process);
    let threads: Vec<&Thread> = recording.threads.iter().filter(is_theirs).collect();
    let cpu = total_cpu(recording, threads.iter().copied());
    writeln!(out, "  CPU           {cpu} in {} threads", threads.len())
}

/// Writes the threads of a process, as rows below a header.
pub(crate) fn write_threads(
    recording: &Recording,
    index: ProcessIndex,
    all: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut of_name: BTreeMap<&str, Vec<(usize, &Thread)>> = BTreeMap::new();
    let threads = || recording.threads.iter().enumerate().filter(|(_, thread)| thread.process == index);
    for (number, thread) in threads() {
        of_name.entry(stem(&thread.name)).or_default().push((number, thread));
    }
    writeln!(out, "  {:>6}  {:<15}  {:>8}  {:>10}  time", "thread", "name", "tid", "CPU")?;
    for (number, thread) in threads() {
        let alike = &of_name[stem(&thread.name)];
        if alike.len() <= APART || all {
            let cpu = total_cpu(recording, [thread].into_iter());
            let when = span(thread.start, thread.end, recording.info.start);
            let blocked = if thread.blocked_signal { ", blocked the signal" } else { "" };
            writeln!(
                out,
                "  {:>6}  {:<15}  {:>8}  {cpu:>10}  {when}{blocked}",
                number + 1,
                sanitize(&thread.name),
                thread.tid
            )?;
        } else if alike[0].0 == number {
            let is_same = alike.iter().all(|(_, other)| other.name == thread.name);
            let name = format!("{}{}", stem(&thread.name), if is_same { "" } else { "*" });
            let name = if is_same { sanitize(&thread.name) } else { sanitize(&name) };
            let cpu = total_cpu(recording, alike.iter().map(|(_, thread)| *thread));
            let start = alike.iter().map(|(_, thread)| thread.start).min().unwrap_or_default();
            let end =
                alike.iter().map(|(_, thread)| thread.end).max_by_key(|end| end.unwrap_or(Nanos(u64::MAX)));
            let when = span(start, end.flatten(), recording.info.start);
            let blocked = match alike.iter().filter(|(_, thread)| thread.blocked_signal).count() {
                0 => String::new(),
                some => format!(", {some} blocked the signal"),
            };
            let count = format!("{} ×", alike.len());
            writeln!(out, "  {count:>6}  {name:<15}  {:>8}  {cpu:>10}  {when}{blocked}", "")?;
        }
    }
    Ok(())
}

/// The name of a thread without the number at its end.
fn stem(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit())
}

/// The CPU time of threads together.
fn total_cpu<'a>(recording: &Recording, threads: impl Iterator<Item = &'a Thread>) -> String {
    let sum = threads.map(|thread| thread_cpu(recording, thread)).try_fold(0_u64, |sum, cpu| {
        let cpu: Option<Nanos> = cpu;
        cpu.map(|cpu| sum.saturating_add(cpu.0))
    });
    sum.map_or("unknown".to_owned(), |sum| seconds(Nanos(sum)))
}

/// From when to when, since the start of the recording.
pub(crate) fn span(start: Nanos, end: Option<Nanos>, zero: Nanos) -> String {
    let at = |time: Nanos| (time.0 as f64 - zero.0 as f64) * 1e-9;
    match end {
        Some(end) => format!("{:.3} s to {:.3} s", at(start), at(end)),
        None => format!("{:.3} s to the end", at(start)),
    }
}
