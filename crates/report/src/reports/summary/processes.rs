//! One line for each process with noticeable CPU time, if there are several processes.

use super::{Summary, shares};
use crate::order;
use crate::queries::cpu_tree::CpuTree;
use crate::text::numbers::{counted, duration_text, grouped, percent, percent_text};
use crate::text::style::{Line, Paint};
use stackglass_profile::{Process, Recording, sanitize};

/// Number of processes listed by default.
const LISTED: usize = 6;

/// Processes with noticeable CPU time, the busiest first.
pub(super) fn noticeable<'r>(recording: &'r Recording, tree: &CpuTree<'_>) -> Vec<&'r Process> {
    let times = times(recording);
    let least = tree.cpu().time as f64 * shares::LEAST_SHOWN;
    let is_noticeable = |index: &usize| times[*index] > 0 && times[*index] as f64 >= least;
    let order = by_time(&times).into_iter().filter(is_noticeable);
    order.map(|index| &recording.processes[index]).collect()
}

/// By process: its CPU time.
fn times(recording: &Recording) -> Vec<u64> {
    let mut times = vec![0_u64; recording.processes.len()];
    for sample in recording.samples.iter().filter(|sample| sample.state.uses_cpu()) {
        if let Some(thread) = recording.thread(sample.thread)
            && let Some(time) = times.get_mut(thread.process.0 as usize)
        {
            *time += sample.time.0;
        }
    }
    times
}

/// The numbers of the processes, the busiest first.
fn by_time(times: &[u64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..times.len()).collect();
    order.sort_by(|a, b| order::largest_first((times[*a], a), (times[*b], b)));
    order
}

/// At most `most` lines; none if even the header and one process do not fit.
pub(super) fn lines(summary: &Summary, recording: &Recording, tree: &CpuTree<'_>, most: usize) -> Vec<Line> {
    if recording.processes.len() < 2 {
        return Vec::new();
    }
    let times = times(recording);
    // Without CPU time the table would be empty.
    if times.iter().all(|time| *time == 0) && !summary.everything {
        return Vec::new();
    }
    let cpu = tree.cpu().time;
    let order = by_time(&times);
    let noticeable =
        |index: &usize| times[*index] as f64 >= cpu as f64 * shares::LEAST_SHOWN && times[*index] > 0;
    let listed = match summary.everything {
        true => order.len(),
        false => order.iter().filter(|index| noticeable(index)).count().min(LISTED),
    };
    // The header, and the line for all others.
    let around = 1 + usize::from(listed < order.len() || 1 + listed > most);
    let listed = listed.min(most.saturating_sub(around));
    if listed == 0 {
        return Vec::new();
    }
    let has_times = shares::has_times(recording);
    let columns = match recording.is_walltime() {
        _ if !has_times => "    %   samples      pid  process",
        true => "    %      time      pid  process",
        false => "    %       CPU      pid  process",
    };
    let mut header = Line::new();
    header.push(Paint::Grey, columns);
    let mut lines = vec![header];
    for index in &order[..listed] {
        let process = &recording.processes[*index];
        let mut line = Line::new();
        line.plain(format!(
            "{:>5.1}  {:>8}  {:>7}  ",
            percent(times[*index], cpu),
            if has_times { duration_text(times[*index]) } else { grouped(times[*index]) },
            process.pid
        ));
        line.plain(sanitize(process.command().trim_end()).into_owned());
        lines.push(line);
    }
    let rest = &order[listed..];
    if !rest.is_empty() {
        let time: u64 = rest.iter().map(|index| times[*index]).sum();
        let mut line = Line::new();
        let others = counted(rest.len() as u64, "other process", "other processes");
        line.push(Paint::Grey, format!("{others}, {} together", percent_text(time, cpu)));
        lines.push(line);
    }
    lines
}
