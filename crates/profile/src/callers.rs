//! Who called a function, and how often that was seen.

use crate::traces::Traces;
use crate::{Data, Dictionary, Frame, Source};
use std::collections::HashMap;
use std::fmt;
use std::ops::RangeInclusive;

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
/// ```
pub struct Callers {
    func: Box<dyn Fn(&str) -> bool>,
    file: Option<String>,
    lines: Option<RangeInclusive<i64>>,
}

/// A caller.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Snapshots in which it called the function; recursion counts each call.
    pub count: u64,
    /// The caller, at the line of the call. Inlined functions are callers too.
    pub frame: Frame,
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
    pub fn matching(test: impl Fn(&str) -> bool + 'static) -> Callers {
        Callers { func: Box::new(test), file: None, lines: None }
    }

    /// Only functions in this file, as the debug information names it.
    pub fn file(mut self, file: &str) -> Callers {
        self.file = Some(file.to_owned());
        self
    }

    /// Only calls made from these lines of the function; needs the file.
    pub fn lines(mut self, lines: RangeInclusive<i64>) -> Callers {
        self.lines = Some(lines);
        self
    }

    fn accepts(&self, frame: &Frame) -> bool {
        (self.func)(&frame.func)
            && self.file.as_ref().is_none_or(|file| **file == *frame.file)
            && self.lines.as_ref().is_none_or(|lines| lines.contains(&frame.line))
    }

    /// The callers, most frequent first, equal ones by file, function and line. Data may or may
    /// not have metadata.
    ///
    /// # Errors
    /// [`CallersError::LinesWithoutFile`].
    pub fn count<'a>(&self, source: impl Into<Source<'a>>) -> Result<Vec<Caller>, CallersError> {
        if self.lines.is_some() && self.file.is_none() {
            return Err(CallersError::LinesWithoutFile);
        }
        match source.into() {
            Source::Data(data, dictionary) if !data.is_empty() && !data.has_meta() => {
                // Samples only need to be told apart.
                let with_meta = data.add_fake_meta(1, 1).unwrap_or_default();
                Ok(self.count_in(&Traces::new(Source::Data(&with_meta, dictionary))))
            }
            source => Ok(self.count_in(&Traces::new(source))),
        }
    }

    fn count_in(&self, traces: &Traces<'_>) -> Vec<Caller> {
        let mut below = vec![0_u64; traces.nodes.len()];
        for run in &traces.runs {
            below[run.stack as usize] += run.count;
        }
        for node in (1..below.len()).rev() {
            below[traces.nodes[node].0 as usize] += below[node];
        }
        let mut counts: HashMap<&Frame, u64> = HashMap::new();
        // Innermost frame of each node, or of its nearest caller that has one.
        let mut innermost: Vec<Option<&Frame>> = vec![None; traces.nodes.len()];
        for node in 1..traces.nodes.len() {
            let (caller, place) = traces.nodes[node];
            let frames = &traces.places[place as usize].frames;
            let mut outer = innermost[caller as usize];
            for index in (0..frames.len()).rev() {
                let frame = frames.get(index);
                if let Some(outer) = outer
                    && below[node] > 0
                    && self.accepts(frame)
                {
                    *counts.entry(outer).or_default() += below[node];
                }
                outer = Some(frame);
            }
            innermost[node] = outer;
        }
        let mut callers: Vec<Caller> =
            counts.into_iter().map(|(frame, count)| Caller { count, frame: frame.clone() }).collect();
        callers.sort_by(|a, b| {
            let by_place = |frame: &Frame| {
                (frame.file.clone(), frame.func.clone(), frame.line, frame.foreign, frame.inlined)
            };
            b.count.cmp(&a.count).then_with(|| by_place(&a.frame).cmp(&by_place(&b.frame)))
        });
        callers
    }
}

impl fmt::Debug for Callers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Callers")
            .field("file", &self.file)
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
