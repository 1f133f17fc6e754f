//! The graphs of one output: one of all samples and, for a page, one per thread and per task.

use super::format::Format;
use super::{Flags, pruned};
use crate::failure::Failure;
use crate::input::{self, Input};
use crate::message;
use stackglass_files::jlprof::{self, GraphNode};
use stackglass_flame::png::{Layout, MOST_LEVELS, PictureOptions, write_picture};
use stackglass_flame::schemes::OneTheme;
use stackglass_flame::{Flamegraph, FlamegraphResult, Graph, Matcher, Page, Svg, Warning};
use stackglass_profile::Nanos;
use stackglass_report::call_tree::{StateFilter, TaskCount};
use stackglass_report::{CallTrees, Metric, Pick, Source};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Most threads, and most tasks, that get separate graphs.
const MOST_PARTS: usize = 48;

/// The unit of time in pictures.
const MILLISECOND: Nanos = Nanos(1_000_000);

/// Levels that an SVG picture shows.
const SVG_LEVELS: u32 = 1000;

/// Graphs to draw.
pub(crate) struct Drawing {
    title: String,
    unit: String,
    /// The graph of pictures.
    graph: Graph,
    /// The graphs of a page; the first have all samples.
    views: Vec<PageView>,
    /// The unit if samples asleep count as well.
    wall_unit: String,
    /// The page first shows samples asleep as well.
    wall: bool,
    /// The page first shows foreign frames.
    foreign: bool,
    /// What samples without a stack count, which have no box.
    without_stack: u64,
}

/// The graphs of everything, of a thread, or of a task.
struct PageView {
    label: String,
    graph: Option<Graph>,
    asleep: Option<Graph>,
    /// Its samples are none of those of the first view.
    apart: bool,
}

/// Makes graphs from samples.
pub(crate) fn draw(
    flags: &Flags,
    mut input: Input,
    metric: Metric,
    format: Format,
) -> Result<Drawing, Failure> {
    let time = match (metric, format) {
        // Julia's graphs count samples.
        (Metric::Time, Format::Html | Format::Svg | Format::Png) => count_time(&mut input),
        _ => None,
    };
    let input = &input;
    let source = input.source();
    let trees = CallTrees::new(source).map_err(Failure::new)?;
    flags.pick.check_trees(&input.name, &trees)?;
    let mut moments = if flags.wall { StateFilter::All } else { StateFilter::Awake };
    if moments == StateFilter::Awake
        && trees.counts(moments).is_empty()
        && !trees.counts(StateFilter::All).is_empty()
    {
        message::print("no thread was sampled on a CPU: drawing threads that were asleep");
        moments = StateFilter::All;
    }
    let pruned = pruned::find(&flags.prune, source);
    let foreign = source.frames().iter().all(|frame| frame.foreign);
    let shown = (foreign || flags.c) && !flags.no_c;
    let graph_of = |c: bool, moments: StateFilter, threads: Option<Pick>, tasks: Option<Pick>| {
        let mut options = options(flags, c, moments, threads, tasks);
        for rule in &pruned {
            options = options.prune(&rule.func, &rule.file);
        }
        let drawn = options.graph_of(&trees, source);
        drawn.map_err(Failure::new)
    };
    let FlamegraphResult { graph, warning } = graph_of(shown, moments, None, None)?;
    let Some(mut graph) = graph else {
        return Err(Failure::new(
            warning.map_or(String::new(), |warning| format!("{}: {warning}", input.name)),
        ));
    };
    match (warning, &flags.filter) {
        (Some(Warning::FilterIgnored), Some(filter)) => {
            return Err(Failure::new(format!(
                "{}: no frame matches `{filter}`: there are {}",
                input.name,
                hottest(&graph).join(", ")
            )));
        }
        (Some(warning), _) => message::print(&warning.to_string()),
        (None, _) => {}
    }
    if flags.no_c && graph.nodes().len() == 1 {
        message::print("all samples are in foreign code, which --no-c leaves out");
    }
    // Filters leave out more than that.
    let without_stack = match flags.filter.is_none() && flags.prune.is_empty() {
        true => picked(flags, &trees, moments).saturating_sub(graph.root().span.len()),
        false => 0,
    };
    let mut views = Vec::new();
    if format == Format::Html {
        // The page hides foreign frames and samples asleep by itself. Julia's buffers and folded stacks have no states.
        let has_states = time.is_some();
        let running = if has_states { StateFilter::Awake } else { moments };
        let everything = Part { label: "everything".to_owned(), threads: None, tasks: None };
        let counted = if has_states { StateFilter::All } else { moments };
        for part in std::iter::once(everything).chain(parts(flags, source, &trees, counted)) {
            // A graph without a match of the filter comes unfiltered, with a warning.
            let of = |moments| -> Result<Option<Graph>, Failure> {
                let drawn = graph_of(true, moments, part.threads.clone(), part.tasks.clone())?;
                Ok(drawn.graph.filter(|_| drawn.warning.is_none()))
            };
            let graph = of(running)?;
            let asleep = if has_states { of(StateFilter::NotOnCpu)? } else { None };
            if graph.is_some() || asleep.is_some() {
                views.push(PageView { label: part.label, graph, asleep, apart: false });
            }
        }
        for event in &input.other_events {
            let source = Source::Recording(&event.recording);
            let trees = CallTrees::new(source).map_err(Failure::new)?;
            let options = options(flags, true, StateFilter::All, None, None);
            let drawn = options.graph_of(&trees, source).map_err(Failure::new)?;
            let graph = drawn.graph.filter(|_| drawn.warning.is_none());
            let label = format!("event {}", input::event_name(event));
            views.extend(graph.map(|graph| PageView {
                label,
                graph: Some(graph),
                asleep: None,
                apart: true,
            }));
        }
    } else {
        graph = still(flags, graph, format);
    }
    let title = flags.title.clone().unwrap_or_else(|| input.title());
    let noun =
        if metric == Metric::Time { unit(time, input.source(), moments) } else { metric.noun().to_owned() };
    let wall_unit = unit(time, input.source(), StateFilter::All);
    Ok(Drawing {
        title,
        unit: noun,
        graph,
        views,
        wall_unit,
        wall: moments == StateFilter::All,
        foreign: shown,
        without_stack,
    })
}

/// All that the samples of the chosen threads and tasks count.
fn picked(flags: &Flags, trees: &CallTrees<'_>, moments: StateFilter) -> u64 {
    let counts = trees.counts(moments).into_iter();
    counts.filter(|count| flags.pick.has(count.thread, count.task)).map(|count| count.count).sum()
}

/// The functions with the most time of their own.
fn hottest(graph: &Graph) -> Vec<String> {
    let mut own: BTreeMap<&str, u64> = BTreeMap::new();
    for (id, node) in graph.nodes().iter().enumerate().skip(1) {
        let callees: u64 =
            graph.children(id as _).map(|child| graph.nodes()[child as usize].span.len()).sum();
        *own.entry(&graph.frame(node).func).or_default() += node.span.len().saturating_sub(callees);
    }
    let mut names: Vec<(u64, &str)> = own.into_iter().map(|(name, own)| (own, name)).collect();
    names.sort_unstable_by(|a, b| b.cmp(a));
    names.into_iter().take(3).map(|(_, name)| format!("`{name}`")).chain(["…".to_owned()]).collect()
}

/// Draws a saved graph. Flags that only apply to samples are refused.
pub(crate) fn saved(flags: &Flags, name: String, graph: Graph, format: Format) -> Result<Drawing, Failure> {
    if let Some(flag) = flags.of_samples() {
        let line = format!("{name} is a flame graph, not samples: {flag} cannot be applied");
        return Err(Failure { status: 2, line });
    }
    let title = flags.title.clone().unwrap_or(name);
    let view =
        PageView { label: "everything".into(), graph: Some(graph.clone()), asleep: None, apart: false };
    let graph = if format == Format::Html { graph } else { still(flags, graph, format) };
    Ok(Drawing {
        title,
        unit: "samples".into(),
        graph,
        views: vec![view],
        wall_unit: String::new(),
        wall: false,
        foreign: true,
        without_stack: 0,
    })
}

/// The graph as a still picture shows it: inverted if asked for, and with one box for a function as on the page, without its
/// recursion. Julia's graphs have their lines.
fn still(flags: &Flags, graph: Graph, format: Format) -> Graph {
    let by_function = matches!(format, Format::Svg | Format::Png) && !flags.by_line() && !flags.no_combine;
    let graph = match (by_function, flags.recur) {
        (true, None) => {
            let folded = graph.by_function_without_recursion();
            if folded.has_folded_recursion() {
                message::print("calls by a function itself (↻) are part of its box; --recur off draws each");
            }
            folded
        }
        (true, Some(_)) if !flags.inverted => graph.by_function(),
        _ => graph,
    };
    match (flags.inverted, by_function) {
        (false, _) => graph,
        (true, false) => graph.inverted(),
        (true, true) => graph.with_functions().inverted(),
    }
}

/// The flags as options, with or without foreign frames.
fn options(
    flags: &Flags,
    foreign: bool,
    moments: StateFilter,
    threads: Option<Pick>,
    tasks: Option<Pick>,
) -> Flamegraph {
    let options = Flamegraph::new()
        .c(foreign)
        .combine(!flags.no_combine)
        .recur(flags.recur.unwrap_or_default())
        .norepl(!flags.no_norepl)
        .moments(moments)
        .threads(threads.or_else(|| flags.pick.threads.clone()).unwrap_or_default())
        .tasks(tasks.or_else(|| flags.pick.tasks.clone()).unwrap_or_default());
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
    let (mut threads, mut tasks) = (BTreeMap::<u64, u64>::new(), BTreeMap::<u64, u64>::new());
    for TaskCount { thread, task, count } in trees.counts(moments) {
        if flags.pick.has(thread, task) {
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

/// The unit of the width of boxes.
fn unit(time: Option<&str>, source: Source<'_>, moments: StateFilter) -> String {
    match time {
        Some(unit) => format!("{unit} of {}", source.noun(moments)),
        None => "samples".to_owned(),
    }
}

/// Makes counts time: milliseconds, or microseconds if samples were taken more often. Returns the name of the unit, or
/// `None` for samples without times: folded stacks and output of perf.
fn count_time(input: &mut Input) -> Option<&'static str> {
    let delay = input.timed()?.info.delay;
    let (unit, name) = if delay < MILLISECOND { (Nanos(1_000), "µs") } else { (MILLISECOND, "ms") };
    input.count_time(unit).then_some(name)
}

impl Drawing {
    /// Writes the graphs in this format.
    pub(crate) fn write<'a>(&'a self, flags: &Flags, format: Format, out: &mut impl Write) -> io::Result<()> {
        let graph = &self.graph;
        let paint = flags.colors.unwrap_or_default().paint();
        match format {
            Format::Html => {
                let page = Page::new(&*self.title)
                    .unit(&*self.unit)
                    .wall_unit(&*self.wall_unit)
                    .icicle(flags.icicle)
                    .inverted(flags.inverted)
                    .wall(self.wall)
                    .by_line(flags.by_line())
                    .foreign(self.foreign)
                    .still(graph)
                    .schemes(flags.colors.unwrap_or_default().all_for_page());
                let add = |page: Page<'a>, view: &'a PageView| match &view.graph {
                    Some(graph) if view.apart => page.view_apart(&*view.label, graph),
                    _ => page.view_with_asleep(&*view.label, view.graph.as_ref(), view.asleep.as_ref()),
                };
                self.views.iter().fold(page, add).write_to(out)
            }
            Format::Svg => Svg::new(graph)
                .title(&*self.title)
                .unit(&*self.unit)
                .width(usize::from(flags.width))
                .icicle(flags.icicle)
                .by_line(flags.by_line())
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
                let options = options.width(usize::from(flags.width)).by_line(flags.by_line()).fine(true);
                write_picture(graph, &options, out).map_err(io::Error::other)
            }
        }
    }

    /// A line that says what was drawn.
    pub(crate) fn summary(&self, format: Format) -> String {
        let graph = &self.graph;
        let apart = self.views.iter().filter(|view| view.apart).count();
        let mut more = match self.views.len() - apart {
            0 | 1 => String::new(),
            n => format!(", {} graphs of threads and tasks", n - 1),
        };
        if apart > 0 {
            more += &format!(", {apart} of other events");
        }
        let levels = match format {
            Format::Svg => SVG_LEVELS as usize,
            Format::Png => MOST_LEVELS,
            Format::Html | Format::Jlprof => usize::MAX,
        };
        let deeper = match graph.depth() {
            depth if depth > levels => format!("; {levels} of {depth} levels are drawn, a page has all"),
            _ => String::new(),
        };
        let samples = match graph.root().span.len() {
            1 if !self.unit.starts_with("ms") && !self.unit.starts_with("µs") => {
                let (word, rest) = self.unit.split_at(self.unit.find(' ').unwrap_or(self.unit.len()));
                format!("1 {}{rest}", word.trim_end_matches('s'))
            }
            n => format!("{n} {}", self.unit),
        };
        let boxes = graph.nodes().len();
        let nameless = match self.without_stack {
            0 => String::new(),
            n => match self.unit.split(' ').next() {
                Some(unit @ ("ms" | "µs")) => format!(" (and {n} {unit} without a stack)"),
                _ => format!(" (and {n} without a stack)"),
            },
        };
        format!("{boxes} {}, {samples}{nameless}{more}{deeper}", if boxes == 1 { "box" } else { "boxes" })
    }
}
