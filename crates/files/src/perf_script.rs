//! The output of `perf script`: samples of perf with stacks.
//!
//! ```text
//! rg 4711/4712 [001] 12345.678901:    1000000 task-clock:u:
//!             55d0c2a1b2c3 rg::search+0x23 (/usr/bin/rg)
//!             7f3a12345678 __libc_start_main+0x85 (/usr/lib/libc.so.6)
//!
//! ```
//!
//! Source: builtin-script.c of linux/tools/perf. The fields of a sample's line depend on `-F`. Command name, thread and time
//! are read if they can be recognised. Frames have an address, a name and a module. `(inlined)` frames come before the frame
//! that contains them.

use foldhash::HashMap;
use stackglass_profile::{
    Frame, Location, LocationId, Module, Nanos, Process, ProcessIndex, Recording, Sample, State, Thread,
    ThreadNumber,
};
use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;

/// Why text is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PerfScriptError {
    /// Reading failed.
    #[error("cannot read at byte {at}: {source}")]
    Read {
        /// Offset of the line.
        at: u64,
        /// The system's error.
        source: io::Error,
    },
    /// No line is a frame of a stack.
    #[error("no stacks in it: is it the output of `perf script`, recorded with --call-graph?")]
    NoStacks,
    /// A line is too long.
    #[error("line {line} (byte {at}) is longer than 1 MiB")]
    TooLong {
        /// Line number, from 1.
        line: u64,
        /// Its offset.
        at: u64,
    },
}

/// Maximum length of a line.
const MAX_LINE: u64 = 1 << 20;

/// Whether the first bytes of a file look like such text: a line without indentation, then an indented one that begins
/// with an address.
pub fn is_likely(head: &str) -> bool {
    let mut lines = head.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    let (Some(first), Some(second)) = (lines.next(), lines.next()) else { return false };
    let indented = |line: &str| line.starts_with([' ', '\t']);
    // perf indents short command names.
    indented(second) && parse_frame(second).is_some() && (!indented(first) || parse_frame(first).is_none())
}

/// Reads the text. Each pair of process and thread id becomes a thread. Samples have hits but no time.
///
/// # Errors
/// See [`PerfScriptError`].
pub fn read_from(input: impl Read) -> Result<Recording, PerfScriptError> {
    let mut input = BufReader::new(input);
    let mut reader = Reader::default();
    let (mut at, mut line) = (0, 0);
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let read = (&mut input).take(MAX_LINE).read_until(b'\n', &mut bytes);
        let read = read.map_err(|source| PerfScriptError::Read { at, source })? as u64;
        if read == 0 {
            break;
        }
        line += 1;
        if read == MAX_LINE && !bytes.ends_with(b"\n") {
            return Err(PerfScriptError::TooLong { line, at });
        }
        reader.take(String::from_utf8_lossy(&bytes).trim_end());
        at += read;
    }
    reader.end_sample();
    if reader.recording.samples.is_empty() {
        return Err(PerfScriptError::NoStacks);
    }
    Ok(reader.recording)
}

#[derive(Default)]
struct Reader {
    recording: Recording,
    /// By process and thread id.
    threads: HashMap<(u32, u32), ThreadNumber>,
    processes: HashMap<u32, ProcessIndex>,
    locations: HashMap<(Box<str>, Box<str>, u64), LocationId>,
    /// The current sample: its thread and frames, innermost first.
    open: Option<(ThreadNumber, Vec<LocationId>)>,
    /// Inlined frames, until the frame that contains them is read.
    inlined: Vec<Frame>,
}

struct ParsedFrame<'a> {
    address: u64,
    name: &'a str,
    module: &'a str,
    inlined: bool,
}

impl Reader {
    fn take(&mut self, line: &str) {
        if line.is_empty() {
            return self.end_sample();
        }
        if line.starts_with('#') {
            return;
        }
        match (&self.open, parse_frame(line).filter(|_| line.starts_with([' ', '\t']))) {
            (Some(_), Some(frame)) => self.add_frame(&frame),
            _ => {
                self.end_sample();
                let (command, process, thread) = parse_header(line);
                let thread = self.thread(command, process, thread);
                self.open = Some((thread, Vec::new()));
            }
        }
    }

    fn add_frame(&mut self, parsed: &ParsedFrame<'_>) {
        let module: Arc<str> = parsed.module.into();
        let mut frame = Frame::unknown(parsed.address);
        let is_rust = parsed.name.starts_with("_R") || has_rust_hash(parsed.name);
        (frame.func, frame.module) = (without_hash(parsed.name).into(), module);
        // perf shows names only: a path means Rust or C++.
        frame.foreign = !is_rust && !parsed.name.contains("::");
        if parsed.inlined {
            frame.inlined = true;
            self.inlined.push(frame);
            return;
        }
        let mut frames = std::mem::take(&mut self.inlined);
        let key = (parsed.name.into(), parsed.module.into(), parsed.address);
        let location = match self.locations.get(&key).filter(|_| frames.is_empty()) {
            Some(known) => *known,
            None => {
                let module = (!parsed.module.is_empty()).then(|| {
                    self.recording.intern_module(Module { path: parsed.module.into(), build_id: [].into() })
                });
                // Offset 0 means no address.
                let offset = parsed.address.max(1);
                let location = self.recording.stacks.intern_location(Location { module, offset });
                if self.recording.symbols.frame_indices(location).is_empty() {
                    frames.push(frame);
                    self.recording.symbols.set(location, frames);
                }
                self.locations.insert(key, location);
                location
            }
        };
        if let Some((_, stack)) = &mut self.open {
            stack.push(location);
        }
    }

    fn end_sample(&mut self) {
        self.inlined.clear();
        let Some((thread, frames)) = self.open.take() else { return };
        if frames.is_empty() {
            return;
        }
        let stack = self.recording.stacks.intern(&frames);
        self.recording.push(Sample {
            stack,
            thread,
            task: 0,
            clock: Nanos(0),
            state: State::Awake,
            cut: None,
            hits: 1,
            time: Nanos(0),
        });
    }

    fn thread(&mut self, command: &str, pid: u32, tid: u32) -> ThreadNumber {
        let recording = &mut self.recording;
        let process = *self.processes.entry(pid).or_insert_with(|| {
            recording.processes.push(Process { pid, exe: command.into(), ..Process::default() });
            ProcessIndex(recording.processes.len() as u32 - 1)
        });
        *self.threads.entry((pid, tid)).or_insert_with(|| {
            recording.threads.push(Thread {
                process,
                tid,
                name: command.into(),
                start: Nanos(0),
                end: None,
                cpu: Nanos(0),
                blocked_signal: false,
            });
            ThreadNumber(recording.threads.len() as u32)
        })
    }
}

/// `COMM PID/TID …` or `COMM TID …`. Names may contain spaces, so they end at the first number.
fn parse_header(line: &str) -> (&str, u32, u32) {
    let line = line.trim_start();
    for (at, _) in line.match_indices(' ') {
        let word = line[at..].trim_start().split(' ').next().unwrap_or("").trim_end_matches(':');
        let (pid, tid) = word.split_once('/').unwrap_or((word, word));
        if let (Ok(pid), Ok(tid)) = (pid.parse(), tid.parse()) {
            return (line[..at].trim_end(), pid, tid);
        }
    }
    (line.split(' ').next().unwrap_or(""), 0, 0)
}

/// `ADDRESS NAME+0xOFFSET (MODULE)`, `NAME (inlined)`.
fn parse_frame(line: &str) -> Option<ParsedFrame<'_>> {
    let line = line.trim();
    let (first, rest) = line.split_once(' ').unwrap_or((line, ""));
    if let Some(name) = line.strip_suffix(" (inlined)") {
        // With or without an address.
        let address = u64::from_str_radix(first, 16).ok().filter(|_| first.len() >= 4);
        let name = if address.is_some() { name.split_once(' ').map_or(name, |(_, name)| name) } else { name };
        return Some(ParsedFrame {
            address: address.unwrap_or(0),
            name: without_offset(name.trim()),
            module: "",
            inlined: true,
        });
    }
    let address = u64::from_str_radix(first, 16).ok()?;
    let rest = rest.trim();
    let (name, module) = match rest.rfind(" (").filter(|_| rest.ends_with(')')) {
        Some(at) => (&rest[..at], &rest[at + 2..rest.len() - 1]),
        None => match rest.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
            Some(module) => ("", module),
            None => (rest, ""),
        },
    };
    let name = without_offset(name.trim());
    let known = |text| if text == "[unknown]" || text == "unknown" { "" } else { text };
    Some(ParsedFrame { address, name: known(name), module: known(module), inlined: false })
}

fn without_offset(name: &str) -> &str {
    match name.rsplit_once("+0x") {
        Some((name, offset)) if offset.bytes().all(|byte| byte.is_ascii_hexdigit()) => name,
        _ => name,
    }
}

/// `…::h0123456789abcdef`, the hash at the end of Rust's older names.
fn has_rust_hash(name: &str) -> bool {
    without_hash(name).len() < name.len()
}

fn without_hash(name: &str) -> &str {
    match name.rsplit_once("::h") {
        Some((path, hash)) if hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => path,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# captured on: today
rg 4711/4712 [001] 12345.678901:    1000000 task-clock:u:
\t    55d0c2a1b2c3 rg::search::h0123456789abcdef+0x23 (/usr/bin/rg)
\t    55d0c2a1b2d3 inner_one (inlined)
\t    55d0c2a1b2d3 rg::main+0x3 (/usr/bin/rg)
\t    7f3a12345678 [unknown] (/usr/lib/libc.so.6)

Web Content  99 12345.7:  cpu-clock:
            abcd main+0x1 (/bin/a b)

rg 4711/4712 [001] 12345.688901:    1000000 task-clock:u:
\t    55d0c2a1b2c3 rg::search::h0123456789abcdef+0x23 (/usr/bin/rg)
";

    #[test]
    fn samples_are_read_with_their_threads() {
        assert!(is_likely(TEXT));
        let recording = read_from(TEXT.as_bytes()).unwrap();
        let threads: Vec<_> = recording.threads.iter().map(|t| (&*t.name, t.tid)).collect();
        assert_eq!(threads, [("rg", 4712), ("Web Content", 99)]);
        let names: Vec<Vec<String>> = recording
            .samples
            .iter()
            .map(|sample| {
                let locations = recording.stacks.walk(sample.stack);
                let frames = locations.flat_map(|location| recording.symbols.frames_of(location));
                frames.map(|frame| frame.func.to_string()).collect()
            })
            .collect();
        assert_eq!(names[0], ["rg::search", "inner_one", "rg::main", ""]);
        assert_eq!(names[1], ["main"]);
        assert_eq!(recording.samples.iter().map(|sample| sample.hits).sum::<u32>(), 3);
    }

    #[test]
    fn other_text_is_refused() {
        for text in ["", "main;a;b 12\nmain;c 3\n", "hello\nworld\n", "  12 34\n"] {
            assert!(!is_likely(text), "{text}");
        }
        assert!(matches!(read_from("nothing\n".as_bytes()), Err(PerfScriptError::NoStacks)));
    }
}
