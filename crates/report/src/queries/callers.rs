//! The callers of a function, and how often each call was seen.

use crate::Source;
use crate::order;
use crate::queries::function_pattern::FunctionPattern;
use crate::trees::aggregated_samples::{AggregatedSamples, ResolvedAddress, TrieNode};
use foldhash::HashMap;
use stackglass_profile::{Frame, State};
use std::collections::BTreeSet;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// A query for the callers of functions.
///
/// ```
/// use stackglass_profile::{Data, Dictionary, Frame};
/// use stackglass_report::{Callers, CallersError};
///
/// let mut dictionary = Dictionary::new();
/// for (address, name) in [(1, "leaf"), (2, "main")] {
///     let mut frame = Frame::unknown(address);
///     frame.func = name.into();
///     dictionary.set(address, [frame]);
/// }
/// let data = Data::new(vec![1, 2, 0, 1, 2, 0]);
/// let callers = Callers::new("leaf").count((&data, &dictionary)).unwrap();
/// assert_eq!((callers[0].count, &*callers[0].frame.func), (2, "main"));
///
/// // A file and lines distinguish functions of the same name.
/// let elsewhere = Callers::new("leaf").file("other.rs").lines(10..=20);
/// assert_eq!(elsewhere.count((&data, &dictionary)).unwrap_err(), CallersError::NoFunction);
/// ```
pub struct Callers {
    func: Box<dyn Fn(&Frame) -> bool>,
    file: Option<Test>,
    lines: Option<RangeInclusive<i64>>,
}

/// A predicate on file names.
type Test = Box<dyn Fn(&str) -> bool>;

/// A caller.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Snapshots in which it called the function; recursion counts each call.
    pub count: u64,
    /// How many of them were asleep.
    pub asleep: u64,
    /// The caller, at the line of the call. Inlined functions are callers as well.
    pub frame: Frame,
}

/// The answer to [`Callers`]: all matching functions.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// All snapshots.
    pub all: u64,
    /// The matching functions, the most frequent first, then by path.
    pub functions: Vec<Called>,
    /// If no function matched because of [`Callers::lines`]: the lines at which functions of this name in this file were
    /// seen, ascending.
    pub other_lines: Vec<i64>,
}

/// A function, how often it was seen, and its callers.
#[derive(Clone, Debug)]
pub struct Called {
    /// It is an allocated type, and its callers are the sites that allocate it.
    pub is_type: bool,
    /// Its path; empty if unknown.
    pub func: Arc<str>,
    /// For functions without a path: the module, if known. Otherwise empty.
    pub module: Arc<str>,
    /// Snapshots with it on the stack. Recursion counts once.
    pub snapshots: u64,
    /// How many of them were asleep.
    pub asleep: u64,
    /// Snapshots in which it was the outermost frame, without a caller.
    pub uncalled: u64,
    /// The callers, the most frequent first, then by file, function and line.
    pub callers: Vec<Caller>,
}

/// Why there is no answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CallersError {
    /// [`Callers::lines`] without [`Callers::file`].
    #[error("a range of lines needs a file")]
    LinesWithoutFile,
    /// There are samples, but none of them has such a function, or not in this file and at these lines.
    #[error("no function that was sampled matches: neither its name, nor the last parts of its path")]
    NoFunction,
}

impl Callers {
    /// Callers of functions whose path ends with these whole parts: `from_str` and `de::from_str` match
    /// `serde_json::de::from_str`, `str` does not.
    ///
    /// Names can be given as reports show them: `lang_start::{{closure}}`, `catch_unwind::<isize>` (with these arguments
    /// only), `catch_unwind::<…>`, `[xz]` for code without names in a module. Functions of the C library match the names
    /// that programs use: `malloc` matches `__GI___libc_malloc`.
    pub fn new(func: &str) -> Callers {
        let pattern = FunctionPattern::new(func);
        Callers { func: Box::new(move |frame| pattern.matches(frame)), file: None, lines: None }
    }

    /// Callers of functions with exactly this path.
    pub fn exactly(func: &str) -> Callers {
        let func = func.to_owned();
        Callers::matching(move |name| name == func)
    }

    /// Callers of functions whose path a predicate accepts, for example a regular expression.
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

    /// Only functions in this file, as named in the debug information.
    pub fn file(self, file: &str) -> Callers {
        let file = file.to_owned();
        self.file_matching(move |name| name == file)
    }

    /// Only functions in files whose recorded path a predicate accepts.
    pub fn file_matching(mut self, test: impl Fn(&str) -> bool + 'static) -> Callers {
        self.file = Some(Box::new(test));
        self
    }

    /// Only calls from these lines of the function. Requires a file.
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

    /// The callers of all matching functions, the most frequent first, then by file, function and line. Data needs no
    /// metadata. Empty for a function that nothing called, and if there are no samples.
    ///
    /// # Errors
    /// [`CallersError::LinesWithoutFile`], [`CallersError::NoFunction`].
    pub fn count<'a>(&self, source: impl Into<Source<'a>>) -> Result<Vec<Caller>, CallersError> {
        let answer = self.answer(source)?;
        if answer.functions.is_empty() && answer.all > 0 {
            return Err(CallersError::NoFunction);
        }
        let mut counts: HashMap<Frame, Seen> = HashMap::default();
        for caller in answer.functions.into_iter().flat_map(|called| called.callers) {
            *counts.entry(caller.frame).or_default() +=
                Seen { snapshots: caller.count, asleep: caller.asleep };
        }
        Ok(callers(counts.into_iter()))
    }

    /// The callers of each matching function, and how often the function was seen. If none matches, there are no functions.
    ///
    /// # Errors
    /// [`CallersError::LinesWithoutFile`].
    pub fn answer<'a>(&self, source: impl Into<Source<'a>>) -> Result<Answer, CallersError> {
        if self.lines.is_some() && self.file.is_none() {
            return Err(CallersError::LinesWithoutFile);
        }
        match source.into() {
            Source::Data(data, dictionary) if !data.is_empty() && !data.has_meta() => {
                // The values do not matter: they only separate the samples.
                let with_meta = data.add_fake_meta(1, 1).unwrap_or_default();
                Ok(self.answer_in(&AggregatedSamples::new(Source::Data(&with_meta, dictionary))))
            }
            source => Ok(self.answer_in(&AggregatedSamples::new(source))),
        }
    }

    fn answer_in(&self, samples: &AggregatedSamples<'_>) -> Answer {
        // By node: snapshots that ended in it or below it.
        let mut below = vec![Seen::default(); samples.nodes.len()];
        for group in &samples.groups {
            let asleep = if group.state == State::Asleep.word() { group.count } else { 0 };
            below[group.stack as usize] += Seen { snapshots: group.count, asleep };
        }
        for node in (1..below.len()).rev() {
            let seen = below[node];
            below[samples.nodes[node].caller as usize] += seen;
        }
        let accepted: Vec<Vec<bool>> =
            samples.addresses.iter().map(|address| self.accepted(address)).collect();
        let mut found: Vec<Found<'_>> = Vec::new();
        let mut numbers: HashMap<(&str, &str), usize> = HashMap::default();
        // Linked lists of the functions on a stack. Entry 0 is the end of all of them.
        let mut on_stack = vec![OnStack { function: usize::MAX, outer: 0 }];
        let mut reached = vec![Reached::default(); samples.nodes.len()];
        for node in 1..samples.nodes.len() {
            let TrieNode { caller, address } = samples.nodes[node];
            let frames = &samples.addresses[address as usize].frames;
            let Reached { mut outer, mut top } = reached[caller as usize];
            for index in (0..frames.len()).rev() {
                let frame = frames.get(index);
                if below[node].snapshots > 0 && accepted[address as usize][index] {
                    let module = frame.nameless_module();
                    let number = *numbers.entry((&frame.func, module)).or_insert_with(|| {
                        found.push(Found { func: &frame.func, module, ..Found::default() });
                        found.len() - 1
                    });
                    match outer {
                        Some(outer) => {
                            let caller = (outer, outer.nameless_module());
                            *found[number].callers.entry(caller).or_default() += below[node];
                        }
                        None => found[number].uncalled += below[node].snapshots,
                    }
                    let mut entry = top;
                    while entry != 0 && on_stack[entry].function != number {
                        entry = on_stack[entry].outer;
                    }
                    if entry == 0 {
                        found[number].seen += below[node];
                        on_stack.push(OnStack { function: number, outer: top });
                        top = on_stack.len() - 1;
                    }
                }
                outer = Some(frame);
            }
            reached[node] = Reached { outer, top };
        }
        let mut functions: Vec<Called> = found.into_iter().map(Found::called).collect();
        functions.sort_by(|a, b| {
            order::largest_first((a.snapshots, (&a.func, &a.module)), (b.snapshots, (&b.func, &b.module)))
        });
        let other_lines = if functions.is_empty() { self.other_lines(samples) } else { Vec::new() };
        Answer { all: below[0].snapshots, functions, other_lines }
    }

    /// The lines of the function that were seen but not asked for.
    fn other_lines(&self, samples: &AggregatedSamples<'_>) -> Vec<i64> {
        let mut lines = BTreeSet::new();
        if self.lines.is_some() {
            for frames in samples.addresses.iter().map(|address| &address.frames) {
                let of_function = (0..frames.len()).map(|index| frames.get(index));
                lines.extend(of_function.filter(|frame| self.is_of_function(frame)).map(|frame| frame.line));
            }
        }
        lines.into_iter().filter(|line| *line > 0).collect()
    }

    /// For each frame of an address: whether it matches.
    fn accepted(&self, address: &ResolvedAddress<'_>) -> Vec<bool> {
        (0..address.frames.len()).map(|index| self.accepts(address.frames.get(index))).collect()
    }
}

/// Snapshots, and how many of them were asleep.
#[derive(Clone, Copy, Default)]
struct Seen {
    snapshots: u64,
    asleep: u64,
}

impl std::ops::AddAssign for Seen {
    fn add_assign(&mut self, other: Seen) {
        self.snapshots = self.snapshots.saturating_add(other.snapshots);
        self.asleep = self.asleep.saturating_add(other.asleep);
    }
}

/// A matching function on a stack.
#[derive(Clone, Copy)]
struct OnStack {
    function: usize,
    /// Entry of the next one further out.
    outer: usize,
}

/// The state at a node of the trie.
#[derive(Clone, Copy, Default)]
struct Reached<'a> {
    /// Innermost frame of the node, or of its nearest caller that has one.
    outer: Option<&'a Frame>,
    /// Entry of the innermost matching function on the stack.
    top: usize,
}

/// A function while it is counted.
#[derive(Default)]
struct Found<'a> {
    func: &'a str,
    module: &'a str,
    seen: Seen,
    uncalled: u64,
    /// By frame and, for frames without names, module.
    callers: HashMap<(&'a Frame, &'a str), Seen>,
}

impl Found<'_> {
    fn called(self) -> Called {
        let callers = callers(self.callers.into_iter().map(|((frame, _), seen)| (frame.clone(), seen)));
        let Seen { snapshots, asleep } = self.seen;
        let (func, module) = (self.func.into(), self.module.into());
        let (is_type, uncalled) = (false, self.uncalled);
        Called { is_type, func, module, snapshots, asleep, uncalled, callers }
    }
}

/// Callers, sorted.
fn callers(seen: impl Iterator<Item = (Frame, Seen)>) -> Vec<Caller> {
    let caller = |(frame, seen): (Frame, Seen)| Caller { count: seen.snapshots, asleep: seen.asleep, frame };
    let mut callers: Vec<Caller> = seen.map(caller).collect();
    callers.sort_by(|a, b| order::callers((a.count, &a.frame), (b.count, &b.frame)));
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
        let answer = answer_of(&stacks, &Callers::new("f"));
        let seen =
            |called: &Called| (called.func.to_string(), called.snapshots, called.asleep, called.uncalled);
        let seen: Vec<_> = answer.functions.iter().map(seen).collect();
        assert_eq!(seen, [("a::f".into(), 2, 0, 1), ("b::f".into(), 2, 1, 0)]);
        let callers: Vec<(u64, &str)> =
            answer.functions[0].callers.iter().map(|caller| (caller.count, &*caller.frame.func)).collect();
        assert_eq!((answer.all, callers), (3, vec![(1, "a::f"), (1, "b::f")]), "recursion calls itself");
        assert!(answer_of(&stacks, &Callers::new("g")).functions.is_empty());
    }

    #[test]
    fn code_without_names_is_distinguished_by_module() {
        let in_module = |address, module: &str| Frame { module: module.into(), ..Frame::unknown(address) };
        let mut dictionary = Dictionary::new();
        for (address, module) in [(1, "xz"), (2, "liblzma.so.5"), (3, "xz")] {
            dictionary.set(address, [in_module(address, module)]);
        }
        dictionary.set(4, [Frame { func: "compress".into(), ..in_module(4, "xz") }]);
        let data = Data::new(vec![2, 1, 0, 4, 3, 0, 4, 2, 0]);
        let answer = |name: &str| Callers::new(name).answer((&data, &dictionary)).unwrap().functions;
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
        let asked = |lines| Callers::new("f").file("a.rs").lines(lines).answer((&data, &dictionary)).unwrap();
        assert_eq!(asked(20..=30).other_lines, [12, 40]);
        assert!(asked(12..=30).other_lines.is_empty(), "there is an answer");
        assert!(
            Callers::new("g")
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
        let answer = Callers::new("f").lines(1..=2).count((&Data::default(), &Dictionary::new()));
        assert_eq!(answer.unwrap_err(), CallersError::LinesWithoutFile);
    }
}
