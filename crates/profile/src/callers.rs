//! Who called a function, and how often that was seen.

use crate::traces::{Place, Traces};
use crate::{Data, Dictionary, Frame, Source, State};
use std::collections::{BTreeSet, HashMap};
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

/// The callers of a function, and how often it was seen at all.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// Paths of the functions that were meant, sorted.
    pub functions: Vec<Arc<str>>,
    /// Snapshots with such a function on the stack, counted once each.
    pub snapshots: u64,
    /// Those of them in which the thread was asleep.
    pub asleep: u64,
    /// All snapshots.
    pub all: u64,
    /// Snapshots in which such a function was the outermost frame, so that nothing called it.
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
    /// find `serde_json::de::from_str`, `str` does not.
    pub fn of_suffix(func: &str) -> Callers {
        let func = func.to_owned();
        Callers::matching(move |name| {
            name.strip_suffix(&*func).is_some_and(|rest| rest.is_empty() || rest.ends_with("::"))
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
    pub fn file(mut self, file: &str) -> Callers {
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
        Ok(self.answer(source)?.callers)
    }

    /// The callers as [`Callers::count`] gives them, and how often the function was seen.
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
        let mut answer = Answer { all: below[0].0, ..Answer::default() };
        let mut functions: BTreeSet<&Arc<str>> = BTreeSet::new();
        let mut counts: HashMap<&Frame, (u64, u64)> = HashMap::new();
        // Innermost frame of each node, or of its nearest caller that has one; whether the function is on the
        // stack there.
        let mut reached: Vec<(Option<&Frame>, bool)> = vec![(None, false); traces.nodes.len()];
        for node in 1..traces.nodes.len() {
            let (caller, place) = traces.nodes[node];
            let frames = &traces.places[place as usize].frames;
            let (mut outer, mut on_stack) = reached[caller as usize];
            for index in (0..frames.len()).rev() {
                let frame = frames.get(index);
                if below[node].0 > 0 && accepted[place as usize][index] {
                    functions.insert(&frame.func);
                    match outer {
                        Some(outer) => add(counts.entry(outer).or_default(), below[node]),
                        None => answer.uncalled += below[node].0,
                    }
                    if !std::mem::replace(&mut on_stack, true) {
                        answer.snapshots += below[node].0;
                        answer.asleep += below[node].1;
                    }
                }
                outer = Some(frame);
            }
            reached[node] = (outer, on_stack);
        }
        answer.functions = functions.into_iter().cloned().collect();
        let caller = |(frame, (count, asleep)): (&Frame, _)| Caller { count, asleep, frame: frame.clone() };
        let mut callers: Vec<Caller> = counts.into_iter().map(caller).collect();
        callers.sort_by(|a, b| {
            let by_place = |frame: &Frame| {
                (frame.file.clone(), frame.func.clone(), frame.line, frame.foreign, frame.inlined)
            };
            b.count.cmp(&a.count).then_with(|| by_place(&a.frame).cmp(&by_place(&b.frame)))
        });
        answer.callers = callers;
        answer
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

impl fmt::Debug for Callers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Callers")
            .field("lines", &self.lines)
            .finish_non_exhaustive()
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
        assert!(!accepts("code::from_str") && !accepts("from_str"));
    }

    #[test]
    fn lines_need_a_file() {
        let answer = Callers::of("f").lines(1..=2).count((&Data::default(), &Dictionary::new()));
        assert_eq!(answer.unwrap_err(), CallersError::LinesWithoutFile);
    }
}
