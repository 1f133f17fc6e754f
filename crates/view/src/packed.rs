//! A recording as the page reads it: a head, and columns.

use crate::allocations::{Allocated, AllocationsHead};
use crate::assembly::{self, CodeHead};
use crate::columns::Columns;
use crate::compared::{self, Before};
use crate::first::First;
use crate::frames::Frames;
use crate::heap::{self, Heap, HeapHead};
use crate::lanes::{self, ProcessLane, ThreadLane};
use crate::nodes::Nodes;
use crate::samples::CutWords;
use crate::sources::{self, Sources, SourcesHead};
use crate::{TaskDump, samples, tasks};
use serde::Serialize;
use stackglass_flame::Category;
use stackglass_profile::{Recording, sanitize};
use stackglass_report::name_stackless;
use stackglass_symbols::Disassembly;

/// What is known before any column is read.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    title: String,
    /// The file of the recording, as a command names it.
    file: Option<String>,
    command: String,
    machine: String,
    writer: String,
    remarks: Vec<String>,
    /// ns.
    wall: u64,
    delay: u64,
    walltime: bool,
    /// Its samples have counts, and no times.
    untimed: bool,
    categories: Vec<CategoryRow>,
    processes: Vec<ProcessLane>,
    threads: Vec<ThreadLane>,
    nodes: usize,
    /// Rows of samples; each stands for one hit, or more.
    samples: usize,
    /// Why stacks are incomplete.
    cuts: Vec<CutWords>,
    allocations: Option<AllocationsHead>,
    heap: Option<HeapHead>,
    tasks: Option<TasksHead>,
    sources: SourcesHead,
    code: Option<CodeHead>,
    facts: Vec<(String, String)>,
    before: Option<Before>,
    /// Names and sizes.
    columns: Vec<(String, usize)>,
}

/// What is known of async tasks.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
struct TasksHead {
    /// Tasks that the recording names.
    named: usize,
    /// Tasks with samples.
    sampled: usize,
    /// Where the await stacks of one moment come from, if there are any.
    dump: Option<String>,
}

impl TasksHead {
    fn new(recording: &Recording, sampled: Option<usize>, beside: &Beside<'_>) -> Option<TasksHead> {
        let dump = beside.tasks.as_ref().map(|tasks| sanitize(tasks.name).into_owned());
        let is_any = sampled.is_some() || dump.is_some();
        is_any.then(|| TasksHead { named: recording.tasks.len(), sampled: sampled.unwrap_or(0), dump })
    }
}

/// What a page shows beside a recording.
#[derive(Clone, Copy, Debug, Default)]
pub struct Beside<'a> {
    /// The file of the recording, as a command names it.
    pub file: Option<&'a str>,
    /// A heap snapshot.
    pub heap: Option<Heap<'a>>,
    /// The tasks of the process at one moment.
    pub tasks: Option<Tasks<'a>>,
    /// Texts of source files.
    pub sources: Option<Sources<'a>>,
    /// The functions in which it spends its time, disassembled.
    pub code: Option<&'a Disassembly>,
    /// What is said of the recording.
    pub facts: Option<&'a Facts>,
    /// The name of an earlier recording and the recording, to compare with.
    pub before: Option<(&'a str, &'a Recording)>,
}

/// What is said of a recording, in the words of `stackglass info`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Facts {
    /// Labels and texts.
    pub rows: Vec<(String, String)>,
    /// Processes, threads, tasks and modules, as text.
    pub parts: String,
}

/// The tasks of a process at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Tasks<'a> {
    /// Where they come from: the name of a file.
    pub name: &'a str,
    /// The tasks.
    pub dump: &'a TaskDump,
}

/// A kind of code, and its colour.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct CategoryRow {
    name: &'static str,
    color: String,
}

fn hex(category: Category) -> String {
    let [red, green, blue] = category.color().0;
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// A packed recording.
///
/// ```
/// use stackglass_profile::Recording;
/// use stackglass_view::Packed;
///
/// let packed = Packed::new(Recording::default(), "empty");
/// assert!(packed.head().contains("\"samples\":0"));
/// ```
#[derive(Clone, Debug)]
pub struct Packed {
    head: String,
    title: String,
    source_texts: usize,
    code: usize,
    first: Option<First>,
    columns: Columns,
}

impl Packed {
    /// Packs a recording.
    pub fn new(recording: Recording, title: &str) -> Packed {
        Packed::with(recording, title, &Beside::default())
    }

    /// Packs a recording, which may be empty, with what lies beside it.
    pub fn with(mut recording: Recording, title: &str, beside: &Beside<'_>) -> Packed {
        let rust = recording.has_rust();
        let untimed = !recording.is_timed();
        let mut allocated = Allocated::of(&mut recording);
        let before =
            beside.before.map(|(name, earlier)| with_earlier(&mut recording, &mut allocated, name, earlier));
        if untimed {
            samples::count_hits(&mut recording);
        }
        name_stackless(&mut recording);
        let mut frames = Frames::new(&recording);
        let allocated_at = allocated.iter().flat_map(Allocated::stacks);
        let nodes = Nodes::new(&recording, rust, &mut frames, allocated_at);
        let mut columns = Columns::default();
        let table = frames.table(&recording, rust);
        table.write(&mut columns);
        nodes.write(&mut columns);
        let mut files = sources::write_lines(&recording, &frames, &nodes, &mut columns);
        let samples = samples::sorted(&recording);
        samples::write(&recording, &samples, &nodes, &mut columns);
        let cuts = samples::write_cuts(&recording, &samples, &mut columns);
        let sampled = tasks::write(&recording, &samples, &mut columns);
        let allocations = allocated.map(|allocated| allocated.write(&recording, &nodes, &mut columns));
        if let Some(tasks) = &beside.tasks {
            columns.push_text("tasks.dump", &tasks.dump.json());
        }
        let code =
            beside.code.map(|code| assembly::write(&recording, code, &samples, &mut files, &mut columns));
        let sources = sources::write_files(&recording, files, beside.sources.as_ref(), &mut columns);
        if let Some(facts) = beside.facts {
            columns.push_text("facts.parts", &facts.parts);
        }
        let heap = beside.heap.map(|heap| heap::write(&heap, &mut columns));
        let last = recording.samples.iter().map(|sample| sample.clock.0).max().unwrap_or(0);
        let info = &recording.info;
        let wall = info.wall.0.max(last.saturating_sub(info.start.0));
        // Two recordings are compared at first, and what has no samples is drawn at once.
        let has_first = before.is_none() && !samples.is_empty();
        let first = has_first.then(|| First::new(&recording, &samples, &nodes, &table, wall));
        let text = |text: &str| sanitize(text).into_owned();
        let head = Head {
            title: text(title),
            file: beside.file.map(text),
            command: text(&info.command.join(" ")),
            machine: text(&info.machine),
            writer: text(&info.writer),
            remarks: info.remarks.iter().map(|remark| text(remark)).collect(),
            wall,
            delay: info.delay.0,
            walltime: recording.is_walltime(),
            untimed,
            categories: Category::ALL
                .into_iter()
                .map(|category| CategoryRow { name: category.name(), color: hex(category) })
                .collect(),
            processes: lanes::processes(&recording, before.as_ref()),
            threads: lanes::threads(&recording),
            nodes: nodes.count(),
            samples: recording.samples.len(),
            cuts,
            allocations,
            heap,
            tasks: TasksHead::new(&recording, sampled, beside),
            sources,
            code,
            facts: beside.facts.map(|facts| facts.rows.clone()).unwrap_or_default(),
            before,
            columns: columns.sizes().iter().map(|(name, size)| ((*name).to_owned(), *size)).collect(),
        };
        let head = serde_json::to_string(&head).expect("the head is JSON");
        Packed {
            head,
            title: text(title),
            source_texts: sources.texts(),
            code: code.map_or(0, |code| code.functions()),
            first,
            columns,
        }
    }

    /// How many functions are disassembled in the page.
    pub fn disassembled(&self) -> usize {
        self.code
    }

    /// How many source files have their text in the page.
    pub fn source_texts(&self) -> usize {
        self.source_texts
    }

    /// JSON with all but the columns.
    pub fn head(&self) -> &str {
        &self.head
    }

    /// What is drawn before the columns have come, as JSON of at most 200 000 bytes; `None` if that is not possible.
    pub fn first_picture(&self) -> Option<String> {
        self.first.as_ref().and_then(First::json)
    }

    /// The title.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The columns.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }
}

/// Adds an earlier recording. Its allocations are compared with those of the later one.
fn with_earlier(
    recording: &mut Recording,
    allocated: &mut Option<Allocated>,
    name: &str,
    earlier: &Recording,
) -> Before {
    let name = sanitize(name);
    let Some(allocated) = allocated.as_mut().filter(|_| earlier.allocations.were_recorded()) else {
        return compared::add(recording, earlier, &name).0;
    };
    // What is shown of its allocations are stacks of their own.
    let mut earlier = earlier.clone();
    let of_earlier = Allocated::of(&mut earlier);
    let (before, added) = compared::add(recording, &earlier, &name);
    if let Some(of_earlier) = of_earlier {
        allocated.add(of_earlier, &added);
    }
    before
}
