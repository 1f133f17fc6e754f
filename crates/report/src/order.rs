//! Every order in which reports show trees, tables and lists.
//!
//! Orders that the reader chooses are ascending, as in Julia's reports. All others put the largest first. Equal
//! profiles give equal texts: an order ends with names or numbers, or keeps an order that is already fixed.
//!
//! Not here: which line or call site represents a function (decided where the function is shown), lists in the order
//! of their keys, and the rows of `stackglass top` (`cli/src/top/model.rs`).

use crate::options::SortedBy;
use stackglass_profile::Frame;
use std::cmp::{Ordering, Reverse};

/// File, function, line; frames of which nothing is known last.
pub(crate) fn by_file_func_line(a: &Frame, b: &Frame) -> Ordering {
    a.is_unknown()
        .cmp(&b.is_unknown())
        .then_with(|| if a.is_unknown() { Ordering::Equal } else { a.file.as_bytes().cmp(b.file.as_bytes()) })
        .then_with(|| a.func.as_bytes().cmp(b.func.as_bytes()))
        .then_with(|| a.line.cmp(&b.line))
        .then_with(|| a.nameless_module().cmp(b.nameless_module()))
}

/// For each frame the number of different frames before it in the order of [`by_file_func_line`].
pub(crate) fn ranks(frames: &[&Frame]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..frames.len() as u32).collect();
    let frame = |index: u32| frames[index as usize];
    order.sort_unstable_by(|a, b| by_file_func_line(frame(*a), frame(*b)));
    let mut ranks = vec![0; frames.len()];
    let mut rank = 0;
    for pair in order.windows(2) {
        rank += u32::from(by_file_func_line(frame(pair[0]), frame(pair[1])) != Ordering::Equal);
        ranks[pair[1] as usize] = rank;
    }
    ranks
}

/// What a line of the complete report is sorted by.
#[derive(Clone, Copy)]
pub(crate) struct SortKeys<'a> {
    /// Snapshots in it or below it.
    pub count: u64,
    /// Snapshots that ended in it.
    pub overhead: u64,
    /// Snapshots that ended in it or below it, with recursion folded. Trees only.
    pub flat_count: u64,
    /// What it shows.
    pub frame: Option<&'a Frame>,
}

impl SortKeys<'_> {
    fn by_frame(&self, other: &SortKeys<'_>) -> Ordering {
        match (self.frame, other.frame) {
            (Some(a), Some(b)) => by_file_func_line(a, b),
            _ => Ordering::Equal,
        }
    }
}

/// Siblings in a tree: by the key, then by frame.
pub(crate) fn siblings(key: SortedBy, a: &SortKeys<'_>, b: &SortKeys<'_>) -> Ordering {
    let by_key = match key {
        SortedBy::FileFuncLine => Ordering::Equal,
        SortedBy::Count => a.count.cmp(&b.count),
        SortedBy::Overhead => a.overhead.cmp(&b.overhead),
        SortedBy::FlatCount => a.flat_count.cmp(&b.flat_count),
    };
    by_key.then_with(|| a.by_frame(b))
}

/// Rows of the flat table: by the key alone. Equal rows keep the order in which they were met, as in Julia's report.
pub(crate) fn flat_rows(key: SortedBy, a: &SortKeys<'_>, b: &SortKeys<'_>) -> Ordering {
    match key {
        SortedBy::Count => a.count.cmp(&b.count),
        SortedBy::Overhead => a.overhead.cmp(&b.overhead),
        SortedBy::FileFuncLine | SortedBy::FlatCount => a.by_frame(b),
    }
}

/// Callers: the most frequent first, then by file, function and line.
pub(crate) fn callers(a: (u64, &Frame), b: (u64, &Frame)) -> Ordering {
    fn frame(frame: &Frame) -> impl Ord + '_ {
        (&frame.file, &frame.func, frame.line, frame.foreign, frame.inlined, &frame.module)
    }
    b.0.cmp(&a.0).then_with(|| frame(a.1).cmp(&frame(b.1)))
}

/// The largest amounts first, then by name.
pub fn largest_first<A: Ord, N: Ord>(a: (A, N), b: (A, N)) -> Ordering {
    (Reverse(a.0), a.1).cmp(&(Reverse(b.0), b.1))
}

/// The longest time first. Equal times keep their order, so sort a list whose order is fixed, with a stable sort.
pub(crate) fn longest_first(a: u64, b: u64) -> Ordering {
    b.cmp(&a)
}

/// Changed functions: those beyond the noise first, then the largest changes, then by name.
pub(crate) fn changes(a: (bool, f64, &str), b: (bool, f64, &str)) -> Ordering {
    b.0.cmp(&a.0).then(b.1.abs().total_cmp(&a.1.abs())).then_with(|| a.2.cmp(b.2))
}
