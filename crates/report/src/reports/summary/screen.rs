//! How the parts of the summary share the lines of a screen.
//!
//! The hint at the beginning and the digest at the end have all their lines. The tree has at least a part of the rest,
//! and what tables, sleeping threads and notes leave over. They have more than a few lines only where the tree does not
//! need them.

use super::{Summary, digest, interpreters, notes, processes, sleeping_threads, tasks, tree_text};
use crate::queries::cpu_tree::CpuTree;
use crate::text::style::Line;
use stackglass_profile::Recording;

/// A screen never has fewer lines than this. A shorter one scrolls.
const FEWEST: usize = 12;

/// Writes a part of the summary in at most the given number of lines.
type Part<'s> = Box<dyn Fn(usize) -> Vec<Line> + 's>;

/// Places of the parts.
const PROCESSES: usize = 0;
const TASKS: usize = 1;
const TREE: usize = 2;
const SLEEPING: usize = 3;
const NOTES: usize = 4;

/// All lines of the summary.
pub(super) fn lines(summary: &Summary, recording: &Recording, tree: &CpuTree<'_>) -> Vec<Line> {
    let mut lines = interpreters::hint_lines(recording, summary.cols);
    let notes = notes::beside(recording, tree, !lines.is_empty());
    let digest = digest::lines(summary, recording, tree);
    let parts: [Part<'_>; 5] = [
        Box::new(|most| processes::lines(summary, recording, tree, most)),
        Box::new(|most| tasks::lines(summary, recording, tree, most)),
        Box::new(|most| tree_text::lines(summary, tree, most)),
        Box::new(|most| sleeping_threads::lines(summary, recording, tree, most)),
        Box::new(|most| notes::lines(summary, &notes, most)),
    ];
    let whole = parts.each_ref().map(|part| part(usize::MAX));
    let shown = match summary.rows.filter(|_| !summary.everything) {
        None => whole,
        Some(rows) => {
            let rows = rows.max(FEWEST).saturating_sub(digest.len() + lines.len());
            fitted(&parts, whole, rows, are_alike(recording, tree))
        }
    };
    let gaps: Vec<usize> = (0..shown.len()).map(|part| gap(&shown, part)).collect();
    for (part, gap) in shown.into_iter().zip(gaps) {
        lines.extend(part);
        lines.extend((0..gap).map(|_| Line::new()));
    }
    lines.extend(digest);
    for line in &mut lines {
        line.cut(summary.cols);
    }
    lines
}

/// Number of empty lines below a part. Notes stand directly below sleeping threads.
fn gap(shown: &[Vec<Line>; 5], part: usize) -> usize {
    usize::from(!shown[part].is_empty() && (part != SLEEPING || shown[NOTES].is_empty()))
}

/// Number of lines of all parts.
fn height(shown: &[Vec<Line>; 5]) -> usize {
    shown.iter().enumerate().map(|(part, lines)| lines.len() + gap(shown, part)).sum()
}

/// Whether only the table of processes tells them apart: they run one program, by different commands or under titles that they
/// have given themselves.
fn are_alike(recording: &Recording, tree: &CpuTree<'_>) -> bool {
    let mut titles = recording.processes.iter().filter_map(|process| process.own_title());
    let have_titles = titles.next().is_some_and(|first| titles.any(|other| other != first));
    let busy = processes::noticeable(recording, tree);
    let mut others = busy.iter().skip(1).map(|process| (&process.exe, &process.arguments));
    let first = busy.first().map(|process| (&process.exe, &process.arguments));
    let one_program = first.is_some_and(|(exe, arguments)| {
        others.clone().all(|(other, _)| other == exe) && others.any(|(_, other)| other != arguments)
    });
    have_titles || one_program
}

/// The parts in at most `rows` lines. With `processes`, their table is next to the tree in importance.
fn fitted(parts: &[Part<'_>; 5], whole: [Vec<Line>; 5], rows: usize, processes: bool) -> [Vec<Line>; 5] {
    if height(&whole) <= rows {
        return whole;
    }
    let mut shown: [Vec<Line>; 5] = Default::default();
    let few = (rows / 6).max(4);
    // First the tree as far as it must have room, then a few lines of each other part, the most important first, then
    // the tree again, and what it leaves over.
    let first = [
        (TREE, (rows / 2).saturating_sub(if processes { 3 } else { 0 })),
        (PROCESSES, if processes { few + 1 } else { 0 }),
        (SLEEPING, (rows / 6).max(2)),
        (NOTES, few),
        (TASKS, few + 1),
        (PROCESSES, few + 1),
    ];
    let then = [TREE, NOTES, SLEEPING, TASKS, PROCESSES].map(|part| (part, usize::MAX));
    for (part, most) in first.into_iter().chain(then) {
        if shown[part].len() == whole[part].len() {
            continue;
        }
        let before = std::mem::take(&mut shown[part]);
        let most = most.min(rows.saturating_sub(height(&shown) + 1));
        shown[part] = if most > before.len() { parts[part](most) } else { before };
    }
    shown
}
