//! Allocations by a key: sums, and the number of sites of each row.

use super::site::{Site, Sites};
use super::{Errors, Variance, relative_error};
use crate::Metric;
use crate::options::{UnknownValue, option_words};
use crate::order;
use foldhash::{HashMap, HashSet};
use stackglass_profile::frame::file_name;
use stackglass_profile::symbols::is_known_type;
use stackglass_profile::{
    AllocationCounts, AllocationGroup, AllocationKind, AllocationSampling, CountedSlices, ProcessIndex,
    Recording, UNKNOWN_TYPE,
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
        let mut names = Names::default();
        let errors = Errors::from_allocations(allocations);
        let (mut total, mut variance) = (AllocationCounts::default(), Variance::default());
        let blocks = allocations.groups.iter().filter(|group| group.kind == AllocationKind::Block);
        for group in blocks.filter(|group| is_wanted(group)) {
            total.add(&group.counts);
            let name = recording.symbols.allocated_type(group.stack);
            if name.is_some_and(|name| is_known_type(name)) {
                typed = group.counts.count.saturating_add(typed);
            }
            let of_stack = sites.of(group.stack);
            let site = if key == AllocationKey::Line { of_stack.own } else { of_stack.site };
            let text = match key {
                AllocationKey::Type => name.map_or(UNKNOWN_TYPE, |name| name).to_owned(),
                AllocationKey::Site | AllocationKey::Line => sites.list[site as usize].location(),
                AllocationKey::Function => sites.list[site as usize].func.to_string(),
                AllocationKey::Crate => match &*sites.list[site as usize].krate {
                    "" => "[unknown]".to_owned(),
                    krate => krate.to_owned(),
                },
                AllocationKey::Thread => names.thread(recording, group.thread),
                AllocationKey::Process => process_name(recording, group.process),
                AllocationKey::Size => {
                    let sizes = group.size_class.sizes();
                    match sizes.start() == sizes.end() {
                        true => sizes.start().to_string(),
                        false => format!("{}-{}", sizes.start(), sizes.end()),
                    }
                }
            };
            let sum = sums.entry(text).or_insert_with(|| Sum {
                counts: AllocationCounts::default(),
                variance: Variance::default(),
                sites: HashSet::default(),
                site,
            });
            sum.counts.add(&group.counts);
            errors.add(&mut sum.variance, group);
            errors.add(&mut variance, group);
            sum.sites.insert(of_stack.site);
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

/// A process by its program and number: `server (1234)`.
pub(crate) fn process_name(recording: &Recording, process: ProcessIndex) -> String {
    match recording.processes.get(process.0 as usize) {
        Some(process) => format!("{} ({})", file_name(&process.exe), process.pid),
        None => "[unknown]".to_owned(),
    }
}

/// Names of threads. Threads with the same name are distinguished by their numbers.
#[derive(Default)]
struct Names {
    /// How many threads have a label.
    labels: Option<HashMap<String, u32>>,
}

impl Names {
    fn thread(&mut self, recording: &Recording, number: stackglass_profile::ThreadNumber) -> String {
        let labels = self.labels.get_or_insert_with(|| {
            let mut labels: HashMap<String, u32> = HashMap::default();
            for number in 1..=recording.threads.len() as u32 {
                *labels.entry(recording.thread_label(number.into())).or_default() += 1;
            }
            labels
        });
        let label = recording.thread_label(number);
        match labels.get(&label) {
            Some(2..) => format!("{label} ({})", number.0),
            _ => label,
        }
    }
}
