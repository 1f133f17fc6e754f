//! Sleeping threads: one line for each kind, with names, share of time and call site.

use super::Summary;
use super::tree_text::short_location;
use crate::order;
use crate::queries::call_site::{CallLine, CallSite, call_site};
use crate::queries::cpu_tree::CpuTree;
use crate::text::columns::{cut_right, pad_right, width};
use crate::text::numbers::percent;
use crate::text::short::{cut_name, last_name, short_function, tail};
use crate::text::style::{Line, Paint};
use foldhash::HashMap;
use stackglass_profile::{Recording, StackId, State, ThreadNumber, sanitize};

/// Number of kinds listed by default.
const LISTED: usize = 8;
/// A thread that slept for less than this share of its time is not listed.
const SLEEPY: f64 = 0.05;

/// Threads with similar names that slept at the same call site.
struct Kind {
    names: Vec<String>,
    awake: u64,
    asleep: u64,
    /// Of this, at the call site.
    at_site: u64,
    site: CallSite,
}

/// At most `most` lines.
pub(super) fn lines(summary: &Summary, recording: &Recording, tree: &CpuTree<'_>, most: usize) -> Vec<Line> {
    let kinds = kinds(recording, tree, summary);
    if kinds.is_empty() || most == 0 {
        return Vec::new();
    }
    let listed = if summary.everything { kinds.len() } else { kinds.len().min(LISTED) };
    let more = usize::from(listed < kinds.len() || listed > most);
    let listed = listed.min(most.saturating_sub(more)).max(1);
    let mut lines = Vec::new();
    let labels: Vec<String> = kinds[..listed].iter().map(label).collect();
    let wide = labels.iter().map(|label| width(label)).max().unwrap_or(0).min(summary.cols / 3);
    for (kind, label) in kinds.iter().zip(&labels) {
        let share = percent(kind.at_site, kind.asleep + kind.awake);
        let mut line = Line::new();
        line.push(Paint::Grey, pad_right(&cut_right(label, wide), wide));
        line.push(Paint::Grey, format!("  asleep  {share:>3.0} % in "));
        let room = summary.cols.saturating_sub(line.width());
        let (shown, caller) = match (&kind.site.callee, &kind.site.caller) {
            (Some(callee), caller) => (tail(callee), caller.as_ref().map_or("", |caller| tail(caller))),
            (None, Some(caller)) => (tail(caller), ""),
            (None, None) => ("unnamed code", ""),
        };
        let arrow = if caller.is_empty() { 0 } else { 4 };
        let left = room.saturating_sub(width(shown) + arrow + width(caller) + 2);
        let (location, link) = match &kind.site.line {
            Some(CallLine { file, line: number }) => {
                (short_location(recording, file, *number, left.max(room / 4)), summary.link(file, *number))
            }
            None => (String::new(), None),
        };
        let gap = if location.is_empty() { 0 } else { 2 };
        let room = room.saturating_sub(width(&location) + gap);
        let for_shown = room.saturating_sub(arrow + width(caller)).max(room / 2);
        line.push(Paint::Grey, short_function(shown, for_shown));
        if !caller.is_empty() {
            let room = room.saturating_sub(width(shown).min(for_shown) + arrow);
            let caller = if width(caller) <= room { caller } else { last_name(caller) };
            line.push(Paint::Grey, format!(" <- {}", cut_name(caller, room)));
        }
        line.plain(" ".repeat(gap)).push_linked(Paint::Grey, location, link);
        lines.push(line);
    }
    if kinds.len() > listed && listed < most {
        let mut line = Line::new();
        let more: usize = kinds[listed..].iter().map(|kind| kind.names.len()).sum();
        line.push(Paint::Grey, format!("{more} more sleeping threads: --all shows them"));
        lines.push(line);
    }
    lines
}

/// The names of the threads, and how many there are.
fn label(kind: &Kind) -> String {
    match &kind.names[..] {
        [one] => one.clone(),
        [first, rest @ ..] if rest.iter().all(|name| name == first) => {
            format!("{first} ×{}", kind.names.len())
        }
        [first, ..] => {
            format!("{}* ×{}", first.trim_end_matches(|c: char| c.is_ascii_digit()), kind.names.len())
        }
        [] => String::new(),
    }
}

/// Whether a thread waits for processes that it started. The tree shows what these do.
fn waits_for_child(site: &CallSite) -> bool {
    const WAITS: [&str; 5] = ["wait", "wait3", "wait4", "waitid", "waitpid"];
    site.callee.as_deref().is_some_and(|callee| {
        let name = last_name(callee);
        WAITS.contains(&name.strip_prefix("__GI_").unwrap_or(name).trim_start_matches('_'))
    })
}

fn kinds(recording: &Recording, tree: &CpuTree<'_>, summary: &Summary) -> Vec<Kind> {
    #[derive(Default)]
    struct ThreadTimes {
        awake: u64,
        asleep: u64,
        stacks: HashMap<StackId, u64>,
    }
    let mut times: Vec<ThreadTimes> = Vec::new();
    times.resize_with(recording.threads.len() + 1, ThreadTimes::default);
    for sample in &recording.samples {
        let Some(own) = times.get_mut(sample.thread.0 as usize) else { continue };
        if sample.state == State::Asleep {
            own.asleep += sample.time.0;
            *own.stacks.entry(sample.stack).or_default() += sample.time.0;
        } else {
            own.awake += sample.time.0;
        }
    }
    let mut kinds: Vec<Kind> = Vec::new();
    let mut index: HashMap<(String, CallSite), usize> = HashMap::default();
    for (number, own) in times.iter().enumerate().skip(1) {
        let life = own.asleep + own.awake;
        if own.asleep == 0 || (own.asleep as f64) < life as f64 * SLEEPY {
            continue;
        }
        let Some(thread) = recording.thread(ThreadNumber(number as u32)) else { continue };
        // Call sites are compared, not stacks: different stacks may lead to the same wait.
        let mut sites: HashMap<CallSite, u64> = HashMap::default();
        // Some sleeps have no stack.
        for (stack, time) in own.stacks.iter().filter(|(stack, _)| **stack != StackId(0)) {
            *sites.entry(call_site(recording, &tree.names, *stack)).or_default() += time;
        }
        let longest = sites.into_iter().max_by(|a, b| a.1.cmp(&b.1).then_with(|| b.0.cmp(&a.0)));
        let Some((site, at_site)) = longest else { continue };
        if !summary.everything && recording.processes.len() > 1 && waits_for_child(&site) {
            continue;
        }
        let name = if thread.name.is_empty() {
            format!("thread {number}")
        } else {
            sanitize(&thread.name).into_owned()
        };
        let stem = match summary.everything {
            true => format!("{number}"),
            false => name.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned(),
        };
        let at = *index.entry((stem, site.clone())).or_insert_with(|| {
            kinds.push(Kind { names: Vec::new(), awake: 0, asleep: 0, at_site: 0, site });
            kinds.len() - 1
        });
        kinds[at].names.push(name);
        kinds[at].awake += own.awake;
        kinds[at].asleep += own.asleep;
        kinds[at].at_site += at_site;
    }
    kinds.sort_by(|a, b| order::longest_first(a.asleep, b.asleep));
    kinds
}
