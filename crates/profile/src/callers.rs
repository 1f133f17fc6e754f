//! Who called a function, and how often that was seen.

use crate::first_screen::names::public_name;
use crate::traces::{Place, Traces};
use crate::{Data, Dictionary, Frame, Source, State};
use std::collections::HashMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// A question for the callers of a function.
///
/// ```
/// use stackglass_profile::{Callers, Data, Dictionary, Frame};
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
    func: Test,
    file: Option<Test>,
    lines: Option<RangeInclusive<i64>>,
}

/// What a name must be like.
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
}

/// A function, how often it was seen, and its callers.
#[derive(Clone, Debug)]
pub struct Called {
    /// Its path.
    pub func: Arc<str>,
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
    /// find `serde_json::de::from_str`, `str` does not. Functions of the C library have the names
    /// that programs know: `malloc` finds `__GI___libc_malloc`.
    pub fn of_suffix(func: &str) -> Callers {
        let func = func.trim_start_matches("::").to_owned();
        Callers::matching(move |name| {
            let whole = name.strip_suffix(&*func).is_some_and(|rest| rest.is_empty() || rest.ends_with("::"));
            whole || public_name(name) == func
        })
    }

    /// Callers of functions whose path the test accepts, a regular expression for example.
    ///
    /// ```
    /// use stackglass_profile::{Callers, Recording};
    ///
    /// let parsers = regex::Regex::new(r"^serde_json::.*parse_\w+$")?;
    /// let callers = Callers::matching(move |func| parsers.is_match(func)).count(&Recording::default());
    /// assert!(callers.is_ok_and(|callers| callers.is_empty()));
    /// # Ok::<(), regex::Error>(())
    /// ```
    pub fn matching(test: impl Fn(&str) -> bool + 'static) -> Callers {
        Callers { func: Box::new(test), file: None, lines: None }
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

    fn accepts(&self, frame: &Frame) -> bool {
        (self.func)(&frame.func)
            && self.file.as_ref().is_none_or(|file| file(&frame.file))
            && self.lines.as_ref().is_none_or(|lines| lines.contains(&frame.line))
    }

    /// The callers, most frequent first, equal ones by file, function and line. Data may or may
    /// not have metadata.
    ///
    /// # Errors
    /// [`CallersError::LinesWithoutFile`].
    pub fn count<'a>(&self, source: impl Into<Source<'a>>) -> Result<Vec<Caller>, CallersError> {
        let mut counts: HashMap<Frame, (u64, u64)> = HashMap::new();
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
        let mut numbers: HashMap<&str, usize> = HashMap::new();
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
                    let number = *numbers.entry(&frame.func).or_insert_with(|| {
                        found.push(Found { func: &frame.func, ..Found::default() });
                        found.len() - 1
                    });
                    match outer {
                        Some(outer) => add(found[number].callers.entry(outer).or_default(), below[node]),
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
        functions.sort_by(|a, b| b.snapshots.cmp(&a.snapshots).then_with(|| a.func.cmp(&b.func)));
        Answer { all: below[0].0, functions }
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
    /// Snapshots, and those of them asleep.
    seen: (u64, u64),
    uncalled: u64,
    callers: HashMap<&'a Frame, (u64, u64)>,
}

impl Found<'_> {
    fn called(self) -> Called {
        let callers = callers(self.callers.into_iter().map(|(frame, counts)| (frame.clone(), counts)));
        let (snapshots, asleep) = self.seen;
        Called { func: self.func.into(), snapshots, asleep, uncalled: self.uncalled, callers }
    }
}

/// Callers in their order.
fn callers(counts: impl Iterator<Item = (Frame, (u64, u64))>) -> Vec<Caller> {
    let mut callers: Vec<Caller> =
        counts.map(|(frame, (count, asleep))| Caller { count, asleep, frame }).collect();
    callers.sort_by(|a, b| {
        let by_place = |frame: &Frame| {
            (frame.file.clone(), frame.func.clone(), frame.line, frame.foreign, frame.inlined)
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

/// All possible addresses are in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("no address is left to invent for an inlined frame")]
pub struct NoAddressLeft;

/// Gives each inlined frame an address of its own.
///
/// Addresses with exactly one frame stay. Every other one is replaced by one invented address for
/// each frame, innermost first, counting down from 2^64 - 2 past those in use; one without frames
/// vanishes. Metadata stays as it is.
///
/// ```
/// use stackglass_profile::{Data, Dictionary, Frame, flatten};
///
/// let frame = |name: &str| Frame { func: name.into(), ..Frame::unknown(0) };
/// let mut dictionary = Dictionary::new();
/// dictionary.set(16, [Frame { inlined: true, ..frame("inlined") }, frame("main")]);
///
/// let (data, flat) = flatten(&Data::new(vec![16, 0]), &dictionary)?;
/// assert_eq!(data.words(), [u64::MAX - 1, u64::MAX - 2, 0]);
/// assert_eq!(&*flat.get(u64::MAX - 2).unwrap()[0].func, "main");
/// # Ok::<(), stackglass_profile::callers::NoAddressLeft>(())
/// ```
///
/// # Errors
/// When there are no addresses left.
pub fn flatten(data: &Data, dictionary: &Dictionary) -> Result<(Data, Dictionary), NoAddressLeft> {
    let mut flat = dictionary.without_frames();
    let mut replaced: HashMap<u64, Vec<u64>> = HashMap::new();
    let mut next = u64::MAX - 1;
    for address in dictionary.addresses() {
        let frames = dictionary.get(address).unwrap_or(&[]);
        if let [one] = frames {
            flat.set(address, [one.clone()]);
            continue;
        }
        let mut invented = Vec::with_capacity(frames.len());
        for frame in frames {
            while next > 0 && dictionary.get(next).is_some() {
                next -= 1;
            }
            if next == 0 {
                return Err(NoAddressLeft);
            }
            flat.set(next, [frame.clone()]);
            invented.push(next);
            next -= 1;
        }
        replaced.insert(address, invented);
    }
    let words = data.words();
    let mut flat_words = Vec::with_capacity(words.len());
    let metadata = data.metadata_mask();
    for (word, is_metadata) in words.iter().zip(metadata) {
        match replaced.get(word).filter(|_| !is_metadata) {
            Some(invented) => flat_words.extend(invented),
            None => flat_words.push(*word),
        }
    }
    Ok((Data::new(flat_words), flat))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_are_whole_parts() {
        let callers = Callers::of_suffix("de::from_str");
        let accepts = |func: &str| {
            let mut frame = Frame::unknown(0);
            frame.func = func.into();
            callers.accepts(&frame)
        };
        assert!(accepts("serde_json::de::from_str") && accepts("de::from_str"));
        assert!(!accepts("code::from_str") && !accepts("from_str") && !accepts(""));
    }

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
    fn the_c_library_has_the_names_that_programs_know() {
        let answer = answer_of(&[&["__GI___libc_malloc", "main"]], &Callers::of_suffix("malloc"));
        assert_eq!(&*answer.functions[0].func, "__GI___libc_malloc");
        assert_eq!(answer_of(&[&["my_malloc", "main"]], &Callers::of_suffix("malloc")).functions.len(), 0);
    }

    #[test]
    fn lines_need_a_file() {
        let answer = Callers::of("f").lines(1..=2).count((&Data::default(), &Dictionary::new()));
        assert_eq!(answer.unwrap_err(), CallersError::LinesWithoutFile);
    }
}
