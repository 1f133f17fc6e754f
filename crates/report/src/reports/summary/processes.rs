//! One line for each process with noticeable CPU time, if there are several processes.

use super::Summary;
use crate::order;
use crate::queries::cpu_tree::CpuTree;
use crate::text::numbers::{counted, duration_text, grouped, percent, percent_text};
use crate::text::style::{Line, Paint};
use stackglass_profile::{Recording, harmless};

/// Number of processes listed by default.
const LISTED: usize = 6;

/// At most `most` lines; none if even the header and one process do not fit.
pub(super) fn lines(summary: &Summary, recording: &Recording, tree: &CpuTree<'_>, most: usize) -> Vec<Line> {
    if recording.processes.len() < 2 {
        return Vec::new();
    }
    let mut times = vec![0_u64; recording.processes.len()];
    for sample in recording.samples.iter().filter(|sample| sample.state.uses_cpu()) {
        if let Some(thread) = recording.thread(sample.thread)
            && let Some(time) = times.get_mut(thread.process.0 as usize)
        {
            *time += sample.time.0;
        }
    }
    // Without CPU time the table would be empty.
    if times.iter().all(|time| *time == 0) && !summary.everything {
        return Vec::new();
    }
    let cpu = tree.cpu().time;
    let mut order: Vec<usize> = (0..times.len()).collect();
    order.sort_by(|a, b| order::largest_first((times[*a], a), (times[*b], b)));
    let noticeable =
        |index: &usize| times[*index] as f64 >= cpu as f64 * super::NOTICEABLE && times[*index] > 0;
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
    let has_times = super::has_times(recording);
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
        line.plain(harmless(&process.command()).into_owned());
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
