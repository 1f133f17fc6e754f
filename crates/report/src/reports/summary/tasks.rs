//! One line for each kind of async task with noticeable time, if the program has tasks.
//!
//! Tasks with the same name and place of creation are one kind: a server may have one task for each connection.

use super::{Summary, shares};
use crate::order;
use crate::queries::cpu_tree::CpuTree;
use crate::text::numbers::{counted, duration_text, grouped, percent, percent_text};
use crate::text::style::{Line, Paint};
use foldhash::{HashMap, HashSet};
use stackglass_profile::{Recording, TaskId, sanitize};
use std::collections::BTreeMap;

/// Number of kinds listed by default.
const LISTED: usize = 6;

/// What tasks of one kind have in common.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct NamedKind<'a> {
    name: &'a str,
    file: &'a str,
    line: u32,
}

/// A kind of tasks; `None` for tasks without a name.
type Kind<'a> = Option<NamedKind<'a>>;

#[derive(Default)]
struct Sum {
    time: u64,
    /// The part of `time` in which they waited.
    waiting: u64,
    longest: u64,
    tasks: HashSet<u64>,
}

/// At most `most` lines; none if even the header and one kind do not fit.
pub(super) fn lines(summary: &Summary, recording: &Recording, tree: &CpuTree<'_>, most: usize) -> Vec<Line> {
    let known: HashMap<TaskId, Kind<'_>> = recording
        .tasks
        .iter()
        .map(|task| (task.id, Some(NamedKind { name: &task.name, file: &task.file, line: task.line })))
        .collect();
    let mut sums: BTreeMap<Kind<'_>, Sum> = BTreeMap::new();
    let mut outside = 0;
    for sample in recording.samples.iter().filter(|sample| sample.state.uses_cpu()) {
        if sample.task == 0 {
            outside += sample.time.0;
            continue;
        }
        let kind = known.get(&TaskId(sample.task)).copied().flatten();
        let sum = sums.entry(kind).or_default();
        sum.time += sample.time.0;
        if recording.is_waiting(sample.stack) {
            sum.waiting += sample.time.0;
        }
        sum.tasks.insert(sample.task);
    }
    // Samples of Julia all have a task, and none has a name.
    let has_times = shares::has_times(recording);
    if sums.is_empty() || (!has_times && sums.keys().all(Option::is_none)) {
        return Vec::new();
    }
    for task in &recording.tasks {
        if let Some(sum) = sums.get_mut(&known.get(&task.id).copied().flatten()) {
            sum.longest = sum.longest.max(task.waited.0);
        }
    }
    let walltime = recording.is_walltime();
    let cpu = tree.cpu().time;
    let mut order: Vec<(Kind<'_>, Sum)> = sums.into_iter().collect();
    order.sort_by(|(_, a), (_, b)| order::longest_first(a.time, b.time));
    let noticeable = |time: u64| time > 0 && time as f64 >= cpu as f64 * shares::LEAST_SHOWN;
    let listed = match summary.everything {
        true => order.len(),
        false => order.iter().filter(|(_, sum)| noticeable(sum.time)).count().min(LISTED),
    };
    // The header, the line for all others, and the one for what is outside.
    let around = 1 + usize::from(noticeable(outside));
    let around = around + usize::from(listed < order.len() || around + listed > most);
    let listed = listed.min(most.saturating_sub(around));
    if listed == 0 {
        return Vec::new();
    }
    let mut header = Line::new();
    let amount = |time: u64| if has_times { duration_text(time) } else { grouped(time) };
    let columns = match walltime {
        _ if !has_times => "    %   samples    tasks  name",
        true => "    %      time    tasks  waiting  longest  name",
        false => "    %       CPU    tasks  name",
    };
    header.push(Paint::Grey, columns);
    let mut lines = vec![header];
    for (kind, sum) in &order[..listed] {
        let mut line = Line::new();
        let (share, time) = (percent(sum.time, cpu), amount(sum.time));
        line.plain(format!("{share:>5.1}  {time:>8}  {:>7}  ", sum.tasks.len()));
        if walltime {
            let waiting = percent_text(sum.waiting, sum.time);
            let longest = if sum.longest == 0 { "–".to_owned() } else { duration_text(sum.longest) };
            line.plain(format!("{waiting:>7}  {longest:>7}  "));
        }
        match kind {
            Some(NamedKind { name, file, line: number }) => {
                line.plain(sanitize(name).into_owned());
                if *number > 0 {
                    let place = super::tree_text::short_location(recording, file, i64::from(*number), 32);
                    let link = summary.link(file, i64::from(*number));
                    line.plain("  ").linked(place, link);
                }
            }
            None => drop(line.push(Paint::Grey, "unnamed")),
        }
        lines.push(line);
    }
    let rest = &order[listed..];
    if !rest.is_empty() {
        let time: u64 = rest.iter().map(|(_, sum)| sum.time).sum();
        let others = counted(rest.len() as u64, "other kind of task", "other kinds of tasks");
        let mut line = Line::new();
        line.push(Paint::Grey, format!("{others}, {} together", percent_text(time, cpu)));
        lines.push(line);
    }
    if noticeable(outside) {
        let (share, time) = (percent(outside, cpu), amount(outside));
        let mut line = Line::new();
        let room = if walltime { 18 } else { 0 };
        line.plain(format!("{share:>5.1}  {time:>8}           {:room$}", ""));
        line.push(Paint::Grey, "outside tasks");
        lines.push(line);
    }
    lines
}
