//! The hottest functions, lines, modules, crates, threads, processes, commands or tasks, as a flat table.
//!
//! Each nanosecond is the own time of exactly one row, so own times sum to the total. What a row owns is the same as
//! in the summary (functions) and in annotated sources (lines, crates).

use crate::kinds::Class;
use crate::options::{UnknownValue, option_words};
use crate::order;
use crate::queries::cpu_tree::{CpuTree, NodeKind};
use crate::queries::cut_reasons::no_stack_text;
use crate::queries::line_times::Counts;
use crate::queries::task_snapshot_errors;
use crate::queries::unaccounted_cpu::UNACCOUNTED;
use crate::queries::uncertainty::standard_error;
use crate::queries::waits::{Wait, Waits};
use crate::queries::weight::Weight;
use crate::state_filter::StateFilter;
use crate::text::short::in_brackets;
use foldhash::HashMap;
use stackglass_profile::frame::file_name;
use stackglass_profile::{
    AwaitKind, AwaitLocation, Frame, Recording, Sample, StackId, State, TASK_SNAPSHOTS, ThreadNumber,
    is_await_module, sanitize,
};
use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;

option_words! {
    /// What the rows of a [`HotTable`] are.
    HotKey("key") {
        /// Functions.
        #[default]
        Function = "function",
        /// Source lines.
        Line = "line",
        /// Executables and libraries.
        Module = "module",
        /// Crates; executables and libraries for code of other languages.
        Crate = "crate",
        /// Threads.
        Thread = "thread",
        /// Processes.
        Process = "process",
        /// Programs: all processes of one name.
        Command = "command",
        /// Async tasks, by name.
        Task = "task",
    } "function, line, module, crate, thread, process, command or task"
}

/// A flat table of time.
#[derive(Clone, Debug)]
pub struct HotTable {
    /// What the rows are.
    pub key: HotKey,
    /// The states of threads that are counted.
    pub states: StateFilter,
    /// Whether amounts are nanoseconds. Otherwise they are samples, since these have no times.
    pub timed: bool,
    /// The sum of the own amounts of all rows.
    pub total: u64,
    /// Samples: stacks that were taken.
    pub samples: u64,
    /// All rows: those with the largest own amount first, then the largest total, then by name.
    pub rows: Vec<HotRow>,
}

/// A row of a [`HotTable`].
#[derive(Clone, PartialEq, Debug)]
pub struct HotRow {
    /// Its full name.
    pub name: String,
    /// The line of a function with the most time, if lines are known; the function of a line.
    pub place: Option<Place>,
    /// For tasks that wait at `place`: the future in which the wait ends.
    pub waits_in: Option<Arc<str>>,
    /// For functions of other languages than Rust, the file name of their executable or library. Otherwise empty.
    pub module: String,
    /// Number of processes or tasks that share the row; 1 for other keys.
    pub alike: u64,
    /// The amount that the row itself has.
    pub own: u64,
    /// The amount of all stacks that contain it. Recursion counts once.
    pub total: u64,
    /// Samples of its own amount.
    pub own_samples: u64,
    /// Samples that contain it.
    pub total_samples: u64,
    /// Standard error of its own amount; `None` if time is not an estimate: sleeping threads are not sampled.
    pub error: Option<f64>,
}

/// A source line and its function.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Place {
    /// The file, as recorded.
    pub file: Arc<str>,
    /// The line.
    pub line: i64,
    /// The function.
    pub function: Arc<str>,
}

/// A row without its share and error.
struct Counted {
    name: String,
    place: Option<Place>,
    waits_in: Option<Arc<str>>,
    module: String,
    alike: u64,
    own: Weight,
    total: Weight,
}

/// What tells a row from others: the line of a function may differ between parts of a recording, that of a wait does not.
type RowKey = (String, String, Option<(Arc<str>, Option<Place>)>);

impl Counted {
    fn key(&self) -> RowKey {
        let wait = self.waits_in.clone().map(|future| (future, self.place.clone()));
        (self.name.clone(), self.module.clone(), wait)
    }

    fn named(name: String, own: Weight, total: Weight) -> Counted {
        Counted { name, place: None, waits_in: None, module: String::new(), alike: 1, own, total }
    }
}

impl HotTable {
    /// Counts all samples of a recording, whatever their state: [`Selection`](crate::Selection) chooses them before.
    /// `states` says which it has chosen.
    pub fn new(mut recording: Recording, key: HotKey, states: StateFilter) -> HotTable {
        // A profile by wall time has one state.
        let states = if recording.is_walltime() { StateFilter::Awake } else { states };
        // The tree of functions must not add it.
        recording.info.kernel_cpu = None;
        // The queries below count CPU time.
        for sample in recording.samples.iter_mut().filter(|sample| !sample.state.uses_cpu()) {
            sample.state = State::Awake;
        }
        let counters = recording.processes.iter().filter_map(|process| process.counters.get(TASK_SNAPSHOTS));
        let snapshots: u64 = counters.sum();
        let rows = counted(&recording, key);
        let mut all = Weight::default();
        rows.iter().for_each(|row| all += row.own);
        let timed = all.time > 0 || rows.is_empty();
        let amount = |weight: Weight| if timed { weight.time } else { weight.hits };
        let snapshot_errors =
            (snapshots > 0).then(|| snapshot_errors(&mut recording, key, snapshots, amount));
        let row = |counted: Counted| {
            let of_snapshots =
                snapshot_errors.as_ref().map(|errors| errors.get(&counted.key()).copied().unwrap_or(0.0));
            let Counted { name, place, waits_in, module, alike, own, total } = counted;
            let each = amount(own) as f64 / own.hits.max(1) as f64;
            let sampled = states == StateFilter::Awake && own.hits > 0;
            let error =
                sampled.then(|| of_snapshots.unwrap_or_else(|| standard_error(own.hits, all.hits) * each));
            HotRow {
                name,
                place,
                waits_in,
                module,
                alike,
                own: amount(own),
                total: amount(total),
                own_samples: own.hits,
                total_samples: total.hits,
                error,
            }
        };
        let rows = rows.into_iter().map(row).collect();
        let mut table = HotTable { key, states, timed, total: amount(all), samples: all.hits, rows };
        table.sort();
        table
    }

    /// Adds a row `[unaccounted]` for CPU time that no sample covers (see [`unaccounted_cpu`](crate::unaccounted_cpu)), so that shares are
    /// those of the summary.
    pub fn add_unaccounted(&mut self, time: u64) {
        if time == 0 || !self.timed {
            return;
        }
        let (name, module) = (UNACCOUNTED.to_owned(), String::new());
        let (place, waits_in, error) = (None, None, None);
        let row = HotRow {
            name,
            place,
            waits_in,
            module,
            alike: 1,
            own: time,
            total: time,
            own_samples: 0,
            total_samples: 0,
            error,
        };
        self.rows.push(row);
        self.total = self.total.saturating_add(time);
        self.sort();
    }

    fn sort(&mut self) {
        self.rows.sort_by(|a, b| {
            order::largest_first(
                ((a.own, a.total), (&a.name, &a.module, &a.place, &a.waits_in)),
                ((b.own, b.total), (&b.name, &b.module, &b.place, &b.waits_in)),
            )
        });
    }
}

/// The rows of a recording.
fn counted(recording: &Recording, key: HotKey) -> Vec<Counted> {
    match key {
        HotKey::Function => functions(recording),
        HotKey::Line => lines(recording),
        HotKey::Module => by_frame(recording, module, |_| None),
        HotKey::Crate => by_frame(recording, krate, krate_of_wait),
        HotKey::Thread => by_thread(recording, |number| {
            let label = sanitize(&recording.thread_label(number)).into_owned();
            if label.is_empty() { format!("thread {}", number.0) } else { label }
        }),
        HotKey::Process => by_thread(recording, |number| process(recording, number)),
        HotKey::Command => {
            let process = |sample: &Sample| {
                recording.thread(sample.thread).map_or(u64::MAX, |thread| thread.process.0.into())
            };
            by_id(recording, process, |index| command(recording, index))
        }
        HotKey::Task => {
            let names: HashMap<u64, &str> =
                recording.tasks.iter().map(|task| (task.id.0, &*task.name)).collect();
            by_id(recording, |sample| sample.task, |id| task(&names, id))
        }
    }
}

/// The errors of the own amounts of all rows of a profile with so many task snapshots.
fn snapshot_errors(
    recording: &mut Recording,
    key: HotKey,
    snapshots: u64,
    amount: impl Fn(Weight) -> u64,
) -> BTreeMap<RowKey, f64> {
    let groups = task_snapshot_errors::groups(recording, snapshots);
    let mut rows: BTreeMap<RowKey, Vec<(f64, f64)>> = BTreeMap::new();
    let times: Vec<(f64, f64)> = groups.iter().map(|group| (0.0, group.time)).collect();
    for (number, group) in groups.into_iter().enumerate() {
        recording.samples = group.samples;
        for row in counted(recording, key) {
            rows.entry(row.key()).or_insert_with(|| times.clone())[number].0 += amount(row.own) as f64;
        }
    }
    rows.into_iter().map(|(key, groups)| (key, task_snapshot_errors::standard_error(&groups))).collect()
}

/// Functions, as the summary counts them.
fn functions(recording: &Recording) -> Vec<Counted> {
    let tree = CpuTree::build(recording, false);
    let mut lines: Vec<Option<HashMap<u32, u64>>> = vec![None; tree.names.functions.len()];
    let mut others: BTreeMap<String, Weight> = BTreeMap::new();
    for node in &tree.nodes {
        match node.what {
            NodeKind::Function(function) => {
                let lines = lines[function as usize].get_or_insert_default();
                for (line, time) in &node.lines {
                    *lines.entry(*line).or_default() += time;
                }
            }
            NodeKind::Nothing(cut) => *others.entry(no_stack_text(cut)).or_default() += node.own,
            NodeKind::Root | NodeKind::Program(_) | NodeKind::Executors(_) | NodeKind::Unaccounted => {}
        }
    }
    let place = |lines: HashMap<u32, u64>, name: &str| {
        let (line, _) = lines.into_iter().max_by_key(|(line, time)| (*time, std::cmp::Reverse(*line)))?;
        let at = &tree.names.lines[line as usize];
        let known = !at.file.is_empty() && at.line > 0;
        known.then(|| Place { file: at.file.clone(), line: at.line, function: name.into() })
    };
    let functions = tree.names.functions.iter().zip(lines);
    let functions = functions.filter_map(|(function, lines)| {
        Some(Counted {
            // Functions of which no frame is shown own nothing, whatever contains them.
            place: place(lines?, &function.name),
            waits_in: None,
            name: function.name.clone(),
            module: function.module.clone(),
            alike: 1,
            own: function.own,
            total: function.total,
        })
    });
    let waits = tree.waits.iter().map(|(wait, own)| Counted {
        place: Some(Place { file: wait.file.clone(), line: wait.line, function: wait.function.clone() }),
        waits_in: Some(wait.future.clone()),
        ..Counted::named(sanitize(&wait.function).into_owned(), *own, *own)
    });
    let others = others.into_iter().map(|(name, own)| Counted::named(name, own, own));
    functions.chain(waits).chain(others).collect()
}

/// Lines, as annotated sources count them.
fn lines(recording: &Recording) -> Vec<Counted> {
    let counts = Counts::from_recording(recording, StateFilter::Awake);
    let mut rows = Vec::new();
    for file in counts.files {
        for (line, seen) in file.lines {
            let mut row = Counted::named(
                format!("{}:{line}", sanitize(&file.file)),
                seen.counted.own,
                seen.counted.total,
            );
            row.place = Some(Place { file: file.file.clone(), line, function: seen.func });
            rows.push(row);
        }
    }
    if counts.without_lines != Weight::default() {
        let without = counts.without_lines;
        rows.push(Counted::named("[code without line information]".to_owned(), without, without));
    }
    rows
}

/// What a frame belongs to, and whether it may own the time of what it called.
type Owner<'a> = (&'a str, bool);

/// The executable or library of a frame. Each owns its own code only.
fn module(frame: &Frame) -> Owner<'_> {
    (file_name(&frame.module), true)
}

/// The crate of a frame. Time in the standard library and the C library belongs to the crate that called them.
fn krate(frame: &Frame) -> Owner<'_> {
    let name = if frame.krate.is_empty() { file_name(&frame.module) } else { &*frame.krate };
    (name, crate::kinds::class(frame) == Class::Own)
}

/// The crate of the function that waits.
fn krate_of_wait(wait: &Wait) -> Option<String> {
    let krate =
        AwaitLocation { kind: AwaitKind::Waiting, function: wait.function.clone(), file: "".into(), line: 0 };
    Some(sanitize(&krate.frame().krate).into_owned()).filter(|krate| !krate.is_empty())
}

/// Own time of the innermost frame that may own it, else of the innermost one; total time of all frames. Where tasks wait,
/// `of_wait` may name another owner.
fn by_frame(
    recording: &Recording,
    owner_of: fn(&Frame) -> Owner<'_>,
    of_wait: fn(&Wait) -> Option<String>,
) -> Vec<Counted> {
    // The code of waiting tasks has no address. It is part of the program, as far as is known.
    let program = recording.processes.first().map_or("", |process| file_name(&process.exe));
    let waits = Waits::new(recording);
    let mut stacks: HashMap<u32, Weight> = HashMap::default();
    for sample in &recording.samples {
        *stacks.entry(sample.stack.0).or_default() += weight(sample);
    }
    let mut rows: BTreeMap<String, (Weight, Weight)> = BTreeMap::new();
    for (stack, weight) in stacks {
        let wait = waits.as_ref().and_then(|waits| waits.of(StackId(stack)));
        let (mut met, mut owner, mut leaf): (Vec<String>, Option<String>, Option<String>) =
            (Vec::new(), wait.and_then(|wait| of_wait(&wait)), None);
        met.extend(owner.clone());
        for location in recording.stacks.walk(StackId(stack)) {
            let module = recording.stacks.location(location).module;
            let module = module.and_then(|module| recording.modules.get(module.0 as usize));
            let is_await = module.is_some_and(|module| is_await_module(&module.path));
            let mut add = |(name, owns): Owner<'_>| {
                let name = match name {
                    "" if is_await && !program.is_empty() => sanitize(program).into_owned(),
                    "" => "[unknown code]".to_owned(),
                    name => sanitize(name).into_owned(),
                };
                if owns && owner.is_none() {
                    owner = Some(name.clone());
                }
                leaf.get_or_insert_with(|| name.clone());
                if !met.contains(&name) {
                    met.push(name);
                }
            };
            let frames = recording.symbols.frames_of(location);
            let mut any = false;
            for frame in frames.filter(|frame| !frame.is_unknown()) {
                any = true;
                add(owner_of(frame));
            }
            if !any {
                add((module.map_or("", |module| file_name(&module.path)), true));
            }
        }
        let own = owner.or(leaf).unwrap_or_else(|| "[no stack]".to_owned());
        if met.is_empty() {
            met.push(own.clone());
        }
        rows.entry(own).or_default().0 += weight;
        for name in met {
            rows.entry(name).or_default().1 += weight;
        }
    }
    rows.into_iter().map(|(name, (own, total))| Counted::named(name, own, total)).collect()
}

/// All time of each thread, added by name.
fn by_thread(recording: &Recording, name_of: impl Fn(ThreadNumber) -> String) -> Vec<Counted> {
    let rows = by_id(recording, |sample| sample.thread.0.into(), |id| name_of(ThreadNumber(id as u32)));
    rows.into_iter().map(|row| Counted { alike: 1, ..row }).collect()
}

/// All time of each name, with the number of ids that have it.
fn by_id(
    recording: &Recording,
    id_of: impl Fn(&Sample) -> u64,
    name_of: impl Fn(u64) -> String,
) -> Vec<Counted> {
    let mut sums: BTreeMap<u64, Weight> = BTreeMap::new();
    for sample in &recording.samples {
        *sums.entry(id_of(sample)).or_default() += weight(sample);
    }
    let mut rows: BTreeMap<String, (Weight, u64)> = BTreeMap::new();
    for (id, weight) in sums {
        let (sum, ids) = rows.entry(name_of(id)).or_default();
        *sum += weight;
        *ids += 1;
    }
    let row = |(name, (own, alike))| Counted { alike, ..Counted::named(name, own, own) };
    rows.into_iter().map(row).collect()
}

/// The program that a process runs.
fn command(recording: &Recording, index: u64) -> String {
    match recording.processes.get(index as usize).map(|process| process.title()) {
        Some(title) if !title.is_empty() => sanitize(&title).into_owned(),
        _ => in_brackets("unknown program"),
    }
}

/// The name of a task.
fn task(names: &HashMap<u64, &str>, id: u64) -> String {
    match (names.get(&id), id) {
        (Some(name), _) if !name.is_empty() => sanitize(name).into_owned(),
        (_, 0) => "[no task]".to_owned(),
        _ => "[tasks without a name]".to_owned(),
    }
}

/// `cc1 4211`.
fn process(recording: &Recording, number: ThreadNumber) -> String {
    let thread = recording.thread(number);
    match thread.and_then(|thread| recording.processes.get(thread.process.0 as usize)) {
        Some(process) if !process.exe.is_empty() => {
            format!("{} {}", sanitize(&process.title()), process.pid)
        }
        Some(process) if process.pid > 0 => format!("process {}", process.pid),
        _ => in_brackets("unknown process"),
    }
}

fn weight(sample: &Sample) -> Weight {
    Weight { time: sample.time.0, hits: u64::from(sample.hits) }
}
