//! Allocations by a key: sums, and the number of sites of each row.

use super::origins::{RowNames, has_type};
use super::site::{Site, Sites};
use super::{Errors, Variance, relative_error};
use crate::Metric;
use crate::options::{UnknownValue, option_words};
use crate::order;
use foldhash::HashSet;
use stackglass_profile::{
    AllocationCounts, AllocationGroup, AllocationKind, AllocationSampling, CountedSlices, Recording,
};
use std::collections::BTreeMap;
use std::str::FromStr;

option_words! {
    /// What the rows of a table of allocations are.
    AllocationKey("key of allocations") {
        /// Allocated types.
        #[default]
        Type = "type",
        /// Source lines: the innermost ones outside of allocators and standard libraries.
        Site = "site",
        /// Source lines of the program itself: the innermost ones outside of the crates that it depends on, too.
        Line = "line",
        /// The functions of these lines.
        Function = "function",
        /// Their crates; for other languages, the executable or library.
        Crate = "crate",
        /// Threads.
        Thread = "thread",
        /// Processes.
        Process = "process",
        /// Ranges of sizes in bytes.
        Size = "size",
    } "type, site, line, function, crate, thread, process or size"
}

/// Sums of allocations by a key.
///
/// ```
/// use stackglass_profile::Recording;
/// use stackglass_report::{AllocationKey, AllocationTable, Metric};
///
/// let table = AllocationTable::new(&Recording::default(), AllocationKey::Type, Metric::Bytes);
/// assert!(table.rows.is_empty());
/// ```
#[derive(Clone, Debug)]
pub struct AllocationTable {
    /// What the rows are.
    pub key: AllocationKey,
    /// What they are sorted by.
    pub metric: Metric,
    /// The sum of all blocks of all processes.
    pub total: AllocationCounts,
    /// The relative standard error of the bytes of the sum. It is 0 if every allocation was recorded.
    pub error: f64,
    /// How they were recorded: if processes differ, how the first of those that were sampled was.
    pub sampling: AllocationSampling,
    /// If they are those of a part of the time: which one.
    pub part: Option<CountedSlices>,
    /// Anonymous mappings that programs requested themselves. They are in neither `total` nor `rows`.
    pub mappings: AllocationCounts,
    /// Number of allocations with a known type.
    pub typed: u64,
    /// All rows, those with the largest values of the metric first, then by name.
    pub rows: Vec<AllocationRow>,
}

/// A row of an [`AllocationTable`].
#[derive(Clone, PartialEq, Debug)]
pub struct AllocationRow {
    /// The type, site, function, crate, thread, process or range of sizes, never cut. It is untrusted text.
    pub name: String,
    /// What was allocated.
    pub counts: AllocationCounts,
    /// The relative standard error of its bytes. It is 0 if every allocation was recorded.
    pub error: f64,
    /// Number of different sites.
    pub sites: u64,
    /// The site of the row, or one of its sites.
    pub(crate) site: Site,
}

/// A row while it is summed.
struct Sum {
    counts: AllocationCounts,
    variance: Variance,
    sites: HashSet<u32>,
    site: u32,
}

impl AllocationTable {
    /// Sums the allocations of a recording. With [`Metric::Time`], rows are sorted by bytes.
    pub fn new(recording: &Recording, key: AllocationKey, metric: Metric) -> AllocationTable {
        let mut sites = Sites::new(recording);
        AllocationTable::with_sites(recording, &mut sites, key, metric)
    }

    /// As [`AllocationTable::new`], with known sites.
    pub(crate) fn with_sites(
        recording: &Recording,
        sites: &mut Sites<'_>,
        key: AllocationKey,
        metric: Metric,
    ) -> AllocationTable {
        AllocationTable::of_groups(recording, sites, key, metric, |_| true)
    }

    /// As [`AllocationTable::with_sites`], of the groups of blocks that are wanted.
    pub(super) fn of_groups(
        recording: &Recording,
        sites: &mut Sites<'_>,
        key: AllocationKey,
        metric: Metric,
        is_wanted: impl Fn(&AllocationGroup) -> bool,
    ) -> AllocationTable {
        let metric = if metric == Metric::Time { Metric::Bytes } else { metric };
        let allocations = &recording.allocations;
        let mut typed = 0;
        let mut sums: BTreeMap<String, Sum> = BTreeMap::new();
        let mut rows = RowNames::new(recording, sites);
        let errors = Errors::from_allocations(allocations);
        let (mut total, mut variance) = (AllocationCounts::default(), Variance::default());
        let blocks = allocations.groups.iter().filter(|group| group.kind == AllocationKind::Block);
        for group in blocks.filter(|group| is_wanted(group)) {
            total.add(&group.counts);
            if has_type(recording, group.stack) {
                typed = group.counts.count.saturating_add(typed);
            }
            let (text, site) = rows.of(key, &group.into());
            let sum = sums.entry(text).or_insert_with(|| Sum {
                counts: AllocationCounts::default(),
                variance: Variance::default(),
                sites: HashSet::default(),
                site,
            });
            sum.counts.add(&group.counts);
            errors.add(&mut sum.variance, group);
            errors.add(&mut variance, group);
            sum.sites.insert(rows.site(group.stack));
        }
        let row = |(name, sum): (String, Sum)| AllocationRow {
            name,
            counts: sum.counts,
            error: relative_error(sum.counts.bytes, errors.of_sum(&sum.variance)),
            sites: sum.sites.len() as u64,
            site: sites.list[sum.site as usize].clone(),
        };
        let mut rows: Vec<AllocationRow> = sums.into_iter().map(row).collect();
        rows.sort_by(|a, b| {
            order::largest_first((metric.of(&a.counts), &a.name), (metric.of(&b.counts), &b.name))
        });
        let mappings = allocations.total(AllocationKind::Mapping);
        let error = relative_error(total.bytes, errors.of_sum(&variance));
        let samplings = || allocations.processes.iter().map(|process| process.sampling);
        let sampling = samplings().find(|one| *one != AllocationSampling::Every);
        let sampling = sampling.unwrap_or(AllocationSampling::Every);
        let part = allocations.part;
        AllocationTable { key, metric, total, error, sampling, part, mappings, typed, rows }
    }

    /// The share of allocations with a known type, 0 to 1. It is 1 if there are no allocations.
    pub fn typed_share(&self) -> f64 {
        if self.total.count == 0 { 1.0 } else { self.typed as f64 / self.total.count as f64 }
    }
}
