//! What grows on the heap of a process, of which some copies are kept as sums.
//!
//! At most nine copies are kept, with equal numbers of copies between them: when there are more, every second one is dropped. So a
//! step from one to the next becomes longer the longer a process is watched, and a leak that is slow or uneven grows in each of
//! them, while a table that has doubled once grew in one.

use super::HeapPath;
use super::alike::{Alike, AlikeSums};
use super::growth::Sum;
use super::holders::WEAKLY_HELD;
use foldhash::HashMap;
use stackglass_profile::SizeClass;
use stackglass_profile::heap_graph::UNREACHABLE;
use stackglass_report::order;
use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

/// Most steps between copies that are kept.
const MOST_STEPS: usize = 8;
/// Steps in which something must have grown to be a likely leak.
const FEWEST_STEPS: usize = 2;
/// Buffers of the same number that have grown grew by a factor. By less than a tenth, others have taken their place.
const GROWN_BUFFERS: u64 = 10;

/// Copies of one process over time.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    kept: Vec<Kept>,
    /// Copies from one that is kept to the next.
    stride: usize,
    taken: Vec<TakenCopy>,
}

/// A copy, as long as it is compared.
#[derive(Clone, Debug)]
struct Kept {
    /// Its number.
    number: usize,
    rows: HashMap<Arc<Alike>, Sum>,
}

/// What is known of each copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TakenCopy {
    /// Time since the first one.
    pub at: Duration,
    /// All blocks.
    pub all: Sum,
    /// Blocks of known type, and their bytes.
    pub typed: Sum,
    /// How long the process was held up.
    pub pause: Duration,
}

/// What has grown.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Grown {
    /// Numbers of the copies that were compared.
    pub compared: Vec<usize>,
    /// Rows that grew in each step first, then those that grew from the first copy to the last; the largest growth first.
    pub rows: Vec<GrownRow>,
    /// By variable, stack of a thread, or other memory: bytes more than at first. The largest growth first.
    pub holders: Vec<(HeapPath, i128)>,
    /// Time from the first copy to the last.
    pub time: Duration,
}

/// Blocks that have grown in number or bytes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct GrownRow {
    /// Type or site.
    pub name: String,
    /// Their sizes, if the type is unknown.
    pub size_class: Option<SizeClass>,
    /// The place that allocated them, or most of what is new.
    pub site: Option<String>,
    /// The path to them, or to most of what is new.
    pub path: HeapPath,
    /// Bytes that are new on this path.
    pub on_path: u64,
    /// Number of steps in which they grew.
    pub steps: usize,
    /// Whether they grew in each step, and there was more than one; for blocks that nothing leads to, in two steps, and never shrank.
    pub is_likely_leak: bool,
    /// In each copy that was compared.
    pub sums: Vec<Sum>,
}

impl Sum {
    pub(super) fn add(&mut self, other: Sum) {
        self.count += other.count;
        self.self_size = self.self_size.saturating_add(other.self_size);
    }
}

impl Watch {
    /// Adds a copy. [`TakenCopy::all`] is that of `sums`.
    pub fn add(&mut self, copy: TakenCopy, sums: AlikeSums) {
        let number = self.taken.len();
        self.stride = self.stride.max(1);
        self.taken.push(TakenCopy { all: sums.all, ..copy });
        // Only the last one may be out of step.
        if self.kept.last().is_some_and(|last| !last.number.is_multiple_of(self.stride)) {
            self.kept.pop();
        }
        // Each name is stored once.
        let before = self.kept.last().map(|last| &last.rows);
        let known = |alike: Arc<Alike>| {
            let known = before.and_then(|rows| rows.get_key_value(&alike));
            known.map_or(alike, |(known, _)| Arc::clone(known))
        };
        let rows = sums.rows.into_iter().map(|(alike, sum)| (known(alike), sum)).collect();
        self.kept.push(Kept { number, rows });
        if self.kept.len() > MOST_STEPS + 1 {
            self.stride *= 2;
            self.kept.retain(|kept| kept.number.is_multiple_of(self.stride) || kept.number == number);
        }
    }

    /// All copies that were taken.
    pub fn copies(&self) -> &[TakenCopy] {
        &self.taken
    }

    /// The copies that are compared. The last step is not shorter than the others.
    fn compared(&self) -> Vec<&Kept> {
        let mut compared: Vec<&Kept> = self.kept.iter().collect();
        let is_partial = compared.last().is_some_and(|last| !last.number.is_multiple_of(self.stride.max(1)));
        if is_partial && compared.len() > 2 {
            compared.remove(compared.len() - 2);
        }
        compared
    }

    /// What has grown since the first copy.
    pub fn grown(&self) -> Grown {
        let compared = self.compared();
        let mut by_path: HashMap<&Alike, Vec<Sum>> = HashMap::default();
        for (index, kept) in compared.iter().enumerate() {
            for (alike, sum) in &kept.rows {
                let sums = by_path.entry(alike).or_insert_with(|| vec![Sum::default(); compared.len()]);
                sums[index] = *sum;
            }
        }
        let mut by_type: HashMap<(&str, Option<SizeClass>), OfType<'_>> = HashMap::default();
        let mut holders: HashMap<HeapPath, i128> = HashMap::default();
        for (alike, sums) in by_path {
            *holders.entry(variable(&alike.path)).or_default() += growth(&sums);
            by_type.entry((&alike.name, alike.size_class)).or_default().add(alike, sums);
        }
        let mut rows: Vec<GrownRow> = by_type.into_values().flat_map(OfType::rows).collect();
        let key = |row: &GrownRow| (row.is_likely_leak, growth(&row.sums));
        let names = |row: &GrownRow| (row.name.clone(), row.path.text(), row.site.clone(), row.size_class);
        rows.sort_by(|a, b| order::largest_first((key(a), names(a)), (key(b), names(b))));
        let mut holders: Vec<_> = holders.into_iter().filter(|(_, growth)| *growth != 0).collect();
        holders.sort_by(|a, b| order::largest_first((a.1, a.0.text()), (b.1, b.0.text())));
        let times = (self.taken.first(), self.taken.last());
        let time = if let (Some(first), Some(last)) = times {
            last.at.saturating_sub(first.at)
        } else {
            Duration::ZERO
        };
        Grown { compared: compared.iter().map(|kept| kept.number).collect(), rows, holders, time }
    }
}

impl GrownRow {
    /// Bytes more than at first.
    pub fn growth(&self) -> i128 {
        growth(&self.sums)
    }

    /// Blocks more than at first.
    pub fn count_growth(&self) -> i128 {
        let of = |sum: Option<&Sum>| sum.map_or(0, |sum| i128::from(sum.count));
        of(self.sums.last()) - of(self.sums.first())
    }

    fn new(alike: &Alike, sums: Vec<Sum>) -> GrownRow {
        let Alike { name, size_class, site, path } = alike.clone();
        let steps = sums.windows(2).filter(|pair| pair[1].has_grown(&pair[0])).count();
        let (first, last) =
            (sums.first().copied().unwrap_or_default(), sums.last().copied().unwrap_or_default());
        let are_more = last.count > first.count
            || last.self_size.saturating_sub(first.self_size) > first.self_size / GROWN_BUFFERS;
        // What nothing leads to does not come back: it may be lost now and then only.
        let is_lost = path.steps.first().is_some_and(|step| step.name == UNREACHABLE);
        let has_shrunk = sums.windows(2).any(|pair| pair[0].has_grown(&pair[1]));
        let grew_always = steps + 1 == sums.len() || is_lost && !has_shrunk;
        let is_likely_leak = grew_always && steps >= FEWEST_STEPS && are_more;
        let on_path = u64::try_from(growth(&sums)).unwrap_or(0);
        GrownRow { name, size_class, site, path, on_path, steps, is_likely_leak, sums }
    }

    /// All of these together, with the path and site of most of what is new.
    fn of(paths: &[(&Alike, Vec<Sum>)]) -> Option<GrownRow> {
        let (most, largest) =
            paths.iter().max_by_key(|(alike, sums)| (growth(sums), Reverse(alike.path.text())))?;
        let mut sums = vec![Sum::default(); largest.len()];
        for (_, of_path) in paths {
            sums.iter_mut().zip(of_path).for_each(|(sum, other)| sum.add(*other));
        }
        let all = GrownRow::new(most, sums);
        let on_path = u64::try_from(growth(largest)).unwrap_or(0).min(all.on_path);
        Some(GrownRow { on_path, ..all })
    }

    fn has_grown(&self) -> bool {
        matches!((self.sums.first(), self.sums.last()), (Some(first), Some(last)) if last.has_grown(first))
    }
}

/// All blocks of one type.
#[derive(Default)]
struct OfType<'a> {
    paths: Vec<(&'a Alike, Vec<Sum>)>,
}

impl<'a> OfType<'a> {
    fn add(&mut self, alike: &'a Alike, sums: Vec<Sum>) {
        self.paths.push((alike, sums));
    }

    /// Rows by path, and one of what stacks hold: that is held by one frame now, and by another one then. If only all blocks
    /// together grow in each step, they are one row.
    fn rows(self) -> Vec<GrownRow> {
        let together = GrownRow::of(&self.paths);
        let is_steady = |(alike, sums): &(&Alike, Vec<Sum>)| {
            !is_of_stack(&alike.path) || GrownRow::new(alike, sums.clone()).is_likely_leak
        };
        let (steady, moving): (Vec<_>, Vec<_>) = self.paths.into_iter().partition(is_steady);
        let of_stacks = GrownRow::of(&moving);
        let mut rows: Vec<GrownRow> =
            steady.into_iter().map(|(alike, sums)| GrownRow::new(alike, sums)).collect();
        // What stacks hold may have been held by a variable before.
        let is_new = together.as_ref().is_some_and(|all| all.growth() > 0);
        rows.extend(of_stacks.filter(|row| is_new || row.is_likely_leak));
        match together {
            Some(all) if all.is_likely_leak && !rows.iter().any(|row| row.is_likely_leak) => vec![all],
            _ => rows.into_iter().filter(GrownRow::has_grown).collect(),
        }
    }
}

fn growth(sums: &[Sum]) -> i128 {
    let of = |sum: Option<&Sum>| sum.map_or(0, |sum| i128::from(sum.self_size));
    of(sums.last()) - of(sums.first())
}

/// The part of a path that leads to a variable, to a thread with its stack, or to other memory.
fn variable(path: &HeapPath) -> HeapPath {
    let most = if is_of_stack(path) { 2 } else { usize::MAX };
    HeapPath { steps: path.steps.iter().take_while(|step| step.is_root).take(most).cloned().collect() }
}

fn is_of_stack(path: &HeapPath) -> bool {
    let group = path.steps.first().map_or("", |step| step.name.as_str());
    !matches!(group, "(static data)" | "(thread locals)" | UNREACHABLE | WEAKLY_HELD)
}
