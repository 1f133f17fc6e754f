//! What `top` knows: the last seconds, second by second, as stacks of functions with their times.
//!
//! Names are looked for once for each place in code; what falls out of the window is forgotten, so a view
//! may stay open for days.

use foldhash::{HashMap, HashSet};
use stackglass_profile::{Frame, Location, Recording, State, ThreadNumber, harmless};
use std::collections::{BTreeMap, VecDeque};

/// Seconds that are shown together.
const WINDOW: usize = 10;

/// A function or a line, by number.
pub(crate) type Id = u32;

/// A line of code.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Line {
    /// File and line.
    pub(crate) at: String,
    /// The function it is seen in.
    pub(crate) function: Id,
}

/// A function or line with its times, ns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Row {
    /// Its number.
    pub(crate) id: Id,
    /// While it ran itself.
    pub(crate) own: u64,
    /// While it was on the stack.
    pub(crate) total: u64,
}

/// A thread with its times, ns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ThreadRow {
    /// Its number.
    pub(crate) number: ThreadNumber,
    /// The kernel's.
    pub(crate) tid: u32,
    /// Its name.
    pub(crate) name: String,
    /// It ran.
    pub(crate) awake: u64,
    /// It was ready to run.
    pub(crate) waiting: u64,
    /// The function that it ran in most.
    pub(crate) hottest: Option<Id>,
}

/// Functions from root to leaf in a thread, and the leaf's line.
type Stack = (ThreadNumber, Vec<Id>, Option<Id>);

/// One refresh's worth.
#[derive(Default)]
struct Slice {
    wall: u64,
    /// The time it ran on each.
    stacks: HashMap<Stack, u64>,
    waiting: HashMap<ThreadNumber, u64>,
}

/// Things with a number each.
struct Numbered<T> {
    all: Vec<T>,
    numbers: HashMap<T, Id>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Numbered<T> {
        Numbered { all: Vec::new(), numbers: HashMap::default() }
    }
}

impl<T: Clone + Eq + std::hash::Hash> Numbered<T> {
    fn number(&mut self, one: T) -> Id {
        let next = self.all.len() as Id;
        *self.numbers.entry(one).or_insert_with_key(|one| {
            self.all.push(one.clone());
            next
        })
    }
}

/// The last seconds.
#[derive(Default)]
pub(crate) struct Model {
    functions: Numbered<String>,
    lines: Numbered<Line>,
    /// Functions and lines of a place in code, innermost first.
    known: HashMap<Location, Vec<(Id, Option<Id>)>>,
    slices: VecDeque<Slice>,
    threads: BTreeMap<ThreadNumber, (u32, String)>,
}

impl Model {
    /// Takes up the samples from `from` on, which `wall` ns have brought.
    pub(crate) fn take(&mut self, recording: &Recording, from: usize, wall: u64) {
        self.learn_names(recording, from);
        let mut slice = Slice { wall, ..Slice::default() };
        for sample in recording.samples.iter().skip(from) {
            match sample.state {
                State::Awake => {
                    let mut line = None;
                    let mut stack = Vec::new();
                    for id in recording.stacks.walk(sample.stack) {
                        for (function, at) in
                            self.known.get(&recording.stacks.location(id)).into_iter().flatten()
                        {
                            if stack.is_empty() {
                                line = *at;
                            }
                            stack.push(*function);
                        }
                    }
                    stack.reverse();
                    *slice.stacks.entry((sample.thread, stack, line)).or_default() += sample.time.0;
                }
                State::Waiting => *slice.waiting.entry(sample.thread).or_default() += sample.time.0,
                State::Asleep | State::Task => {}
            }
        }
        self.slices.push_back(slice);
        while self.slices.len() > WINDOW {
            self.slices.pop_front();
        }
        self.threads = (1..)
            .zip(&recording.threads)
            .filter(|(_, thread)| thread.end.is_none())
            .map(|(number, thread)| (ThreadNumber(number), (thread.tid, harmless(&thread.name).into_owned())))
            .collect();
    }

    fn learn_names(&mut self, recording: &Recording, from: usize) {
        let unknown = |sample: &stackglass_profile::Sample| {
            let new = |id| !self.known.contains_key(&recording.stacks.location(id));
            sample.state == State::Awake && recording.stacks.walk(sample.stack).any(new)
        };
        let samples = recording.samples.iter().enumerate().skip(from);
        let wanted: Vec<usize> = samples.filter(|(_, sample)| unknown(sample)).map(|(i, _)| i).collect();
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
                let function = self.functions.number(function_of(frame, module, location.offset));
                let line = line_of(&part, frame).map(|at| self.lines.number(Line { at, function }));
                named.push((function, line));
            }
            if named.is_empty() {
                named.push((self.functions.number(unnamed(module, location.offset)), None));
            }
            self.known.insert(*location, named);
        }
    }

    /// The name of a function.
    pub(crate) fn name(&self, function: Id) -> &str {
        self.functions.all.get(function as usize).map_or("", String::as_str)
    }

    /// A line.
    pub(crate) fn line(&self, line: Id) -> Option<&Line> {
        self.lines.all.get(line as usize)
    }

    /// Nothing has been taken up yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.slices.is_empty()
    }

    /// Time that the window covers, ns.
    pub(crate) fn wall(&self) -> u64 {
        self.slices.iter().map(|slice| slice.wall).sum::<u64>().max(1)
    }

    fn stacks(&self, of: Option<ThreadNumber>) -> impl Iterator<Item = (&Stack, u64)> {
        let stacks = self.slices.iter().flat_map(|slice| slice.stacks.iter().map(|(key, time)| (key, *time)));
        stacks.filter(move |((thread, ..), _)| of.is_none_or(|of| of == *thread))
    }

    /// Time that all threads ran, ns.
    pub(crate) fn awake(&self) -> u64 {
        self.stacks(None).map(|(_, time)| time).sum()
    }

    /// Functions (of one thread, or all), those with most own time first.
    pub(crate) fn functions(&self, of: Option<ThreadNumber>) -> Vec<Row> {
        self.rows(of, |(_, stack, _), time, rows| {
            let mut seen = HashSet::default();
            for id in stack.iter().filter(|id| seen.insert(**id)) {
                rows.entry(*id).or_default().1 += time;
            }
            if let Some(leaf) = stack.last() {
                rows.entry(*leaf).or_default().0 += time;
            }
        })
    }

    /// Lines, by the time that was spent on them.
    pub(crate) fn lines(&self, of: Option<ThreadNumber>) -> Vec<Row> {
        self.rows(of, |(_, _, line), time, rows| {
            if let Some(line) = line {
                rows.entry(*line).or_default().0 += time;
                rows.entry(*line).or_default().1 += time;
            }
        })
    }

    /// Who called a function directly, by the time the function was on the stack then.
    pub(crate) fn callers(&self, of: Option<ThreadNumber>, function: Id) -> Vec<Row> {
        self.neighbours(of, function, |stack, at| at.checked_sub(1).and_then(|at| stack.get(at).copied()))
    }

    /// What a function called directly; itself for its own time.
    pub(crate) fn callees(&self, of: Option<ThreadNumber>, function: Id) -> Vec<Row> {
        self.neighbours(of, function, |stack, at| stack.get(at + 1).or(stack.get(at)).copied())
    }

    fn neighbours(
        &self,
        of: Option<ThreadNumber>,
        function: Id,
        next: impl Fn(&[Id], usize) -> Option<Id>,
    ) -> Vec<Row> {
        self.rows(of, |(_, stack, _), time, rows| {
            let mut seen = HashSet::default();
            for (at, _) in stack.iter().enumerate().filter(|(_, id)| **id == function) {
                if let Some(other) = next(stack, at).filter(|other| seen.insert(*other)) {
                    rows.entry(other).or_default().1 += time;
                }
            }
        })
    }

    fn rows(
        &self,
        of: Option<ThreadNumber>,
        mut add: impl FnMut(&Stack, u64, &mut HashMap<Id, (u64, u64)>),
    ) -> Vec<Row> {
        let mut rows = HashMap::default();
        for (key, time) in self.stacks(of) {
            add(key, time, &mut rows);
        }
        let mut rows: Vec<Row> = rows.into_iter().map(|(id, (own, total))| Row { id, own, total }).collect();
        rows.sort_by(|a, b| (b.own, b.total).cmp(&(a.own, a.total)).then(a.id.cmp(&b.id)));
        rows
    }

    /// Threads that live, those that ran most first.
    pub(crate) fn threads(&self) -> Vec<ThreadRow> {
        let mut in_functions: HashMap<ThreadNumber, HashMap<Id, u64>> = HashMap::default();
        for ((thread, stack, _), time) in self.stacks(None) {
            let leaf = stack.last().copied().unwrap_or(Id::MAX);
            *in_functions.entry(*thread).or_default().entry(leaf).or_default() += time;
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
                    waiting: self.slices.iter().filter_map(|slice| slice.waiting.get(number)).sum(),
                    hottest: hottest.map(|(id, _)| *id).filter(|id| *id != Id::MAX),
                }
            })
            .collect();
        rows.sort_by_key(|row| (std::cmp::Reverse(row.awake), row.number));
        rows
    }
}

fn function_of(frame: &Frame, module: &str, offset: u64) -> String {
    if frame.func.is_empty() { unnamed(module, offset) } else { harmless(&frame.func).into_owned() }
}

fn unnamed(module: &str, offset: u64) -> String {
    if module.is_empty() { format!("0x{offset:x}") } else { format!("[{}]", harmless(module)) }
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
    Some(format!("{}:{}", harmless(&file), frame.line))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use stackglass_profile::{Nanos, ProcessIndex, Sample, Thread};

    /// Two threads, `slower` (77) and `other` (78), and stacks of functions without names in them.
    pub(crate) fn recording(stacks: &[(u32, &[u64], u64)]) -> Recording {
        let mut recording = Recording::default();
        for (tid, name) in [(77, "slower"), (78, "other")] {
            recording.threads.push(Thread {
                process: ProcessIndex(0),
                tid,
                name: name.into(),
                start: Nanos(0),
                end: None,
                cpu: Nanos(0),
                blocked_signal: false,
            });
        }
        for (thread, leaf_first, time) in stacks {
            let ids: Vec<_> = leaf_first
                .iter()
                .map(|offset| recording.stacks.intern_location(Location { module: None, offset: *offset }))
                .collect();
            let stack = recording.stacks.intern(&ids);
            recording.samples.push(Sample {
                stack,
                thread: ThreadNumber(*thread),
                task: 0,
                clock: Nanos(0),
                state: State::Awake,
                cut: None,
                hits: 1,
                time: Nanos(*time),
            });
        }
        recording
    }

    /// A model that knows these places of code by function and line, and has seen each run for this long.
    pub(crate) fn with_lines(places: &[(&str, &str, u64)]) -> Model {
        let mut model = Model::default();
        for ((function, at, time), offset) in places.iter().zip(0..) {
            let function = model.functions.number((*function).to_owned());
            let line = model.lines.number(Line { at: (*at).to_owned(), function });
            model.known.insert(Location { module: None, offset }, vec![(function, Some(line))]);
            model.take(&recording(&[(1, &[offset], *time)]), 0, 100);
        }
        model
    }

    fn named(model: &Model, rows: &[Row]) -> Vec<(String, u64, u64)> {
        rows.iter().map(|row| (model.name(row.id).to_owned(), row.own, row.total)).collect()
    }

    #[test]
    fn times_of_functions_callers_and_callees() {
        let mut model = Model::default();
        // 1 calls 2 and 3; 3 calls itself once.
        model.take(&recording(&[(1, &[2, 1], 50), (1, &[3, 3, 1], 30), (1, &[1], 5)]), 0, 100);
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
    fn what_is_long_ago_is_forgotten() {
        let mut model = Model::default();
        model.take(&recording(&[(1, &[2, 1], 50)]), 0, 100);
        for _ in 0..WINDOW {
            model.take(&recording(&[(1, &[9, 1], 10)]), 0, 100);
        }
        let functions = named(&model, &model.functions(None));
        assert_eq!(functions, [("0x9".into(), 100, 100), ("0x1".into(), 0, 100)]);
        assert_eq!(model.wall(), 1000);
    }
}
