//! Where tasks wait, as the last lines of the summary name it: the line of the `.await` in the reader's own code, and the future.

use super::tree_text::short_location;
use crate::order;
use crate::queries::cpu_tree::CpuTree;
use crate::queries::waits::Wait;
use crate::queries::weight::Weight;
use crate::text::numbers::percent_text;
use crate::text::short::{last_name, shortest_location, tail};
use crate::text::style::{Line, Paint};
use stackglass_profile::{Recording, sanitize};

/// A line is the verdict with at least this share of all time; so are several lines together.
const DOMINANT: f64 = 0.5;
/// Lines with less of all time are not named.
const PART: f64 = 0.05;
/// Number of lines named.
const PARTS: usize = 3;
/// A verdict needs as many samples.
const FEWEST: u64 = 5;

/// A long and a short name of a wait: `Shop::price shop.rs:42 (Sleep)`, `shop.rs:42 (Sleep)`.
pub(super) fn names(recording: &Recording, wait: &Wait) -> [String; 2] {
    let long = short_location(recording, &wait.file, wait.line, 32);
    [(tail(&wait.function), long), (last_name(&wait.function), shortest_location(&wait.file, wait.line))]
        .map(|(function, place)| format!("{} {place}{}", sanitize(function), future(wait)))
}

/// ` (Sleep)`.
fn future(wait: &Wait) -> String {
    match Wait::short(&wait.future) {
        "" => String::new(),
        future => format!(" ({})", sanitize(future)),
    }
}

/// The waits, those in the program's own lines first, then those with the most time. Every connection of a server also waits for
/// the end of the server, in a line of a library.
pub(super) fn largest<'t>(tree: &'t CpuTree<'_>) -> Vec<(&'t Wait, Weight)> {
    let mut waits: Vec<(&Wait, Weight)> = tree.waits.iter().map(|(wait, weight)| (wait, *weight)).collect();
    waits.sort_by(|(a, of_a), (b, of_b)| {
        order::largest_first(((a.is_own, of_a.time), a), ((b.is_own, of_b.time), b))
    });
    waits
}

/// The verdict in at most `cols` columns, if tasks wait for most of the time.
pub(super) fn verdict(recording: &Recording, tree: &CpuTree<'_>, cols: usize) -> Option<Line> {
    let all = tree.cpu();
    let waits = largest(tree);
    let (first, of_first) = waits.first()?;
    let together = waits.iter().map(|(_, weight)| weight.time).fold(0, u64::saturating_add);
    let least = all.time as f64 * DOMINANT;
    if all.hits < FEWEST || (together as f64) < least {
        return None;
    }
    let lines = match of_first.time as f64 >= least {
        true => {
            let share = percent_text(of_first.time, all.time);
            let line = |name: &String| {
                let mut line = Line::from_text(Paint::Bold, &share);
                line.plain(" of the time tasks wait in ").push(Paint::Bold, name);
                line
            };
            names(recording, first).iter().map(line).collect::<Vec<_>>()
        }
        false => {
            let named = waits.iter().filter(|(_, weight)| weight.time as f64 >= all.time as f64 * PART);
            let part = |(wait, weight): &(&Wait, Weight), name: usize| {
                format!("{} {}", percent_text(weight.time, all.time), names(recording, wait)[name])
            };
            let named: Vec<&(&Wait, Weight)> = named.take(PARTS).collect();
            let line = |(count, name): (usize, usize)| {
                let parts: Vec<String> = named[..count].iter().map(|wait| part(wait, name)).collect();
                let mut line = Line::from_text(Paint::Bold, percent_text(together, all.time));
                line.plain(" of the time tasks wait");
                line.plain(if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) });
                line
            };
            // From the most to the least that may fit.
            let counts = (0..=named.len()).rev();
            counts.flat_map(|count| [(count, 0), (count, 1)]).map(line).collect()
        }
    };
    let last = lines.last().cloned();
    lines.into_iter().find(|line| line.width() <= cols).or(last)
}
