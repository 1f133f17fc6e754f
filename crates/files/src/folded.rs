//! Folded stacks: one line for each stack, `root;caller;leaf 12`, as used by flame graph tools.
//!
//! They contain only names: files, lines, threads and times are lost. A count may mean samples, microseconds or bytes. It
//! is kept as hits.

use crate::atomic_write::write_atomically;
use foldhash::HashMap;
use stackglass_profile::{
    Frame, Location, LocationId, Nanos, Process, ProcessIndex, Recording, Sample, StackId, State, Thread,
    ThreadNumber, sanitize, snapshots,
};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

/// Why folded stacks are refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FoldedError {
    /// Reading failed.
    #[error("cannot read at byte {at}: {source}")]
    Read {
        /// Offset of the line.
        at: u64,
        /// The system's error.
        source: io::Error,
    },
    /// A line without a count at the end.
    #[error("line {line} (byte {at}) should be `frame;frame;… count`, but {what}")]
    Line {
        /// Line number, from 1.
        line: u64,
        /// Its offset.
        at: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// The counts need too many samples, which hold 2^32 - 1 hits each.
    #[error("line {line} (byte {at}): the counts so far are too large; use a larger unit")]
    TooLarge {
        /// Line number, from 1.
        line: u64,
        /// Its offset.
        at: u64,
    },
}

/// Maximum length of a line.
const MAX_LINE: u64 = 16 << 20;

/// Size of the read buffer.
const AT_ONCE: usize = 1 << 17;

/// A sample holds at most 2^32 - 1 hits. This many samples beyond one for each line are allowed.
const MAX_SURPLUS: u64 = 1 << 16;

/// Reads folded stacks from a file.
///
/// # Errors
/// See [`FoldedError`].
pub fn read(path: impl AsRef<Path>) -> Result<Recording, FoldedError> {
    read_from(File::open(path).map_err(|source| FoldedError::Read { at: 0, source })?)
}

/// Reads folded stacks: one process, one thread, a location for each name.
///
/// Empty lines are skipped. Bytes that are not UTF-8 become U+FFFD.
///
/// # Errors
/// See [`FoldedError`].
pub fn read_from(input: impl Read) -> Result<Recording, FoldedError> {
    let mut input = BufReader::with_capacity(AT_ONCE, input);
    let mut recording = Recording { processes: vec![Process::default()], ..Recording::default() };
    recording.threads.push(Thread {
        process: ProcessIndex(0),
        tid: 0,
        name: "".into(),
        start: Nanos(0),
        end: None,
        cpu: Nanos(0),
        blocked_signal: false,
    });
    let mut names = HashMap::default();
    let (mut at, mut number, mut surplus) = (0, 0, 0);
    let (mut bytes, mut before) = (Vec::new(), Before::default());
    loop {
        bytes.clear();
        let n = (&mut input).take(MAX_LINE).read_until(b'\n', &mut bytes);
        let n = n.map_err(|source| FoldedError::Read { at, source })? as u64;
        if n == 0 {
            return Ok(recording);
        }
        number += 1;
        let wrong = |what| FoldedError::Line { line: number, at, what };
        if n == MAX_LINE && !bytes.ends_with(b"\n") {
            return Err(wrong("it is longer than 16 MiB"));
        }
        let (known, callers) = before.shared(&bytes);
        let rest = &bytes[known..];
        // Faster than the lossy conversion, which checks each byte.
        let rest = std::str::from_utf8(rest).map_or_else(|_| String::from_utf8_lossy(rest), Cow::Borrowed);
        match parts(&rest) {
            Ok(Some((names_of_rest, count))) => {
                let stack = intern(&mut recording, &mut names, callers, names_of_rest, |end, callers| {
                    // With replaced bytes, offsets in the text are not offsets in the line.
                    if let Cow::Borrowed(_) = rest {
                        before.callers.push(((known + end + 1) as u32, callers));
                    }
                });
                surplus += count / u64::from(u32::MAX);
                if surplus > MAX_SURPLUS {
                    return Err(FoldedError::TooLarge { line: number, at });
                }
                add(&mut recording, stack, count);
            }
            // Errors refer to the whole line. An empty line is no error.
            _ => {
                parts(&String::from_utf8_lossy(&bytes)).map_err(wrong)?;
            }
        }
        drop(rest);
        std::mem::swap(&mut before.line, &mut bytes);
        at += n;
    }
}

/// Names and count of a line; `None` if it is empty.
fn parts(line: &str) -> Result<Option<(&str, u64)>, &'static str> {
    let line = line.trim_end();
    if line.is_empty() {
        return Ok(None);
    }
    let (names, count) = line.rsplit_once(' ').ok_or("has no count")?;
    let count = count.parse().map_err(|_| match count.bytes().all(|byte| byte.is_ascii_digit()) {
        true if !count.is_empty() => "has a count above 18446744073709551615",
        _ => "does not end with a whole number",
    })?;
    Ok(Some((names.trim_end(), count)))
}

/// The previous line. Tools sort stacks, so that it contains most callers of the next line.
#[derive(Default)]
struct Before {
    line: Vec<u8>,
    /// For each `;`, the offset behind it and the stack of the names so far.
    callers: Vec<(u32, StackId)>,
}

impl Before {
    /// The length of the callers that another line shares, and their stack. Forgets other callers.
    fn shared(&mut self, line: &[u8]) -> (usize, StackId) {
        let words = self.line.chunks_exact(8).zip(line.chunks_exact(8));
        let same = words.take_while(|(a, b)| a == b).count() * 8;
        let bytes = self.line[same..].iter().zip(&line[same..]);
        let same = same + bytes.take_while(|(a, b)| a == b).count();
        self.callers.truncate(self.callers.partition_point(|(end, _)| *end as usize <= same));
        self.callers.last().map_or((0, StackId(0)), |(end, callers)| (*end as usize, *callers))
    }
}

/// Returns the stack of `callers` and the names of a line. Calls `met` with the end of each name but the last, and the
/// stack up to it.
fn intern(
    recording: &mut Recording,
    names: &mut HashMap<Box<str>, LocationId>,
    callers: StackId,
    line: &str,
    mut met: impl FnMut(usize, StackId),
) -> StackId {
    let (mut stack, mut end) = (callers, 0);
    for name in line.split(';') {
        let location = names.get(name).copied().unwrap_or_else(|| {
            // Offset 0 is not used: it means no address.
            let offset = names.len() as u64 + 1;
            let location = recording.stacks.intern_location(Location { module: None, offset });
            let frame = Frame { func: name.into(), foreign: false, ..Frame::unknown(0) };
            recording.symbols.set(location, [frame]);
            names.insert(name.into(), location);
            location
        });
        stack = recording.stacks.extend(stack, location);
        end += name.len();
        if end < line.len() {
            met(end, stack);
        }
        end += 1;
    }
    stack
}

/// Adds as many samples as this many hits need.
fn add(recording: &mut Recording, stack: StackId, mut count: u64) {
    while count > 0 {
        let hits = u32::try_from(count).unwrap_or(u32::MAX);
        count -= u64::from(hits);
        let (thread, state) = (ThreadNumber(1), State::Awake);
        let sample = Sample {
            stack,
            thread,
            task: 0,
            clock: Nanos(0),
            state,
            cut: None,
            hits,
            time: Nanos(0),
            spread: Nanos(0),
        };
        recording.samples.push(sample);
    }
}

/// Writes the stacks of a recording with their snapshots, sorted. The file appears under its name only when it is
/// complete.
///
/// # Errors
/// The system's errors.
pub fn write(path: impl AsRef<Path>, recording: &Recording) -> io::Result<()> {
    write_atomically(path.as_ref(), |out| write_to(out, recording))
}

/// As [`write()`], to any writer.
///
/// Inlined functions are frames like others. Code without a name shows its module, `[libz.so.1]`, or its address if it is
/// in no file. An empty name of a Rust function stays empty.
///
/// A `;` in a name becomes `:`, since it separates names. [`sanitize`] escapes control characters and line ends, since
/// folded stacks are read by people and printed by tools. `.glass` and `.jlprof` files keep names unchanged.
///
/// # Errors
/// The errors of the writer.
pub fn write_to(out: &mut impl Write, recording: &Recording) -> io::Result<()> {
    let mut counts: HashMap<StackId, u64> = HashMap::default();
    for (sample, count) in recording.samples.iter().zip(snapshots(recording)) {
        *counts.entry(sample.stack).or_default() += count;
    }
    let locations = 0..recording.stacks.locations().len() as u32;
    let names: Vec<String> = locations.map(|id| name(recording, LocationId(id))).collect();
    // Stacks with the same names are one line, whatever their addresses.
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for (stack, count) in counts.into_iter().filter(|(stack, count)| stack.0 != 0 && *count > 0) {
        let locations: Vec<LocationId> = recording.stacks.walk(stack).collect();
        let frames: Vec<&str> = locations.iter().rev().map(|id| names[id.0 as usize].as_str()).collect();
        *lines.entry(frames.join(";")).or_default() += count;
    }
    for (line, count) in lines {
        writeln!(out, "{line} {count}")?;
    }
    Ok(())
}

/// `[libz.so.1]`, `[vdso]`.
fn in_brackets(module: &str) -> String {
    format!("[{}]", module.rsplit('/').next().unwrap_or("").trim_matches(['[', ']']))
}

/// The frames of a location, outermost first, joined by `;`.
fn name(recording: &Recording, id: LocationId) -> String {
    let location = recording.stacks.location(id);
    let nameless = || match location.module.and_then(|module| recording.modules.get(module.0 as usize)) {
        // An address after it would look like the start of a function.
        Some(module) => in_brackets(&sanitize(&module.path)).replace(';', ":"),
        None => format!("0x{:x}", location.offset),
    };
    let frames: Vec<String> = recording
        .symbols
        .frames_of(id)
        .rev()
        .map(|frame| match &*frame.func {
            // Code without a name is foreign. Otherwise the name itself is empty.
            "" if frame.foreign => nameless(),
            func => sanitize(func).replace(';', ":"),
        })
        .collect();
    if frames.is_empty() { nameless() } else { frames.join(";") }
}
