//! The output of `perf script`: samples of perf with stacks.
//!
//! ```text
//! rg 4711/4712 [001] 12345.678901:    1000000 task-clock:u:
//!             55d0c2a1b2c3 rg::search+0x23 (/usr/bin/rg)
//!             7f3a12345678 __libc_start_main+0x85 (/usr/lib/libc.so.6)
//!
//! ```
//!
//! Source: builtin-script.c and evsel_fprintf.c of linux/tools/perf. The fields of a sample's line depend on `-F`. Command
//! name, thread and event are read if they can be recognised; samples of different events are never added up. Frames have
//! an address, a name and a module. `(inlined)` frames come before the frame that contains them. With `-F +srcline`, a line
//! `  FILE:LINE` follows each frame, and `(inlined)` is at its end. `--header` adds comments.

use foldhash::HashMap;
use stackglass_profile::{
    Frame, Location, LocationId, Module, Nanos, Process, ProcessIndex, Recording, Sample, State, Thread,
    ThreadNumber,
};
use std::io::{self, BufRead, BufReader, Read};

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
/// with an address; or what only perf writes before that.
pub fn is_likely(head: &str) -> bool {
    let has_header = head.starts_with("# ========") && head.contains("\n# captured on ");
    if has_header || head.contains(": PERF_RECORD_") {
        return true;
    }
    let mut lines = head.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    let (Some(first), Some(second)) = (lines.next(), lines.next()) else { return false };
    let indented = |line: &str| line.starts_with([' ', '\t']);
    // perf indents short command names.
    indented(second) && parse_frame(second).is_some() && (!indented(first) || parse_frame(first).is_none())
}

/// The samples of an event.
#[derive(Debug)]
pub struct EventSamples {
    /// The name of the event: `cycles:u`. Empty if the text does not have it.
    pub event: String,
    /// Its samples.
    pub recording: Recording,
}

/// Events of time on a CPU. One of them comes first.
const CPU_EVENTS: [&str; 6] = ["cycles", "cpu-clock", "task-clock", "cpu-cycles", "cpu_core", "cpu_atom"];

/// Events beyond this number are one event.
const MOST_EVENTS: usize = 64;
const OTHER_EVENTS: &str = "other events";

/// Reads the samples of the first event of [`read_events`].
///
/// # Errors
/// See [`PerfScriptError`].
pub fn read_from(input: impl Read) -> Result<Recording, PerfScriptError> {
    let events = read_events(input)?;
    events.into_iter().next().map(|event| event.recording).ok_or(PerfScriptError::NoStacks)
}

/// Reads the text, with a recording for each event: first an event of CPU time, then those with the most samples. Each pair
/// of process and thread id becomes a thread. Samples have hits but no time.
///
/// # Errors
/// See [`PerfScriptError`].
pub fn read_events(input: impl Read) -> Result<Vec<EventSamples>, PerfScriptError> {
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
    if reader.events.is_empty() {
        return Err(PerfScriptError::NoStacks);
    }
    let is_cpu = |name: &str| CPU_EVENTS.contains(&name.split([':', '/']).next().unwrap_or(""));
    reader.events.sort_by_key(|(name, event)| (!is_cpu(name), std::cmp::Reverse(event.samples)));
    let events = reader.events.into_iter();
    Ok(events.map(|(event, of)| EventSamples { event, recording: of.recording }).collect())
}

#[derive(Default)]
struct Reader {
    /// In the order of their first samples.
    events: Vec<(String, EventReader)>,
    open: Option<OpenSample>,
}

/// The sample of which frames are being read.
struct OpenSample {
    header: Header<String>,
    /// Innermost first.
    frames: Vec<ParsedFrame<String>>,
}

/// What is known of a sample. Unknown numbers are 0.
#[derive(Default)]
struct Header<S> {
    command: S,
    process: u32,
    thread: u32,
    event: S,
}

struct ParsedFrame<S> {
    address: u64,
    name: S,
    module: S,
    inlined: bool,
    /// Empty if unknown.
    file: S,
    line: i64,
}

/// The samples of one event.
#[derive(Default)]
struct EventReader {
    recording: Recording,
    samples: u64,
    /// By process and thread id.
    threads: HashMap<(u32, u32), ThreadNumber>,
    processes: HashMap<u32, ProcessIndex>,
    locations: HashMap<(Box<str>, Box<str>, u64), LocationId>,
}

impl Reader {
    fn take(&mut self, line: &str) {
        if line.is_empty() {
            return self.end_sample();
        }
        if line.starts_with('#') {
            return;
        }
        if let Some(OpenSample { frames, .. }) = &mut self.open {
            if let Some(frame) = frames.last_mut().filter(|_| is_source_line(line)) {
                frame.add_source_line(line.trim());
                return;
            }
            if let Some(frame) = parse_frame(line).filter(|_| line.starts_with([' ', '\t'])) {
                frames.push(frame.owned());
                return;
            }
        }
        self.end_sample();
        let Header { command, process, thread, event } = parse_header(line);
        let (command, event) = (command.to_owned(), event.to_owned());
        let header = Header { command, process, thread, event };
        self.open = Some(OpenSample { header, frames: Vec::new() });
    }

    fn end_sample(&mut self) {
        let Some(sample) = self.open.take() else { return };
        // Inlined frames are part of a frame that follows them.
        if sample.frames.iter().all(|frame| frame.inlined) {
            return;
        }
        let name = &sample.header.event;
        let known = self.events.iter().position(|(event, _)| event == name);
        let number = known.unwrap_or_else(|| {
            let is_full = self.events.len() >= MOST_EVENTS;
            if !is_full || self.events.len() == MOST_EVENTS {
                let name = if is_full { OTHER_EVENTS.to_owned() } else { name.clone() };
                self.events.push((name, EventReader::default()));
            }
            self.events.len() - 1
        });
        self.events[number].1.add(sample);
    }
}

impl EventReader {
    fn add(&mut self, sample: OpenSample) {
        let thread = self.thread(&sample.header);
        let mut stack = Vec::with_capacity(sample.frames.len());
        let mut inlined = Vec::new();
        for parsed in sample.frames {
            if parsed.inlined {
                inlined.push(parsed.into_frame());
            } else {
                stack.push(self.location(parsed, &mut inlined));
            }
        }
        let stack = self.recording.stacks.intern(&stack);
        self.samples += 1;
        self.recording.push(Sample {
            stack,
            thread,
            task: 0,
            clock: Nanos(0),
            state: State::Awake,
            cut: None,
            hits: 1,
            time: Nanos(0),
            spread: Nanos(0),
        });
    }

    /// The location of a frame, with the frames inlined into it, which are taken.
    fn location(&mut self, parsed: ParsedFrame<String>, inlined: &mut Vec<Frame>) -> LocationId {
        let key = (parsed.name.as_str().into(), parsed.module.as_str().into(), parsed.address);
        if let Some(known) = self.locations.get(&key).filter(|_| inlined.is_empty()) {
            return *known;
        }
        let module = (!parsed.module.is_empty()).then(|| {
            self.recording.intern_module(Module { path: parsed.module.as_str().into(), build_id: [].into() })
        });
        // Offset 0 means no address.
        let offset = parsed.address.max(1);
        let location = self.recording.stacks.intern_location(Location { module, offset });
        let mut frames = std::mem::take(inlined);
        if self.recording.symbols.frame_indices(location).is_empty() {
            frames.push(parsed.into_frame());
            self.recording.symbols.set(location, frames);
        }
        self.locations.insert(key, location);
        location
    }

    fn thread(&mut self, header: &Header<String>) -> ThreadNumber {
        let (recording, Header { process: pid, thread: tid, .. }) = (&mut self.recording, header);
        let name: &str = &header.command;
        let process = *self.processes.entry(*pid).or_insert_with(|| {
            recording.processes.push(Process { pid: *pid, exe: name.into(), ..Process::default() });
            ProcessIndex(recording.processes.len() as u32 - 1)
        });
        *self.threads.entry((*pid, *tid)).or_insert_with(|| {
            recording.threads.push(Thread {
                process,
                tid: *tid,
                name: name.into(),
                start: Nanos(0),
                end: None,
                cpu: Nanos(0),
                blocked_signal: false,
            });
            ThreadNumber(recording.threads.len() as u32)
        })
    }
}

impl ParsedFrame<&str> {
    fn owned(self) -> ParsedFrame<String> {
        ParsedFrame {
            address: self.address,
            name: self.name.to_owned(),
            module: self.module.to_owned(),
            inlined: self.inlined,
            file: self.file.to_owned(),
            line: self.line,
        }
    }
}

impl ParsedFrame<String> {
    /// `FILE:LINE`, with ` (inlined)` if the frame is; `MODULE[ADDRESS]`, `??:0` or `:0` if the line is unknown.
    fn add_source_line(&mut self, text: &str) {
        let place = text.strip_suffix(" (inlined)");
        self.inlined |= place.is_some();
        let place = place.unwrap_or(text);
        // The compiler numbers the parts of a line.
        let place = place.split(" (discriminator ").next().unwrap_or(place);
        let Some((file, line)) = place.rsplit_once(':') else { return };
        let Ok(line) = line.parse::<u32>() else { return };
        if !matches!(file, "" | "??") {
            self.file = file.to_owned();
            self.line = if line > 0 { i64::from(line) } else { -1 };
        }
    }

    fn into_frame(self) -> Frame {
        let is_rust = self.name.starts_with("_R") || has_rust_hash(&self.name) || self.file.ends_with(".rs");
        let mut frame = Frame::unknown(self.address);
        (frame.func, frame.module) = (without_hash(&self.name).into(), self.module.into());
        (frame.file, frame.line, frame.inlined) = (self.file.into(), self.line, self.inlined);
        // Without a line, a path means Rust or C++.
        frame.foreign = !is_rust && !self.name.contains("::");
        frame
    }
}

/// Whether this is the line of `-F +srcline` below a frame, or of `srccode` below that. Frames are indented by more.
fn is_source_line(line: &str) -> bool {
    if line.starts_with('|') {
        return true;
    }
    let Some(text) = line.strip_prefix("  ").filter(|text| !text.starts_with([' ', '\t'])) else {
        return false;
    };
    let inlined = text.strip_suffix(" (inlined)").and_then(|place| place.rsplit_once(':'));
    if inlined.is_some_and(|(_, line)| line.parse::<u32>().is_ok()) {
        return true;
    }
    // The name of a file may begin with something like a short address.
    let first = text.split(' ').next().unwrap_or("");
    parse_frame(text).is_none() || (first.len() < 4 && text.contains(':'))
}

/// `COMM PID/TID …` or `COMM TID …`. Names may contain spaces, so they end at the first number.
fn parse_header(line: &str) -> Header<&str> {
    let line = line.trim_start();
    for (at, _) in line.match_indices(' ') {
        let rest = line[at..].trim_start();
        let (word, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        let word = word.trim_end_matches(':');
        let (pid, tid) = word.split_once('/').unwrap_or((word, word));
        if let (Ok(process), Ok(thread)) = (pid.parse(), tid.parse()) {
            return Header { command: line[..at].trim_end(), process, thread, event: event_of(rest) };
        }
    }
    let (command, rest) = line.split_once(' ').unwrap_or((line, ""));
    Header { command, event: event_of(rest), ..Header::default() }
}

/// The event in `[CPU] SECONDS: PERIOD EVENT: …`, all of which may be missing.
fn event_of(fields: &str) -> &str {
    let is_number =
        |word: &str| word.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b':'));
    let mut names = fields.split_ascii_whitespace().filter(|word| !is_number(word));
    names.find_map(|word| word.strip_suffix(':')).unwrap_or("")
}

/// `ADDRESS NAME+0xOFFSET (MODULE)`, `NAME (inlined)`.
fn parse_frame(line: &str) -> Option<ParsedFrame<&str>> {
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
            file: "",
            line: -1,
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
    let (name, module) = (known(name), known(module));
    Some(ParsedFrame { address, name, module, inlined: false, file: "", line: -1 })
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

Web Content  99 12345.7:  task-clock:u:
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
