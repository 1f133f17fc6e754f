//! Sleeping threads, one line for each kind: who, how much of the time, where.

use super::Summary;
use super::tree_text::short_location;
use crate::queries::call_site::{Place, place};
use crate::queries::cpu_tree::CpuTree;
use crate::text::columns::{cut_right, pad_right, width};
use crate::text::numbers::percent;
use crate::text::short::{cut_name, last_name, short_function, tail};
use crate::text::style::{Line, Paint};
use foldhash::HashMap;
use stackglass_profile::{Recording, StackId, State, ThreadNumber, harmless};
use std::io::{self, Write};

/// Kinds listed unless everything is asked for.
const LISTED: usize = 8;
/// A thread that slept less than this share of its life is not listed.
const SLEEPY: f64 = 0.05;

/// Threads that slept in the same place.
struct Kind {
    names: Vec<String>,
    awake: u64,
    asleep: u64,
    place: Place,
}

pub(super) fn write(
    summary: &Summary,
    recording: &Recording,
    tree: &CpuTree<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let kinds = kinds(recording, tree, summary);
    if kinds.is_empty() {
        return Ok(());
    }
    let listed = if summary.everything { kinds.len() } else { kinds.len().min(LISTED) };
    let labels: Vec<String> = kinds[..listed].iter().map(label).collect();
    let wide = labels.iter().map(|label| width(label)).max().unwrap_or(0).min(summary.cols / 3);
    for (kind, label) in kinds.iter().zip(&labels) {
        let share = percent(kind.asleep, kind.asleep + kind.awake);
        let mut line = Line::new();
        line.push(Paint::Grey, pad_right(&cut_right(label, wide), wide));
        // Without a library function to wait in, it may as well have waited for a processor.
        let state = if kind.place.wait.is_some() { "asleep" } else { "off CPU" };
        line.push(Paint::Grey, format!("  {state:<7} {share:>3.0} % in "));
        let room = summary.cols.saturating_sub(line.width());
        let (place, caller) = match (&kind.place.wait, &kind.place.caller) {
            (Some(wait), caller) => (tail(wait), caller.as_ref().map_or("", |caller| tail(caller))),
            (None, Some(caller)) => (tail(caller), ""),
            (None, None) => ("code without a name", ""),
        };
        let arrow = if caller.is_empty() { 0 } else { 4 };
        let left = room.saturating_sub(width(place) + arrow + width(caller) + 2);
        let (location, link) = match &kind.place.line {
            Some((file, number)) => {
                (short_location(recording, file, *number, left.max(room / 4)), summary.link(file, *number))
            }
            None => (String::new(), None),
        };
        let gap = if location.is_empty() { 0 } else { 2 };
        let room = room.saturating_sub(width(&location) + gap);
        let for_place = room.saturating_sub(arrow + width(caller)).max(room / 2);
        line.push(Paint::Grey, short_function(place, for_place));
        if !caller.is_empty() {
            let room = room.saturating_sub(width(place).min(for_place) + arrow);
            let caller = if width(caller) <= room { caller } else { last_name(caller) };
            line.push(Paint::Grey, format!(" <- {}", cut_name(caller, room)));
        }
        line.plain(" ".repeat(gap)).push_linked(Paint::Grey, location, link);
        line.cut(summary.cols).write(summary.style, out)?;
    }
    if kinds.len() > listed {
        let mut line = Line::new();
        let more: usize = kinds[listed..].iter().map(|kind| kind.names.len()).sum();
        line.push(Paint::Grey, format!("{more} more sleeping threads: --all shows them"));
        line.cut(summary.cols).write(summary.style, out)?;
    }
    out.write_all(b"\n")
}

/// Name of the threads, with their number where there are several.
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

fn kinds(recording: &Recording, tree: &CpuTree<'_>, summary: &Summary) -> Vec<Kind> {
    #[derive(Default)]
    struct Rest {
        awake: u64,
        asleep: u64,
        stacks: HashMap<StackId, u64>,
    }
    let mut rests: Vec<Rest> = Vec::new();
    rests.resize_with(recording.threads.len() + 1, Rest::default);
    for sample in &recording.samples {
        let Some(rest) = rests.get_mut(sample.thread.0 as usize) else { continue };
        if sample.state == State::Asleep {
            rest.asleep += sample.time.0;
            *rest.stacks.entry(sample.stack).or_default() += sample.time.0;
        } else {
            rest.awake += sample.time.0;
        }
    }
    let mut kinds: Vec<Kind> = Vec::new();
    let mut index: HashMap<(String, Place), usize> = HashMap::default();
    for (number, rest) in rests.iter().enumerate().skip(1) {
        let life = rest.asleep + rest.awake;
        if rest.asleep == 0 || (rest.asleep as f64) < life as f64 * SLEEPY {
            continue;
        }
        let Some(thread) = recording.thread(ThreadNumber(number as u32)) else { continue };
        // Places, not stacks, are compared: one wait is reached on many ways.
        let mut places: HashMap<Place, u64> = HashMap::default();
        // Of some sleeps nobody has seen the place.
        for (stack, time) in rest.stacks.iter().filter(|(stack, _)| **stack != StackId(0)) {
            *places.entry(place(recording, &tree.names, *stack)).or_default() += time;
        }
        let longest = places.into_iter().max_by(|a, b| a.1.cmp(&b.1).then_with(|| b.0.cmp(&a.0)));
        let Some((place, _)) = longest else { continue };
        let name = if thread.name.is_empty() {
            format!("thread {number}")
        } else {
            harmless(&thread.name).into_owned()
        };
        let stem = match summary.everything {
            true => format!("{number}"),
            false => name.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned(),
        };
        let at = *index.entry((stem, place.clone())).or_insert_with(|| {
            kinds.push(Kind { names: Vec::new(), awake: 0, asleep: 0, place });
            kinds.len() - 1
        });
        kinds[at].names.push(name);
        kinds[at].awake += rest.awake;
        kinds[at].asleep += rest.asleep;
    }
    kinds.sort_by_key(|kind| std::cmp::Reverse(kind.asleep));
    kinds
}
