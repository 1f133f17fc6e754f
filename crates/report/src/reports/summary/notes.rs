//! The notes at the end: what limits the results, and what to do about it.

use super::Summary;
use super::cut_reasons::cut_reason;
use super::run_time_code;
use crate::kinds;
use crate::order;
use crate::queries::cpu_tree::CpuTree;
use crate::text::columns::wrap;
use crate::text::numbers::{counted, duration_text, grouped, percent_text};
use crate::text::style::{Line, Paint};
use stackglass_profile::frame::file_name;
use stackglass_profile::symbols::Missing;
use stackglass_profile::{Cut, Recording, Sample, harmless};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Prefix of the counter label of recordings made from outside, by perf events.
const FROM_OUTSIDE: &str = "sampler: perf events";
/// Minimum share for a note.
const NOTICEABLE: f64 = 0.01;
/// Minimum share for a note on something that only makes the result coarser.
const CONSIDERABLE: f64 = 0.05;

pub(super) fn write(
    summary: &Summary,
    recording: &Recording,
    tree: &CpuTree<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let cpu = tree.cpu().time;
    let mut notes = Vec::new();
    notes.extend(buffer_full(recording));
    notes.extend(cut_stacks(recording, cpu));
    notes.extend(translated(recording));
    notes.extend(poor_names(recording, cpu));
    notes.extend(ticks(recording));
    notes.extend(not_sampled(recording));
    notes.extend(missing(recording, tree));
    notes.extend(recording.info.remarks.iter().map(|remark| harmless(remark).into_owned()));
    for note in notes {
        for (index, text) in wrap(&note, summary.cols.saturating_sub(6)).into_iter().enumerate() {
            let mut line = Line::new();
            line.push(Paint::Yellow, if index == 0 { "note: " } else { "      " }).plain(text);
            line.cut(summary.cols).write(summary.style, out)?;
        }
    }
    Ok(())
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

fn cut_stacks(recording: &Recording, cpu: u64) -> Option<String> {
    let mut times: BTreeMap<Cut, u64> = BTreeMap::new();
    for sample in awake(recording) {
        if let Some(cut) = sample.cut {
            *times.entry(cut).or_default() += sample.time.0;
        }
    }
    let all: u64 = times.values().sum();
    if (all as f64) < cpu as f64 * NOTICEABLE || all == 0 {
        return None;
    }
    let mut times: Vec<(Cut, u64)> = times.into_iter().collect();
    times.sort_by(|(_, a), (_, b)| order::longest_first(*a, *b));
    let mut parts = Vec::new();
    for (cut, time) in times.into_iter().take(3) {
        let (meaning, remedy) = match cut_reason(cut) {
            Some(reason) if cut == Cut::NO_MODULE => run_time_code::explained(recording, reason),
            Some(reason) => (Cow::Borrowed(reason.meaning), reason.remedy),
            None => (Cow::Borrowed("for a reason that this version does not know"), ""),
        };
        let remedy = if remedy.is_empty() { String::new() } else { format!(" ({remedy})") };
        parts.push(format!("{} {meaning}{remedy}", percent_text(time, cpu)));
    }
    Some(format!("{} of the CPU time has incomplete stacks: {}", percent_text(all, cpu), parts.join("; ")))
}

/// Where to get debug symbols of installed programs and libraries.
const PACKAGE: &str = "Debian: the package ending in -dbgsym or -dbg";

/// Whether a file belongs to the system, so that the reader cannot rebuild it.
fn is_packaged(path: &str) -> bool {
    let path = path.strip_prefix("/usr").unwrap_or(path);
    ["/bin/", "/sbin/", "/lib/", "/lib32/", "/lib64/", "/libexec/", "/games/"]
        .iter()
        .any(|folder| path.starts_with(folder))
}

/// Programs that translate other programs while they run them: the samples show the translator.
fn translated(recording: &Recording) -> Option<String> {
    let by_valgrind = |exe: &str| exe.contains("/valgrind/") && exe.ends_with("-linux");
    let by_qemu =
        |exe: &str| file_name(exe).starts_with("qemu-") && !file_name(exe).starts_with("qemu-system");
    let process =
        recording.processes.iter().find(|process| by_valgrind(&process.exe) || by_qemu(&process.exe))?;
    let name = harmless(file_name(&process.exe)).into_owned();
    Some(format!(
        "{name} translates the program while running it: functions and times are those of the translator; record the \
         program without it"
    ))
}

/// Modules with much own time and no names of functions or lines.
fn poor_names(recording: &Recording, cpu: u64) -> Vec<String> {
    let mut times = vec![0_u64; recording.modules.len()];
    for sample in awake(recording) {
        let leaf = recording.stacks.frame(sample.stack).map(|(_, leaf)| recording.stacks.location(leaf));
        if let Some(module) = leaf.and_then(|leaf| leaf.module)
            && let Some(time) = times.get_mut(module.0 as usize)
        {
            *time += sample.time.0;
        }
    }
    let mut notes: Vec<(u64, String)> = Vec::new();
    for note in recording.symbols.notes().iter().filter(|note| !kinds::is_recorder(&note.module)) {
        let same = recording.modules.iter().position(|module| module.path == note.module);
        let time = same.map_or(0, |index| times[index]);
        let least = if note.missing == Missing::DebugInfo { CONSIDERABLE } else { NOTICEABLE };
        if time == 0 || (time as f64) < cpu as f64 * least {
            continue;
        }
        let name = harmless(file_name(&note.module)).into_owned();
        let program = recording.processes.iter().any(|process| process.exe == note.module);
        let readers_own = program && !is_packaged(&note.module);
        let what = match (note.missing, readers_own) {
            (Missing::DebugInfo, true) => format!(
                "{name} has no line tables, so inlined functions and lines are missing: set \
                 debug = \"line-tables-only\" under [profile.release] (C: -g1)"
            ),
            (Missing::DebugInfo, false) => {
                format!("{name} has no line tables: install its debug symbols ({PACKAGE})")
            }
            (Missing::Names, true) => {
                format!(
                    "{name} is stripped, so functions are named by their addresses: set strip = false and debug = \"line-tables-only\""
                )
            }
            (Missing::Names, false) => format!(
                "{name} is stripped, so only exported functions have names: install its debug symbols ({PACKAGE})"
            ),
            (Missing::File, _) => format!("{name} could not be read, so its functions have no names"),
            (Missing::Changed, _) => format!(
                "{name} has changed since it was profiled, so its functions have no names: record again"
            ),
        };
        notes.push((time, format!("{} of the {}: {what}", percent_text(time, cpu), super::whole(recording))));
    }
    notes.sort_by(|(a, _), (b, _)| order::longest_first(*a, *b));
    notes.into_iter().take(3).map(|(_, note)| note).collect()
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
            more => (format!(" and {}", counted(more as u64, "other thread", "other threads")), "their"),
        };
        notes.push(format!(
            "thread {}{others} blocked the sampling signal, so {whose} stacks are missing: unblock SIGURG",
            harmless(&first.name)
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

/// The likely causes of unaccounted CPU time.
fn missing(recording: &Recording, tree: &CpuTree<'_>) -> Option<String> {
    // A full buffer explains it and has its own note.
    if tree.unaccounted == 0 || recording.info.full {
        return None;
    }
    let all = tree.cpu().time;
    let seen = match all - tree.unaccounted {
        0 => "nothing was sampled: it".to_owned(),
        sampled => format!("{} were sampled: the rest", duration_text(sampled)),
    };
    let all = duration_text(all);
    let labels = recording.processes.first().map(|process| process.counters.keys());
    let outside = labels.is_some_and(|mut labels| labels.any(|label| label.starts_with(FROM_OUTSIDE)));
    let rest = match outside {
        true => {
            "the last moments of processes and in set-uid programs, which the kernel does not let others sample"
        }
        false => {
            "programs that cannot be sampled (static, musl, set-uid, after a change of user or root folder, with a \
             cleared environment, forked without the C library) and in the first and last moments of processes"
        }
    };
    Some(format!("the kernel counted {all} of CPU time (without the profiler's own); {seen} is in {rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packaged_programs() {
        for path in ["/usr/bin/python3.11", "/bin/xz", "/usr/lib/jvm/bin/java", "/usr/libexec/cc1"] {
            assert!(is_packaged(path), "{path}");
        }
        for path in ["/usr/local/bin/tool", "/home/me/bin/tool", "/srv/server", "/library/tool", "server"] {
            assert!(!is_packaged(path), "{path}");
        }
    }
}
