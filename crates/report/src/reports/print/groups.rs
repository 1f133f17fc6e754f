//! The groups of a report: which samples each table or tree has, and the lines around it.

use super::context::Context;
use super::labels::Labels;
use super::nothing_to_show::Empty;
use super::{Report, ReportError, flat, tree_text};
use crate::call_tree::StateFilter;
use crate::metric::Unit;
use crate::options::{Format, GroupBy, Pick};
use crate::text::columns;
use crate::text::style::{Line, Paint};
use crate::trees::aggregated_samples::{AggregatedSamples, SampleGroup};
use crate::trees::tree;
use crate::{Metric, Source};
use foldhash::HashSet;
use stackglass_profile::word_buffer as data;
use std::collections::BTreeSet;
use std::io::{self, BufWriter, Write};

/// The line of totals is never narrower.
const NARROWEST: usize = 30;

/// Size of the write buffer in bytes.
const WRITTEN_AT_ONCE: usize = 64 << 10;

/// Writes the whole report. Returns the reason if the report or one of its groups is empty.
pub(super) fn write(
    report: &Report,
    source: Source<'_>,
    samples: &AggregatedSamples<'_>,
    out: &mut dyn Write,
) -> Result<Option<Empty>, ReportError> {
    let context =
        Context { report, source, samples, labels: Labels::new(source, report.quirks, report.links.clone()) };
    if report.format == Format::Tree {
        tree_text::write_header(out)?;
    }
    let empty = match report.group_by {
        GroupBy::None => context.body(&report.threads, &report.tasks, false, out)?,
        _ => context.grouped(out)?,
    };
    Ok(empty)
}

/// The two kinds of groups.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Thread,
    Task,
}

impl Context<'_> {
    fn grouped(&self, out: &mut dyn Write) -> io::Result<Option<Empty>> {
        let (outer, inner) = match self.report.group_by {
            GroupBy::Task => (Kind::Task, None),
            GroupBy::ThreadTask => (Kind::Thread, Some(Kind::Task)),
            GroupBy::TaskThread => (Kind::Task, Some(Kind::Thread)),
            GroupBy::Thread | GroupBy::None => (Kind::Thread, None),
        };
        // Of all reasons, the most helpful one is returned.
        let mut empty = None;
        let outer_ids = self.ids(outer, None);
        if outer_ids.is_empty() {
            empty = Some(if self.samples.groups.is_empty() { Empty::NoSamples } else { Empty::NotPicked });
        }
        for id in outer_ids {
            let Some(inner) = inner else {
                // As in the reference, grouping by one key ignores the filter of the other.
                let (threads, tasks) = match outer {
                    Kind::Thread => (Pick::One(id), Pick::Range(1..=u64::MAX)),
                    Kind::Task => (Pick::Range(1..=i64::MAX as u64), Pick::One(id)),
                };
                self.heading(outer, id, "", " ", out)?;
                empty = empty.max(self.body(&threads, &tasks, true, out)?);
                out.write_all(b"\n")?;
                continue;
            };
            let inner_ids = self.ids(inner, Some((outer, id)));
            if inner_ids.is_empty() {
                empty = empty.max(Some(Empty::NotPicked));
                continue;
            }
            self.heading(outer, id, "", if inner_ids.len() > 1 { "\n" } else { "" }, out)?;
            for inner_id in inner_ids {
                self.heading(inner, inner_id, " ", " ", out)?;
                let (threads, tasks) = match outer {
                    Kind::Thread => (Pick::One(id), Pick::One(inner_id)),
                    Kind::Task => (Pick::One(inner_id), Pick::One(id)),
                };
                empty = empty.max(self.body(&threads, &tasks, true, out)?);
                out.write_all(b"\n")?;
            }
        }
        Ok(empty)
    }

    /// The ids of groups: threads in ascending order, tasks by their newest sample.
    fn ids(&self, kind: Kind, within: Option<(Kind, u64)>) -> Vec<u64> {
        let groups = self.samples.groups.iter().filter(|group| match within {
            None => true,
            Some((Kind::Thread, id)) => group.thread == id,
            Some((Kind::Task, id)) => group.task == id,
        });
        match kind {
            Kind::Thread => {
                let ids: BTreeSet<u64> = groups.map(|group| group.thread).collect();
                ids.into_iter().filter(|id| self.report.threads.has(*id)).collect()
            }
            Kind::Task => {
                let mut seen = HashSet::default();
                let ids = groups.map(|group| group.task).filter(|id| seen.insert(*id));
                ids.filter(|id| self.report.tasks.has(*id)).collect()
            }
        }
    }

    fn heading(&self, kind: Kind, id: u64, before: &str, after: &str, out: &mut dyn Write) -> io::Result<()> {
        let mut line = Line::new();
        match kind {
            Kind::Thread => {
                line.push(Paint::BoldCyan, format!("{before}Thread {id} ({}){after}", self.labels.thread(id)))
            }
            Kind::Task => {
                line.push(Paint::BoldBlue, format!("{before}Task 0x{id:016x}{}{after}", self.labels.task(id)))
            }
        };
        line.write_open(self.report.style, out)
    }

    /// Writes one table or tree with its totals. Returns the reason if it is empty.
    fn body(
        &self,
        threads: &Pick,
        tasks: &Pick,
        grouped: bool,
        out: &mut dyn Write,
    ) -> io::Result<Option<Empty>> {
        let picked = |group: &&SampleGroup| threads.has(group.thread) && tasks.has(group.task);
        let groups: Vec<SampleGroup> = self.samples.groups.iter().filter(picked).copied().collect();
        let totals = Totals::from_groups(&groups);
        let task_profile = match self.report.format {
            Format::Tree => self.samples.earliest_state() == Some(data::TASK),
            Format::Flat => self.samples.has_task_samples(),
        };
        let body = match self.report.format {
            Format::Tree => Body::Tree(tree::Tree::build(self.samples, &groups, &self.report.tree_options())),
            Format::Flat => Body::Table(flat::Table::build(self.samples, &groups, self.report)),
        };
        let shown = !body.is_empty();
        let style = self.report.style;
        if self.report.metric != Metric::Time {
            if grouped {
                // The totals follow the heading of the group.
                self.write_totals(totals.snapshots, threads, tasks, ". ", out)?;
            }
            if shown {
                body.write(self, out)?;
                if !grouped {
                    self.write_totals(totals.snapshots, threads, tasks, "\n", out)?;
                }
            }
            return Ok((!shown).then(|| Empty::new(self.report, self.samples, &groups)));
        }
        match (grouped, shown) {
            (false, false) => {}
            (true, false) => {
                let mut line = Line::new();
                line.plain("Total snapshots: ").push(Paint::Yellow, totals.snapshots.to_string());
                line.plain(self.counted(&totals)).write(style, out)?;
            }
            (false, true) => {
                body.write(self, out)?;
                if task_profile {
                    writeln!(out, "Total snapshots: {}", totals.snapshots)?;
                } else {
                    let all = match self.report.states {
                        StateFilter::All => " across all threads and tasks",
                        StateFilter::Awake => " Time asleep is not counted",
                        StateFilter::Asleep | StateFilter::NotOnCpu => " CPU time is not counted",
                    };
                    let text = format!(
                        "Total snapshots: {}{}{all}. \
                         Use the `groupby` kwarg to break down by thread and/or task.",
                        totals.snapshots,
                        self.counted(&totals)
                    );
                    match self.report.quirks.wide_totals {
                        true => writeln!(out, "{text}")?,
                        false => columns::wrap(&text, self.report.cols.max(NARROWEST))
                            .iter()
                            .try_for_each(|line| writeln!(out, "{line}"))?,
                    }
                }
            }
            (true, true) => {
                if task_profile {
                    writeln!(out, "Total snapshots: {}\n", totals.snapshots)?;
                } else {
                    writeln!(out, "Total snapshots: {}{}", totals.snapshots, self.counted(&totals))?;
                }
                body.write(self, out)?;
            }
        }
        Ok((!shown).then(|| Empty::new(self.report, self.samples, &groups)))
    }

    /// What the snapshots are: all, with their utilization, or those in some states.
    fn counted(&self, totals: &Totals) -> String {
        match self.report.states {
            StateFilter::All => format!(". Utilization: {}%", totals.utilization()),
            states => format!(" of {}.", states.noun()),
        }
    }

    /// Writes the totals of allocations: their number, and their bytes if bytes were counted.
    fn write_totals(
        &self,
        value: u64,
        threads: &Pick,
        tasks: &Pick,
        between: &str,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        if self.report.metric.unit() != Unit::Bytes {
            return writeln!(out, "Total snapshots: {value}");
        }
        let records = match self.source {
            Source::Data(..) => 0,
            Source::Recording(recording) => {
                let picked = recording.samples.iter().filter(|sample| {
                    threads.has(sample.thread.0.into()) && tasks.has(recording.task_of(sample).0)
                });
                picked.map(|sample| u64::from(sample.hits)).sum()
            }
        };
        writeln!(out, "Total snapshots: {records}{between}Total bytes: {value}")
    }
}

/// A tree or a table. It is streamed, since its text may be much larger.
enum Body<'a> {
    Tree(tree::Tree<'a>),
    Table(flat::Table<'a>),
}

impl Body<'_> {
    fn is_empty(&self) -> bool {
        match self {
            Body::Tree(tree) => tree.is_empty(),
            Body::Table(table) => table.is_empty(),
        }
    }

    fn write(&self, context: &Context<'_>, out: &mut dyn Write) -> io::Result<()> {
        let mut out = BufWriter::with_capacity(WRITTEN_AT_ONCE, out);
        match self {
            Body::Tree(tree) => tree_text::write(tree, context, &mut out)?,
            Body::Table(table) => flat::write(table, context, &mut out)?,
        }
        out.flush()
    }
}

/// Sums over the samples of a group.
struct Totals {
    snapshots: u64,
    asleep: u64,
}

impl Totals {
    fn from_groups(groups: &[SampleGroup]) -> Totals {
        let asleep = groups.iter().filter(|group| group.state == data::ASLEEP);
        Totals {
            snapshots: groups.iter().map(|group| group.count).sum(),
            asleep: asleep.map(|group| group.count).sum(),
        }
    }

    /// Percentage of snapshots that were not asleep, rounded to even.
    fn utilization(&self) -> u64 {
        if self.snapshots == 0 {
            return 0;
        }
        ((1.0 - self.asleep as f64 / self.snapshots as f64) * 100.0).round_ties_even() as u64
    }
}
