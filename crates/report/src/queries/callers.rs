//! Who called a function, and how often that was seen.

use crate::Source;
use crate::queries::function_pattern::FunctionPattern;
use crate::trees::traces::{Place, Traces};
use foldhash::HashMap;
use stackglass_profile::{Frame, State};
use std::collections::BTreeSet;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// A question for the callers of a function.
///
/// ```
/// use stackglass_profile::{Data, Dictionary, Frame};
/// use stackglass_report::Callers;
///
/// let mut dictionary = Dictionary::new();
/// for (address, name) in [(1, "leaf"), (2, "main")] {
///     let mut frame = Frame::unknown(address);
///     frame.func = name.into();
///     dictionary.set(address, [frame]);
/// }
/// let data = Data::new(vec![1, 2, 0, 1, 2, 0]);
/// let callers = Callers::of("leaf").count((&data, &dictionary)).unwrap();
/// assert_eq!((callers[0].count, &*callers[0].frame.func), (2, "main"));
///
/// // Where several functions have one name, a file and lines tell them apart.
/// let elsewhere = Callers::of("leaf").file("other.rs").lines(10..=20);
/// assert!(elsewhere.count((&data, &dictionary)).unwrap().is_empty());
/// ```
pub struct Callers {
    func: Box<dyn Fn(&Frame) -> bool>,
    file: Option<Test>,
    lines: Option<RangeInclusive<i64>>,
}

/// What the name of a file must be like.
type Test = Box<dyn Fn(&str) -> bool>;

/// A caller.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Snapshots in which it called the function; recursion counts each call.
    pub count: u64,
    /// Those of them in which the thread was asleep.
    pub asleep: u64,
    /// The caller, at the line of the call. Inlined functions are callers too.
    pub frame: Frame,
}

/// What was found of each function that was meant.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// All snapshots.
    pub all: u64,
    /// The functions, those seen most often first, equal ones by path.
    pub functions: Vec<Called>,
    /// Where no function was found because only some lines were asked for: the lines at which
    /// functions of this name in this file were seen, ascending.
    pub other_lines: Vec<i64>,
}

/// A function, how often it was seen, and its callers.
#[derive(Clone, Debug)]
pub struct Called {
    /// Its path, empty when unknown.
    pub func: Arc<str>,
    /// Module of functions without a path, where it is known; else empty.
    pub module: Arc<str>,
    /// Snapshots with it on the stack, counted once each.
    pub snapshots: u64,
    /// Those of them in which the thread was asleep.
    pub asleep: u64,
    /// Snapshots in which it was the outermost frame, so that nothing called it.
    pub uncalled: u64,
    /// The callers, most frequent first, equal ones by file, function and line.
    pub callers: Vec<Caller>,
}

/// Why there is no answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CallersError {
    /// Line numbers say nothing without a file.
    #[error("a range of lines needs the file it is of")]
    LinesWithoutFile,
}

impl Callers {
    /// Callers of functions with exactly this path.
    pub fn of(func: &str) -> Callers {
        let func = func.to_owned();
        Callers::matching(move |name| name == func)
    }

    /// Callers of functions whose path ends with these whole parts: `from_str` and `de::from_str`
    /// find `serde_json::de::from_str`, `str` does not. Names may be given as reports show them:
    /// `lang_start::{{closure}}`, `catch_unwind::<isize>` (of these arguments only),
    /// `catch_unwind::<…>`, `[xz]` for code of a module without names. Functions of the C library
    /// have the names that programs know: `malloc` finds `__GI___libc_malloc`.
    pub fn of_suffix(func: &str) -> Callers {
        let pattern = FunctionPattern::new(func);
        Callers { func: Box::new(move |frame| pattern.matches(frame)), file: None, lines: None }
    }

    /// Callers of functions whose path the test accepts, a regular expression for example.
    ///
    /// ```
    /// use stackglass_profile::Recording;
    /// use stackglass_report::Callers;
    ///
    /// let parsers = regex::Regex::new(r"^serde_json::.*parse_\w+$")?;
    /// let callers = Callers::matching(move |func| parsers.is_match(func)).count(&Recording::default());
    /// assert!(callers.is_ok_and(|callers| callers.is_empty()));
    /// # Ok::<(), regex::Error>(())
    /// ```
    pub fn matching(test: impl Fn(&str) -> bool + 'static) -> Callers {
        Callers { func: Box::new(move |frame| test(&frame.func)), file: None, lines: None }
    }

    /// Only functions in this file, as the debug information names it.
    pub fn file(self, file: &str) -> Callers {
        let file = file.to_owned();
        self.file_matching(move |name| name == file)
    }

    /// Only functions in files whose recorded path the test accepts.
    pub fn file_matching(mut self, test: impl Fn(&str) -> bool + 'static) -> Callers {
        self.file = Some(Box::new(test));
        self
    }

    /// Only calls made from these lines of the function; needs the file.
    pub fn lines(mut self, lines: RangeInclusive<i64>) -> Callers {
        self.lines = Some(lines);
        self
    }

    fn is_of_function(&self, frame: &Frame) -> bool {
        (self.func)(frame) && self.file.as_ref().is_none_or(|file| file(&frame.file))
    }

    fn accepts(&self, frame: &Frame) -> bool {
        self.is_of_function(frame) && self.lines.as_ref().is_none_or(|lines| lines.contains(&frame.line))
    }

    /// The callers, most frequent first, equal ones by file, function and line. Data may or may
    /// not have metadata.
    ///
    /// # Errors
    /// [`CallersError::LinesWithoutFile`].
    pub fn count<'a>(&self, source: impl Into<Source<'a>>) -> Result<Vec<Caller>, CallersError> {
        let mut counts: HashMap<Frame, (u64, u64)> = HashMap::default();
        for caller in self.answer(source)?.functions.into_iter().flat_map(|called| called.callers) {
            add(counts.entry(caller.frame).or_default(), (caller.count, caller.asleep));
        }
        Ok(callers(counts.into_iter()))
    }

    /// The callers of each function that is meant by itself, and how often the function was seen.
    ///
    /// # Errors
    /// [`CallersError::LinesWithoutFile`].
    pub fn answer<'a>(&self, source: impl Into<Source<'a>>) -> Result<Answer, CallersError> {
        if self.lines.is_some() && self.file.is_none() {
            return Err(CallersError::LinesWithoutFile);
        }
        match source.into() {
            Source::Data(data, dictionary) if !data.is_empty() && !data.has_meta() => {
                // Samples only need to be told apart.
                let with_meta = data.add_fake_meta(1, 1).unwrap_or_default();
                Ok(self.answer_in(&Traces::new(Source::Data(&with_meta, dictionary))))
            }
            source => Ok(self.answer_in(&Traces::new(source))),
        }
    }

    fn answer_in(&self, traces: &Traces<'_>) -> Answer {
        // Of each node: snapshots that ended in it or below it, and those of them asleep.
        let mut below = vec![(0_u64, 0_u64); traces.nodes.len()];
        for run in &traces.runs {
            let asleep = if run.state == State::Asleep.word() { run.count } else { 0 };
            add(&mut below[run.stack as usize], (run.count, asleep));
        }
        for node in (1..below.len()).rev() {
            let counts = below[node];
            add(&mut below[traces.nodes[node].0 as usize], counts);
        }
        let accepted: Vec<Vec<bool>> = traces.places.iter().map(|place| self.accepted(place)).collect();
        let mut found: Vec<Found<'_>> = Vec::new();
        let mut numbers: HashMap<(&str, &str), usize> = HashMap::default();
        // Functions on a stack, each with the entry of the next one further out; 0 is the end.
        let mut on_stack: Vec<(usize, usize)> = vec![(usize::MAX, 0)];
        // Innermost frame of each node, or of its nearest caller that has one; the functions on the stack there.
        let mut reached: Vec<(Option<&Frame>, usize)> = vec![(None, 0); traces.nodes.len()];
        for node in 1..traces.nodes.len() {
            let (caller, place) = traces.nodes[node];
            let frames = &traces.places[place as usize].frames;
            let (mut outer, mut top) = reached[caller as usize];
            for index in (0..frames.len()).rev() {
                let frame = frames.get(index);
                if below[node].0 > 0 && accepted[place as usize][index] {
                    let module = frame.nameless_module();
                    let number = *numbers.entry((&frame.func, module)).or_insert_with(|| {
                        found.push(Found { func: &frame.func, module, ..Found::default() });
                        found.len() - 1
                    });
                    match outer {
                        Some(outer) => {
                            let caller = (outer, outer.nameless_module());
                            add(found[number].callers.entry(caller).or_default(), below[node]);
                        }
                        None => found[number].uncalled += below[node].0,
                    }
                    let mut entry = top;
                    while entry != 0 && on_stack[entry].0 != number {
                        entry = on_stack[entry].1;
                    }
                    if entry == 0 {
                        add(&mut found[number].seen, below[node]);
                        on_stack.push((number, top));
                        top = on_stack.len() - 1;
                    }
                }
                outer = Some(frame);
            }
            reached[node] = (outer, top);
        }
        let mut functions: Vec<Called> = found.into_iter().map(Found::called).collect();
        functions.sort_by(|a, b| {
            b.snapshots.cmp(&a.snapshots).then_with(|| (&a.func, &a.module).cmp(&(&b.func, &b.module)))
        });
        let other_lines = if functions.is_empty() { self.other_lines(traces) } else { Vec::new() };
        Answer { all: below[0].0, functions, other_lines }
    }

    /// Lines of the function that were seen, though not asked for.
    fn other_lines(&self, traces: &Traces<'_>) -> Vec<i64> {
        let mut lines = BTreeSet::new();
        if self.lines.is_some() {
            for frames in traces.places.iter().map(|place| &place.frames) {
                let of_function = (0..frames.len()).map(|index| frames.get(index));
                lines.extend(of_function.filter(|frame| self.is_of_function(frame)).map(|frame| frame.line));
            }
        }
        lines.into_iter().filter(|line| *line > 0).collect()
    }

    /// For each frame of a place whether it is one of the function's.
    fn accepted(&self, place: &Place<'_>) -> Vec<bool> {
        (0..place.frames.len()).map(|index| self.accepts(place.frames.get(index))).collect()
    }
}

fn add(to: &mut (u64, u64), counts: (u64, u64)) {
    to.0 = to.0.saturating_add(counts.0);
    to.1 = to.1.saturating_add(counts.1);
}

/// A function while it is counted.
#[derive(Default)]
struct Found<'a> {
    func: &'a str,
    module: &'a str,
    /// Snapshots, and those of them asleep.
    seen: (u64, u64),
    uncalled: u64,
    /// By frame, and module of those without names.
    callers: HashMap<(&'a Frame, &'a str), (u64, u64)>,
}

impl Found<'_> {
    fn called(self) -> Called {
        let callers = callers(self.callers.into_iter().map(|((frame, _), counts)| (frame.clone(), counts)));
        let (snapshots, asleep) = self.seen;
        let (func, module) = (self.func.into(), self.module.into());
        Called { func, module, snapshots, asleep, uncalled: self.uncalled, callers }
    }
}

/// Callers in their order.
fn callers(counts: impl Iterator<Item = (Frame, (u64, u64))>) -> Vec<Caller> {
    let mut callers: Vec<Caller> =
        counts.map(|(frame, (count, asleep))| Caller { count, asleep, frame }).collect();
    callers.sort_by(|a, b| {
        let by_place = |frame: &Frame| {
            let (file, func, module) = (frame.file.clone(), frame.func.clone(), frame.module.clone());
            (file, func, frame.line, frame.foreign, frame.inlined, module)
        };
        b.count.cmp(&a.count).then_with(|| by_place(&a.frame).cmp(&by_place(&b.frame)))
    });
    callers
}

impl fmt::Debug for Callers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Callers").field("lines", &self.lines).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackglass_profile::{Data, Dictionary};

    /// Samples of these stacks, leaf first, in one dictionary of functions.
    fn answer_of(stacks: &[&[&str]], callers: &Callers) -> Answer {
        let (mut dictionary, mut words, mut names) = (Dictionary::new(), Vec::new(), Vec::new());
        for (clock, stack) in stacks.iter().enumerate() {
            for name in *stack {
                let known = names.iter().position(|known| known == name);
                let address = known.unwrap_or_else(|| {
                    names.push(*name);
                    names.len() - 1
                }) as u64
                    + 1;
                dictionary.set(address, [Frame { func: (*name).into(), ..Frame::unknown(address) }]);
                words.push(address);
            }
            words.extend([1, 7, clock as u64 + 1, 1 + clock as u64 % 2, 0, 0]);
        }
        callers.answer((&Data::new(words), &dictionary)).unwrap()
    }

    #[test]
    fn functions_are_counted_once_a_snapshot_and_apart() {
        let stacks: [&[&str]; 3] = [&["a::f", "a::f", "b::f", "main"], &["b::f", "main"], &["a::f"]];
        let answer = answer_of(&stacks, &Callers::of_suffix("f"));
        let seen =
            |called: &Called| (called.func.to_string(), called.snapshots, called.asleep, called.uncalled);
        let seen: Vec<_> = answer.functions.iter().map(seen).collect();
        assert_eq!(seen, [("a::f".into(), 2, 0, 1), ("b::f".into(), 2, 1, 0)]);
        let callers: Vec<(u64, &str)> =
            answer.functions[0].callers.iter().map(|caller| (caller.count, &*caller.frame.func)).collect();
        assert_eq!((answer.all, callers), (3, vec![(1, "a::f"), (1, "b::f")]), "recursion calls itself");
        assert!(answer_of(&stacks, &Callers::of_suffix("g")).functions.is_empty());
    }

    #[test]
    fn nameless_code_is_told_apart_by_module() {
        let in_module = |address, module: &str| Frame { module: module.into(), ..Frame::unknown(address) };
        let mut dictionary = Dictionary::new();
        for (address, module) in [(1, "xz"), (2, "liblzma.so.5"), (3, "xz")] {
            dictionary.set(address, [in_module(address, module)]);
        }
        dictionary.set(4, [Frame { func: "compress".into(), ..in_module(4, "xz") }]);
        let data = Data::new(vec![2, 1, 0, 4, 3, 0, 4, 2, 0]);
        let answer = |name: &str| Callers::of_suffix(name).answer((&data, &dictionary)).unwrap().functions;
        let modules =
            |found: Vec<Called>| found.into_iter().map(|one| one.module.to_string()).collect::<Vec<_>>();
        assert_eq!(modules(answer("[xz]")), ["xz"]);
        assert_eq!(modules(answer("[unknown functions]")), ["liblzma.so.5", "xz"]);
        let callers = answer("compress").remove(0).callers;
        let callers: Vec<&str> = callers.iter().map(|caller| &*caller.frame.module).collect();
        assert_eq!(callers, ["liblzma.so.5", "xz"]);
    }

    #[test]
    fn other_lines_are_told_where_none_was_asked_for() {
        let mut dictionary = Dictionary::new();
        for (address, line) in [(1, 40), (2, 12), (3, -1)] {
            let frame = Frame { func: "f".into(), file: "a.rs".into(), line, ..Frame::unknown(address) };
            dictionary.set(address, [frame]);
        }
        let data = Data::new(vec![1, 0, 2, 0, 3, 0]);
        let asked = |lines| Callers::of("f").file("a.rs").lines(lines).answer((&data, &dictionary)).unwrap();
        assert_eq!(asked(20..=30).other_lines, [12, 40]);
        assert!(asked(12..=30).other_lines.is_empty(), "there is an answer");
        assert!(
            Callers::of("g")
                .file("a.rs")
                .lines(1..=2)
                .answer((&data, &dictionary))
                .unwrap()
                .other_lines
                .is_empty()
        );
    }

    #[test]
    fn lines_need_a_file() {
        let answer = Callers::of("f").lines(1..=2).count((&Data::default(), &Dictionary::new()));
        assert_eq!(answer.unwrap_err(), CallersError::LinesWithoutFile);
    }
}
