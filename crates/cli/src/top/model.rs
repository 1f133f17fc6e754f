//! The figures of `top`: stacks of functions with their times, kept for each of the last refreshes.
//!
//! Each code location is symbolized once. Intervals that leave the window are dropped, so memory stays bounded.

use foldhash::{HashMap, HashSet};
use stackglass_profile::{Frame, Location, Recording, State, ThreadNumber, sanitize};
use std::collections::{BTreeMap, VecDeque};

/// Number of intervals (seconds) shown together on the screen.
pub(super) const WINDOW: usize = 10;

/// The number of a function or a line.
pub(crate) type Id = u32;

/// A line of code.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Line {
    /// File and line.
    pub(crate) at: String,
    /// The function that contains it.
    pub(crate) function: Id,
}

/// A function or line with its times, in ns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Row {
    /// The function or line.
    pub(crate) id: Id,
    /// Time at the top of the stack.
    pub(crate) own: u64,
    /// Time anywhere on the stack.
    pub(crate) total: u64,
}

/// Own and total time of a row, in ns.
#[derive(Clone, Copy, Default)]
struct Times {
    own: u64,
    total: u64,
}

/// A thread with its times, in ns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ThreadRow {
    /// Its number in the recording.
    pub(crate) number: ThreadNumber,
    /// The kernel's thread id.
    pub(crate) tid: u32,
    /// Its name.
    pub(crate) name: String,
    /// Time running.
    pub(crate) awake: u64,
    /// Time ready to run, without a CPU.
    pub(crate) waiting: u64,
    /// The function with the most own time.
    pub(crate) hottest: Option<Id>,
}

/// A stack of a thread.
#[derive(PartialEq, Eq, Hash)]
struct Stack {
    thread: ThreadNumber,
    /// From root to leaf.
    functions: Vec<Id>,
    /// The line of the leaf.
    line: Option<Id>,
}

/// The times between two refreshes, in ns.
#[derive(Default)]
struct Interval {
    wall: u64,
    /// Running time per stack.
    stacks: HashMap<Stack, u64>,
    waiting: HashMap<ThreadNumber, u64>,
}

/// Numbers values, equal ones alike.
struct Interner<T> {
    all: Vec<T>,
    ids: HashMap<T, Id>,
}

impl<T> Default for Interner<T> {
    fn default() -> Interner<T> {
        Interner { all: Vec::new(), ids: HashMap::default() }
    }
}

impl<T: Clone + Eq + std::hash::Hash> Interner<T> {
    fn intern(&mut self, value: T) -> Id {
        let next = self.all.len() as Id;
        *self.ids.entry(value).or_insert_with_key(|value| {
            self.all.push(value.clone());
            next
        })
    }
}

/// The figures of the last seconds.
pub(crate) struct Model {
    /// Number of intervals that are kept.
    window: usize,
    functions: Interner<String>,
    lines: Interner<Line>,
    /// Functions and lines at a code location, innermost first.
    symbolized: HashMap<Location, Vec<(Id, Option<Id>)>>,
    intervals: VecDeque<Interval>,
    threads: BTreeMap<ThreadNumber, (u32, String)>,
}

impl Model {
    /// A model that keeps this many intervals, without any yet.
    pub(crate) fn of_intervals(window: usize) -> Model {
        Model {
            window,
            functions: Interner::default(),
            lines: Interner::default(),
            symbolized: HashMap::default(),
            intervals: VecDeque::new(),
            threads: BTreeMap::new(),
        }
    }

    /// Adds the samples from `from` on, an interval of `wall` ns.
    pub(crate) fn add(&mut self, recording: &Recording, from: usize, wall: u64) {
        self.symbolize(recording, from);
        let mut interval = Interval { wall, ..Interval::default() };
        for sample in recording.samples.iter().skip(from) {
            match sample.state {
                State::Awake => {
                    let mut line = None;
                    let mut stack = Vec::new();
                    for id in recording.stacks.walk(sample.stack) {
                        for (function, at) in
                            self.symbolized.get(&recording.stacks.location(id)).into_iter().flatten()
                        {
                            if stack.is_empty() {
                                line = *at;
                            }
                            stack.push(*function);
                        }
                    }
                    stack.reverse();
                    let stack = Stack { thread: sample.thread, functions: stack, line };
                    *interval.stacks.entry(stack).or_default() += sample.time.0;
                }
                State::Waiting => *interval.waiting.entry(sample.thread).or_default() += sample.time.0,
                State::Asleep | State::Task => {}
            }
        }
        self.intervals.push_back(interval);
        while self.intervals.len() > self.window {
            self.intervals.pop_front();
        }
        self.threads = (1..)
            .zip(&recording.threads)
            .filter(|(_, thread)| thread.end.is_none())
            .map(|(number, thread)| (ThreadNumber(number), (thread.tid, sanitize(&thread.name).into_owned())))
            .collect();
    }

    fn symbolize(&mut self, recording: &Recording, from: usize) {
        let is_new = |sample: &stackglass_profile::Sample| {
            let new = |id| !self.symbolized.contains_key(&recording.stacks.location(id));
            sample.state == State::Awake && recording.stacks.walk(sample.stack).any(new)
        };
        let samples = recording.samples.iter().enumerate().skip(from);
        let wanted: Vec<usize> = samples.filter(|(_, sample)| is_new(sample)).map(|(i, _)| i).collect();
        if wanted.is_empty() {
            return;
        }
        let mut part = recording.excerpt(wanted);
        stackglass_symbols::symbolize(&mut part, &Default::default(), &mut |_| ());
        for (location, id) in part.stacks.locations().iter().zip(0..) {
            let frames = part.symbols.frames_of(stackglass_profile::LocationId(id));
            let module = location.module.and_then(|module| part.modules.get(module.0 as usize));
            let module = module.map_or("", |module| module.path.rsplit('/').next().unwrap_or(""));
            let mut named: Vec<(Id, Option<Id>)> = Vec::new();
            for frame in frames {
                let function = self.functions.intern(function_of(frame, module, location.offset));
                let line = line_of(&part, frame).map(|at| self.lines.intern(Line { at, function }));
                named.push((function, line));
            }
            if named.is_empty() {
                named.push((self.functions.intern(unnamed(module, location.offset)), None));
            }
            self.symbolized.insert(*location, named);
        }
    }

    /// Symbolizes a location as this function and line.
    #[cfg(test)]
    pub(super) fn insert_line(&mut self, location: Location, function: &str, at: &str) {
        let function = self.functions.intern(function.to_owned());
        let line = self.lines.intern(Line { at: at.to_owned(), function });
        self.symbolized.insert(location, vec![(function, Some(line))]);
    }

    /// The name of a function.
    pub(crate) fn name(&self, function: Id) -> &str {
        self.functions.all.get(function as usize).map_or("", String::as_str)
    }

    /// A line by its number.
    pub(crate) fn line(&self, line: Id) -> Option<&Line> {
        self.lines.all.get(line as usize)
    }

    /// Whether nothing has been added yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.intervals.is_empty()
    }

    /// Time that the window covers, in ns; at least 1.
    pub(crate) fn wall(&self) -> u64 {
        self.intervals.iter().map(|interval| interval.wall).sum::<u64>().max(1)
    }

    fn stacks(&self, of: Option<ThreadNumber>) -> impl Iterator<Item = (&Stack, u64)> {
        let stacks =
            self.intervals.iter().flat_map(|interval| interval.stacks.iter().map(|(key, time)| (key, *time)));
        stacks.filter(move |(stack, _)| of.is_none_or(|of| of == stack.thread))
    }

    /// Running time of all threads, in ns.
    pub(crate) fn awake(&self) -> u64 {
        self.stacks(None).map(|(_, time)| time).sum()
    }

    /// Functions of one thread, or of all, sorted by own time, descending.
    pub(crate) fn functions(&self, of: Option<ThreadNumber>) -> Vec<Row> {
        self.rows(of, |stack, time, rows| {
            let mut seen = HashSet::default();
            for id in stack.functions.iter().filter(|id| seen.insert(**id)) {
                rows.entry(*id).or_default().total += time;
            }
            if let Some(leaf) = stack.functions.last() {
                rows.entry(*leaf).or_default().own += time;
            }
        })
    }

    /// Lines, sorted by the time spent on them, descending.
    pub(crate) fn lines(&self, of: Option<ThreadNumber>) -> Vec<Row> {
        self.rows(of, |stack, time, rows| {
            if let Some(line) = &stack.line {
                rows.entry(*line).or_default().own += time;
                rows.entry(*line).or_default().total += time;
            }
        })
    }

    /// Direct callers of a function. Their time is that of the function called from them.
    pub(crate) fn callers(&self, of: Option<ThreadNumber>, function: Id) -> Vec<Row> {
        self.neighbours(of, function, |stack, at| at.checked_sub(1).and_then(|at| stack.get(at).copied()))
    }

    /// Direct callees of a function. The function itself stands for its own time.
    pub(crate) fn callees(&self, of: Option<ThreadNumber>, function: Id) -> Vec<Row> {
        self.neighbours(of, function, |stack, at| stack.get(at + 1).or(stack.get(at)).copied())
    }

    fn neighbours(
        &self,
        of: Option<ThreadNumber>,
        function: Id,
        next: impl Fn(&[Id], usize) -> Option<Id>,
    ) -> Vec<Row> {
        self.rows(of, |stack, time, rows| {
            let mut seen = HashSet::default();
            for (at, _) in stack.functions.iter().enumerate().filter(|(_, id)| **id == function) {
                if let Some(other) = next(&stack.functions, at).filter(|other| seen.insert(*other)) {
                    rows.entry(other).or_default().total += time;
                }
            }
        })
    }

    fn rows(
        &self,
        of: Option<ThreadNumber>,
        mut add: impl FnMut(&Stack, u64, &mut HashMap<Id, Times>),
    ) -> Vec<Row> {
        let mut rows: HashMap<Id, Times> = HashMap::default();
        for (key, time) in self.stacks(of) {
            add(key, time, &mut rows);
        }
        let mut rows: Vec<Row> =
            rows.into_iter().map(|(id, times)| Row { id, own: times.own, total: times.total }).collect();
        rows.sort_by(|a, b| (b.own, b.total).cmp(&(a.own, a.total)).then(a.id.cmp(&b.id)));
        rows
    }

    /// Living threads, sorted by running time, descending.
    pub(crate) fn threads(&self) -> Vec<ThreadRow> {
        let mut in_functions: HashMap<ThreadNumber, HashMap<Id, u64>> = HashMap::default();
        for (stack, time) in self.stacks(None) {
            let leaf = stack.functions.last().copied().unwrap_or(Id::MAX);
            *in_functions.entry(stack.thread).or_default().entry(leaf).or_default() += time;
        }
        let mut rows: Vec<ThreadRow> = self
            .threads
            .iter()
            .map(|(number, (tid, name))| {
                let functions = in_functions.get(number);
                let hottest = functions.and_then(|f| f.iter().max_by_key(|(id, time)| (**time, **id)));
                ThreadRow {
                    number: *number,
                    tid: *tid,
                    name: name.clone(),
                    awake: functions.map_or(0, |f| f.values().sum()),
                    waiting: self.intervals.iter().filter_map(|interval| interval.waiting.get(number)).sum(),
                    hottest: hottest.map(|(id, _)| *id).filter(|id| *id != Id::MAX),
                }
            })
            .collect();
        rows.sort_by_key(|row| (std::cmp::Reverse(row.awake), row.number));
        rows
    }
}

fn function_of(frame: &Frame, module: &str, offset: u64) -> String {
    if frame.func.is_empty() { unnamed(module, offset) } else { sanitize(&frame.func).into_owned() }
}

fn unnamed(module: &str, offset: u64) -> String {
    if module.is_empty() { format!("0x{offset:x}") } else { format!("[{}]", sanitize(module)) }
}

fn line_of(recording: &Recording, frame: &Frame) -> Option<String> {
    if frame.line <= 0 || frame.file.is_empty() {
        return None;
    }
    let file = recording.symbols.short_path(&frame.file).map_or_else(
        || frame.file.to_string(),
        |short| match &*short.prefix {
            "" => short.rest.to_string(),
            prefix => format!("{prefix}/{}", short.rest),
        },
    );
    Some(format!("{}:{}", sanitize(&file), frame.line))
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::recording;
    use super::*;

    fn named(model: &Model, rows: &[Row]) -> Vec<(String, u64, u64)> {
        rows.iter().map(|row| (model.name(row.id).to_owned(), row.own, row.total)).collect()
    }

    #[test]
    fn times_of_functions_callers_and_callees() {
        let mut model = Model::of_intervals(WINDOW);
        // 1 calls 2 and 3; 3 calls itself once.
        model.add(&recording(&[(1, &[2, 1], 50), (1, &[3, 3, 1], 30), (1, &[1], 5)]), 0, 100);
        let functions = named(&model, &model.functions(None));
        assert_eq!(
            functions,
            [("0x2".into(), 50, 50), ("0x3".into(), 30, 30), ("0x1".into(), 5, 85)],
            "recursion counts once"
        );
        let id = |name: &str| model.functions(None).iter().find(|row| model.name(row.id) == name).unwrap().id;
        assert_eq!(named(&model, &model.callers(None, id("0x2"))), [("0x1".into(), 0, 50)]);
        let callees = named(&model, &model.callees(None, id("0x1")));
        assert_eq!(callees, [("0x2".into(), 0, 50), ("0x3".into(), 0, 30), ("0x1".into(), 0, 5)]);
        let threads = model.threads();
        assert_eq!((threads[0].awake, threads[0].tid, model.wall()), (85, 77, 100));
        assert_eq!(threads[0].hottest.map(|id| model.name(id)), Some("0x2"));
        let other = Some(ThreadNumber(2));
        assert_eq!(model.functions(Some(ThreadNumber(1))), model.functions(None));
        assert!(model.functions(other).is_empty() && model.callers(other, id("0x2")).is_empty());
    }

    #[test]
    fn old_intervals_are_dropped() {
        let mut model = Model::of_intervals(WINDOW);
        model.add(&recording(&[(1, &[2, 1], 50)]), 0, 100);
        for _ in 0..WINDOW {
            model.add(&recording(&[(1, &[9, 1], 10)]), 0, 100);
        }
        let functions = named(&model, &model.functions(None));
        assert_eq!(functions, [("0x9".into(), 100, 100), ("0x1".into(), 0, 100)]);
        assert_eq!(model.wall(), 1000);
    }
}
