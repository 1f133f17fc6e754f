//! `stackglass info [FILE]`: the contents of a recording and how its sampling went.

use crate::failure::Outcome;
use crate::info_alike::{self, Processes, span};
use crate::info_samples::{SampleTotals, seconds};
use crate::{info_json, input};
use clap::Args;
use stackglass_files::heapsnapshot::{self, StoredSnapshot};
use stackglass_profile::{
    AllocationSampling, End, Nanos, Process, ProcessIndex, Recording, RecordingInfo, TASKS_MODULE, Task,
    TimeRange, is_await_module, sanitize,
};
use stackglass_report::columns::wrap;
use stackglass_report::numbers::bytes_text;
use stackglass_report::summary;
use stackglass_view::Facts;
use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Width of notes behind their label.
const NOTE_COLUMNS: usize = 64;

/// Print the processes, threads, modules and counters of a recording, and all notes on what limits its results.
#[derive(Args, Debug)]
pub(crate) struct Flags {
    /// A .glass, .jlprof or folded file, or - for stdin [default: the newest *.glass in this folder]
    file: Option<PathBuf>,

    /// Show each thread and process, also where many have one name
    #[arg(long, conflicts_with = "json")]
    all: bool,

    /// Print it as one JSON object (docs/json.md)
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    let path = input::choose(flags.file.as_deref())?;
    let input = input::read(&path, TimeRange::default())?;
    let (name, recording) = (input.name.clone(), input.into_recording()?);
    let samples = SampleTotals::from_recording(&recording);
    let mut out = BufWriter::new(io::stdout().lock());
    if flags.json {
        info_json::write(&name, &recording, samples, &mut out)?;
        out.flush()?;
        return Ok(0);
    }
    writeln!(out, "{}", sanitize(&name))?;
    for (label, value) in info_rows(&recording, samples) {
        writeln!(out, "  {label:<13} {value}")?;
    }
    if input::is_recording(&path) {
        for snapshot in heap_snapshots(&path, &recording) {
            writeln!(out, "  heap snapshot {snapshot}")?;
        }
    }
    if !is_from_elsewhere(&recording) {
        write_notes(&recording, &mut out)?;
    }
    write_parts(&recording, flags.all, &mut out)?;
    out.flush()?;
    Ok(0)
}

/// What is said of a recording on a page: rows of a label and a text, and the text about its parts.
pub(crate) fn facts(path: &Path, recording: &Recording) -> io::Result<Facts> {
    let rows = info_rows(recording, SampleTotals::from_recording(recording)).into_iter();
    let mut rows: Vec<(String, String)> = rows.map(|(label, value)| (label.to_owned(), value)).collect();
    if input::is_recording(path) {
        rows.extend(
            heap_snapshots(path, recording).into_iter().map(|text| ("heap snapshot".to_owned(), text)),
        );
    }
    if !is_from_elsewhere(recording) {
        let notes = summary::notes(recording).into_iter();
        rows.extend(notes.map(|note| ("note".to_owned(), sanitize(&note).into_owned())));
    }
    let mut parts = Vec::new();
    write_parts(recording, false, &mut parts)?;
    Ok(Facts { rows, parts: String::from_utf8_lossy(&parts).trim_start_matches('\n').to_owned() })
}

/// Processes with their threads and counters, tasks and modules.
fn write_parts(recording: &Recording, all: bool, out: &mut dyn Write) -> io::Result<()> {
    if is_from_elsewhere(recording) {
        return write_threads(recording, out);
    }
    for processes in info_alike::processes(recording, all) {
        match processes {
            Processes::One(index) => {
                let process = &recording.processes[index.0 as usize];
                write_process(recording, index, process, all, out)?;
            }
            Processes::Alike(alike) => info_alike::write_processes(recording, &alike, out)?,
        }
    }
    write_tasks(recording, out)?;
    write_modules(recording, out)
}

/// Whether the samples name no program and no time: `.jlprof` files, folded stacks.
pub(crate) fn is_from_elsewhere(recording: &Recording) -> bool {
    recording.info.delay.0 == 0 && !recording.allocations.were_recorded()
}

/// Rows of a label and a text, remarks at the end.
fn info_rows(recording: &Recording, samples: SampleTotals) -> Vec<(&'static str, String)> {
    let samples = samples.text(is_from_elsewhere(recording), recording.is_walltime());
    let info: &RecordingInfo = &recording.info;
    let known = |value: String| match value.is_empty() || is_from_elsewhere(recording) {
        true => "unknown".to_owned(),
        false => value,
    };
    let end = match info.end {
        Some(End::Exit(status)) => format!("exited with status {status}"),
        Some(End::Signal(number)) => format!("ended by signal {number}"),
        Some(End::Running) => "still running".into(),
        None => "not recorded".into(),
    };
    let cpu = |cpu| format!("{}, counted by the kernel", seconds(cpu));
    let limit = match info.capacity {
        0 => "none".into(),
        words if info.full => format!("{words} words, reached: sampling stopped early"),
        words => format!("{words} words"),
    };
    let mut rows = vec![
        ("command", known(info.command.join(" "))),
        ("end", end),
        ("wall time", known(seconds(info.wall))),
        ("CPU time", info.kernel_cpu.map_or_else(|| known("that of the threads below".into()), cpu)),
        ("own CPU time", known(format!("{} (samplers and recorder)", seconds(info.own_cpu)))),
        ("delay", known(humantime::format_duration(Duration::from_nanos(info.delay.0)).to_string())),
        ("samples", samples),
        (
            "stacks",
            format!(
                "{} nodes, {} locations",
                recording.stacks.nodes().len(),
                recording.stacks.locations().len()
            ),
        ),
        ("limit", known(limit)),
        ("machine", known(info.machine.clone())),
        ("written by", if info.writer.is_empty() { "unknown".into() } else { info.writer.clone() }),
    ];
    rows.extend(info.remarks.iter().map(|remark| ("remark", remark.clone())));
    rows.iter_mut().for_each(|(_, value)| *value = sanitize(value).into_owned());
    rows
}

/// What limits the results, also what the summary has no room for.
fn write_notes(recording: &Recording, out: &mut dyn Write) -> io::Result<()> {
    for note in summary::notes(recording) {
        for (index, line) in wrap(&note, NOTE_COLUMNS).iter().enumerate() {
            writeln!(out, "  {:<13} {line}", if index == 0 { "note" } else { "" })?;
        }
    }
    Ok(())
}

/// What is said of each heap snapshot inside the recording.
fn heap_snapshots(path: &Path, recording: &Recording) -> Vec<String> {
    let stored = match heapsnapshot::stored_snapshots(path) {
        Ok(stored) => stored,
        Err(error) => return vec![sanitize(&error.to_string()).into_owned()],
    };
    let text = |snapshot: &StoredSnapshot| {
        let size = bytes_text(snapshot.size);
        let when = match snapshot.clock {
            0 => "at an unknown time".to_owned(),
            clock => format!("after {}", seconds(Nanos(clock.saturating_sub(recording.info.start.0)))),
        };
        let cut_off = if snapshot.is_complete { "" } else { ", incomplete" };
        format!("{size}, taken {when}{cut_off} (`stackglass heap show`)")
    };
    stored.iter().map(text).collect()
}

/// Threads with only a number and perhaps a name.
fn write_threads(recording: &Recording, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\n  {:>6}  name", "thread")?;
    for (number, thread) in recording.threads.iter().enumerate() {
        let name = if thread.name.is_empty() { "unknown" } else { &*thread.name };
        writeln!(out, "  {:>6}  {}", number + 1, sanitize(name))?;
    }
    Ok(())
}

fn write_process(
    recording: &Recording,
    index: ProcessIndex,
    process: &Process,
    all: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let from = recording.info.start;
    let kind = if process.forked { ", forked" } else { "" };
    let parent = match process.parent {
        0 => "parent unknown".to_owned(),
        parent => format!("parent {parent}"),
    };
    writeln!(out, "\nprocess {} ({parent}{kind}): {}", process.pid, sanitize(&process.exe))?;
    if !process.arguments.is_empty() {
        writeln!(out, "  arguments     {}", sanitize(&process.arguments.join(" ")))?;
    }
    writeln!(out, "  time          {}", span(process.start, process.end, from))?;
    info_alike::write_threads(recording, index, all, out)?;
    for (label, n) in &process.counters {
        match label.strip_prefix("sampler: ") {
            Some(how) => writeln!(out, "  sampler       {}", sanitize(how))?,
            None => writeln!(out, "  {n:>12} {}", sanitize(label))?,
        }
    }
    write_allocations(recording, index, out)
}

/// One line about the recorded allocations of a process, if there are any.
fn write_allocations(recording: &Recording, index: ProcessIndex, out: &mut dyn Write) -> io::Result<()> {
    let allocations = &recording.allocations;
    for process in allocations.processes.iter().filter(|process| process.process == index) {
        let how = match process.sampling {
            AllocationSampling::Every => "every one".to_owned(),
            AllocationSampling::Rate(rate) | AllocationSampling::ScaledRate(rate) => {
                format!("each with probability {rate}")
            }
            AllocationSampling::Stacks(share) => format!("every one, and stacks of {:.2} %", share * 100.0),
            AllocationSampling::Bytes(bytes) => format!("one sample in {bytes} bytes"),
        };
        let groups = allocations.groups.iter().filter(|group| group.process == index).count();
        let when = span(process.begin, Some(process.end), recording.info.start);
        write!(out, "  allocations   {how}, {groups} groups, {when}, {} lost", process.lost)?;
        if process.without_stack > 0 {
            write!(out, ", {} without a stack", process.without_stack)?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Named async tasks; tasks of one name and place share a line.
fn write_tasks(recording: &Recording, out: &mut dyn Write) -> io::Result<()> {
    if recording.tasks.is_empty() {
        return Ok(());
    }
    let mut kinds: BTreeMap<(&str, &str, u32), Vec<&Task>> = BTreeMap::new();
    for task in &recording.tasks {
        kinds.entry((&task.name, &task.file, task.line)).or_default().push(task);
    }
    writeln!(out, "\n{:>20}  name, place where it was created", "task")?;
    for ((name, file, line), tasks) in kinds {
        let which = match tasks[..] {
            [task] => format!("0x{:016x}", task.id.0),
            _ => format!("{} tasks", tasks.len()),
        };
        write!(out, "  {which:>18}  {}", sanitize(name))?;
        if !file.is_empty() {
            write!(out, "  {}:{line}", sanitize(file))?;
        }
        match tasks.iter().map(|task| task.waited).max().unwrap_or_default() {
            Nanos(0) => writeln!(out)?,
            waited => writeln!(out, "  waited up to {}", seconds(waited))?,
        }
    }
    Ok(())
}

fn write_modules(recording: &Recording, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\nmodules")?;
    for module in recording
        .modules
        .iter()
        .filter(|module| &*module.path != TASKS_MODULE && !is_await_module(&module.path))
    {
        let id: String = module.build_id.iter().map(|byte| format!("{byte:02x}")).collect();
        let id = if id.is_empty() { "no build id".into() } else { id };
        writeln!(out, "  {}  {id}", sanitize(&module.path))?;
    }
    Ok(())
}
