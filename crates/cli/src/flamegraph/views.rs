//! The graphs of one output: one of all samples and, for a page, one per thread and per task.

use super::format::Format;
use super::{Flags, pruned};
use crate::failure::Failure;
use crate::input::Input;
use crate::message;
use stackglass_files::jlprof::{self, GraphNode};
use stackglass_flame::png::{Layout, PictureOptions, write_picture};
use stackglass_flame::schemes::OneTheme;
use stackglass_flame::{Flamegraph, FlamegraphResult, Graph, Matcher, Page, Svg};
use stackglass_report::call_tree::{StateFilter, TaskCount};
use stackglass_report::{CallTrees, Metric, Pick, Source};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Most threads, and most tasks, that get separate graphs.
const MOST_PARTS: usize = 48;

/// Levels that an SVG picture shows.
const SVG_LEVELS: u32 = 1000;
/// Levels that a PNG picture shows.
const PNG_LEVELS: usize = 200;

/// Graphs to draw.
pub(crate) struct Drawing {
    title: String,
    unit: String,
    /// Labels and graphs; the first graph has all samples.
    views: Vec<(String, Graph)>,
}

/// Makes graphs from samples.
pub(crate) fn draw(flags: &Flags, input: &Input, metric: Metric, format: Format) -> Result<Drawing, Failure> {
    let source = input.source();
    let trees = CallTrees::new(source).map_err(Failure::new)?;
    let mut moments = if flags.wall { StateFilter::All } else { StateFilter::Awake };
    if moments == StateFilter::Awake
        && trees.counts(moments).is_empty()
        && !trees.counts(StateFilter::All).is_empty()
    {
        message::print("no thread was seen running: drawing sleeping threads");
        moments = StateFilter::All;
    }
    let pruned = pruned::find(&flags.prune, source);
    let foreign = source.frames().iter().all(|frame| frame.foreign);
    let graph_of = |threads: Option<Pick>, tasks: Option<Pick>| {
        let mut options = options(flags, foreign, moments, threads, tasks);
        for rule in &pruned {
            options = options.prune(&rule.func, &rule.file);
        }
        let drawn = options.graph_of(&trees, source);
        drawn.map_err(Failure::new)
    };
    let FlamegraphResult { graph, warning } = graph_of(None, None)?;
    let Some(graph) = graph else {
        return Err(Failure::new(
            warning.map_or(String::new(), |warning| format!("{}: {warning}", input.name)),
        ));
    };
    if let Some(warning) = warning {
        message::print(&warning.to_string());
    }
    if flags.no_c && graph.nodes().len() == 1 {
        message::print("all samples are in foreign code, which --no-c leaves out");
    }
    let mut views = vec![("everything".to_owned(), graph)];
    if format == Format::Html {
        for Part { label, threads, tasks } in parts(flags, source, &trees, moments) {
            if let Some(graph) = graph_of(threads, tasks)?.graph {
                views.push((label, graph));
            }
        }
    }
    if flags.inverted && format != Format::Html {
        views[0].1 = views[0].1.inverted();
    }
    let title = flags.title.clone().unwrap_or_else(|| title(input));
    let unit = if metric == Metric::Time { unit(source, moments) } else { metric.noun().to_owned() };
    Ok(Drawing { title, unit, views })
}

/// Draws a saved graph. Flags that only apply to samples are refused.
pub(crate) fn saved(flags: &Flags, name: String, graph: Graph, format: Format) -> Result<Drawing, Failure> {
    if let Some(flag) = flags.of_samples() {
        let line = format!("{name} is a flame graph, not samples: {flag} cannot be applied");
        return Err(Failure { status: 2, line });
    }
    let inverted = flags.inverted && format != Format::Html;
    let graph = if inverted { graph.inverted() } else { graph };
    let title = flags.title.clone().unwrap_or(name);
    Ok(Drawing { title, unit: "samples".into(), views: vec![("everything".into(), graph)] })
}

/// The flags as options. Foreign frames are shown if the program has no others.
fn options(
    flags: &Flags,
    foreign: bool,
    moments: StateFilter,
    threads: Option<Pick>,
    tasks: Option<Pick>,
) -> Flamegraph {
    let options = Flamegraph::new()
        .c((foreign || flags.c) && !flags.no_c)
        .combine(!flags.no_combine)
        .recur(flags.recur.unwrap_or_default())
        .norepl(!flags.no_norepl)
        .moments(moments)
        .threads(threads.or_else(|| flags.threads.clone()).unwrap_or_default())
        .tasks(tasks.or_else(|| flags.tasks.clone()).unwrap_or_default());
    match &flags.filter {
        Some(filter) => options.filter(Matcher::Regex(filter.clone())),
        None => options,
    }
}

/// A thread or a task with a separate graph.
struct Part {
    label: String,
    threads: Option<Pick>,
    tasks: Option<Pick>,
}

/// The threads and tasks that get separate graphs, if there are several.
fn parts(flags: &Flags, source: Source<'_>, trees: &CallTrees<'_>, moments: StateFilter) -> Vec<Part> {
    let picked = |pick: &Option<Pick>, id| pick.as_ref().is_none_or(|pick| pick.has(id));
    let (mut threads, mut tasks) = (BTreeMap::<u64, u64>::new(), BTreeMap::<u64, u64>::new());
    for TaskCount { thread, task, count } in trees.counts(moments) {
        if picked(&flags.threads, thread) && picked(&flags.tasks, task) {
            *threads.entry(thread).or_default() += count;
            *tasks.entry(task).or_default() += count;
        }
    }
    let dictionary;
    let names = match source {
        Source::Recording(recording) => {
            dictionary = recording.dictionary();
            &dictionary
        }
        Source::Data(_, dictionary) => dictionary,
    };
    let mut parts: Vec<Part> = Vec::new();
    for id in busiest(&threads, "threads") {
        let label = match names.thread_label(id) {
            "" => format!("thread {id}"),
            name => format!("thread {id} ({name})"),
        };
        parts.push(Part { label, threads: Some(Pick::One(id)), tasks: None });
    }
    // A thread without tasks counts as its own task. Only named tasks add information.
    tasks.retain(|id, _| names.task_name(*id).is_some());
    for id in busiest(&tasks, "tasks") {
        let name = names.task_name(id).unwrap_or_default();
        let label = format!("task {name} ({id:#x})");
        parts.push(Part { label, threads: None, tasks: Some(Pick::One(id)) });
    }
    parts
}

/// The ids in ascending order; of very many, those with the most samples. A single thread needs no separate graph.
fn busiest(counts: &BTreeMap<u64, u64>, what: &str) -> Vec<u64> {
    if counts.len() < 2 && what == "threads" {
        return Vec::new();
    }
    let mut by_count: Vec<(u64, u64)> = counts.iter().map(|(id, count)| (*count, *id)).collect();
    by_count.sort_unstable_by(|a, b| b.cmp(a));
    if by_count.len() > MOST_PARTS {
        message::print(&format!(
            "of {} {what}, the {MOST_PARTS} busiest have separate graphs",
            by_count.len()
        ));
        by_count.truncate(MOST_PARTS);
    }
    let mut ids: Vec<u64> = by_count.into_iter().map(|(_, id)| id).collect();
    ids.sort_unstable();
    ids
}

fn title(input: &Input) -> String {
    match input.source() {
        Source::Recording(recording) if !recording.info.command.is_empty() => {
            recording.info.command.join(" ")
        }
        _ => input.name.clone(),
    }
}

/// The unit of the width of boxes.
fn unit(source: Source<'_>, moments: StateFilter) -> String {
    let what = match moments {
        _ if !is_timed(source) => "samples",
        StateFilter::All => "samples",
        StateFilter::Awake => "samples on CPU",
        StateFilter::Asleep => "samples asleep",
    };
    match source {
        Source::Recording(recording) if recording.info.delay.0 > 0 => {
            let every = std::time::Duration::from_nanos(recording.info.delay.0);
            format!("{what} (one each {every:?})")
        }
        _ => what.to_owned(),
    }
}

/// Whether samples stand for time of threads. Folded stacks and output of perf do not.
fn is_timed(source: Source<'_>) -> bool {
    matches!(source, Source::Recording(recording) if recording.info.delay.0 > 0)
}

impl Drawing {
    /// Writes the graphs in this format.
    pub(crate) fn write(&self, flags: &Flags, format: Format, out: &mut impl Write) -> io::Result<()> {
        let graph = &self.views[0].1;
        let paint = flags.colors.unwrap_or_default().paint();
        match format {
            Format::Html => {
                let page = Page::new(&*self.title)
                    .unit(&*self.unit)
                    .icicle(flags.icicle)
                    .inverted(flags.inverted)
                    .paint(paint);
                self.views.iter().fold(page, |page, (label, graph)| page.view(&**label, graph)).write_to(out)
            }
            Format::Svg => Svg::new(graph)
                .title(&*self.title)
                .unit(&*self.unit)
                .width(usize::from(flags.width))
                .icicle(flags.icicle)
                .most_rows(SVG_LEVELS)
                .paint(paint)
                .write_to(out),
            Format::Jlprof => {
                let nodes = graph.nodes().iter().map(|node| GraphNode {
                    depth: node.depth as usize,
                    frame: graph.frame(node),
                    status: node.status.0,
                    start: node.span.start(),
                    stop: node.span.stop(),
                });
                jlprof::write_graph_to(out, nodes)
            }
            Format::Png => {
                let colors = OneTheme::new(&paint, graph, flags.dark);
                let layout = if flags.icicle { Layout::Icicle } else { Layout::Flame };
                let options =
                    PictureOptions::new(&colors).layout(layout).title(&*self.title).unit(&*self.unit);
                let options = options.width(usize::from(flags.width));
                let options = options.levels(PNG_LEVELS);
                write_picture(graph, &options, out).map_err(io::Error::other)
            }
        }
    }

    /// A line that says what was drawn.
    pub(crate) fn summary(&self, format: Format) -> String {
        let graph = &self.views[0].1;
        let more = match self.views.len() {
            1 => String::new(),
            n => format!(", {} graphs of threads and tasks", n - 1),
        };
        let levels = match format {
            Format::Svg => SVG_LEVELS as usize,
            Format::Png => PNG_LEVELS,
            Format::Html | Format::Jlprof => usize::MAX,
        };
        let deeper = match graph.depth() {
            depth if depth > levels => format!("; {levels} of {depth} levels are drawn, a page has all"),
            _ => String::new(),
        };
        let samples = match graph.root().span.len() {
            1 => {
                let (word, rest) = self.unit.split_at(self.unit.find(' ').unwrap_or(self.unit.len()));
                format!("1 {}{rest}", word.trim_end_matches('s'))
            }
            n => format!("{n} {}", self.unit),
        };
        let boxes = graph.nodes().len();
        format!("{boxes} {}, {samples}{more}{deeper}", if boxes == 1 { "box" } else { "boxes" })
    }
}
