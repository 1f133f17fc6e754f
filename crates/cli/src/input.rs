//! Input files: `.glass` recordings, samples of Julia, folded stacks and output of perf, told apart by content.

use crate::failure::Failure;
use crate::message;
use crate::recording_file;
use stackglass_files::jlprof::{self, Content, JlprofError};
use stackglass_files::perf_script::EventSamples;
use stackglass_files::{folded, perf_script};
use stackglass_flame::{Graph, GraphBuilder, Span, Status};
use stackglass_profile::{Data, Dictionary, Nanos, Recording, TimeRange, command_text};
use stackglass_report::allocation_queries::{TypeLeaf, weighted};
use stackglass_report::{
    Metric, Selection, Source, add_unaccounted, count_time, merge_threads, name_stackless,
};
use std::ffi::OsStr;
use std::fmt::{self, Display};
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A format of files with samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// A recording of Stackglass.
    Glass,
    /// Samples as Julia saves them.
    Jlprof,
    /// `root;…;leaf N`
    Folded,
    /// Output of `perf script`.
    PerfScript,
}

impl Kind {
    /// The formats that can be written.
    pub(crate) const ALL: &[Kind] = &[Kind::Glass, Kind::Jlprof, Kind::Folded];

    /// The name on the command line, also the file extension.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Kind::Glass => "glass",
            Kind::Jlprof => "jlprof",
            Kind::Folded => "folded",
            Kind::PerfScript => "perf script",
        }
    }

    /// The format that the extension of a file names.
    pub(crate) fn of_name(path: &Path) -> Option<Kind> {
        let extension = path.extension().and_then(OsStr::to_str)?;
        Kind::ALL.iter().copied().find(|kind| kind.word().eq_ignore_ascii_case(extension))
    }

    /// The format by the first bytes of a file; if they fit none, by its name.
    fn of_content(head: &[u8], name: Option<Kind>) -> Option<Kind> {
        let order = head.get(8..12);
        // Julia does not check the first eight bytes of its own files; the next four give the byte order.
        let is_jlprof = head.starts_with(b"JLPROF")
            || order == Some([4, 3, 2, 1].as_slice())
            || order == Some([1, 2, 3, 4].as_slice());
        let is_text = head.iter().all(|byte| *byte >= b' ' || byte.is_ascii_whitespace());
        match head {
            _ if head.starts_with(b"\x8eGLASS") => Some(Kind::Glass),
            _ if is_jlprof => Some(Kind::Jlprof),
            [_, ..] if is_text && perf_script::is_likely(&String::from_utf8_lossy(head)) => {
                Some(Kind::PerfScript)
            }
            [_, ..] if is_text => Some(Kind::Folded),
            // The reader of that format reports what is wrong.
            _ => name,
        }
    }
}

impl Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Samples that were read.
pub(crate) struct Input {
    /// The name for messages.
    pub(crate) name: String,
    pub(crate) kind: Kind,
    samples: Samples,
    /// Output of perf: other events than that of the samples, which are never added up.
    pub(crate) other_events: Vec<EventSamples>,
}

enum Samples {
    Recording(Box<Recording>),
    Words(Data, Box<Dictionary>),
}

impl Input {
    /// A recording that was read from a file.
    pub(crate) fn of_recording(path: &Path, recording: Recording) -> Input {
        Input {
            name: path.display().to_string(),
            kind: Kind::Glass,
            samples: Samples::Recording(Box::new(recording)),
            other_events: Vec::new(),
        }
    }

    /// The source for reports.
    pub(crate) fn source(&self) -> Source<'_> {
        match &self.samples {
            Samples::Recording(recording) => Source::Recording(recording),
            Samples::Words(data, dictionary) => Source::Data(data, dictionary),
        }
    }

    /// A title: the command that was recorded, or the name of the file.
    pub(crate) fn title(&self) -> String {
        match self.source() {
            Source::Recording(recording) if !recording.info.command.is_empty() => {
                command_text(&recording.info.command)
            }
            _ => self.name.clone(),
        }
    }

    /// The recording, if its samples have times.
    pub(crate) fn timed(&self) -> Option<&Recording> {
        match &self.samples {
            Samples::Recording(recording) => recording.is_timed().then_some(recording),
            Samples::Words(..) => None,
        }
    }

    /// The allocations in the place of the samples; the same samples with [`Metric::Time`].
    pub(crate) fn weighted(self, metric: Metric, leaf: TypeLeaf) -> Input {
        let samples = match self.samples {
            Samples::Recording(recording) => Samples::Recording(Box::new(weighted(*recording, metric, leaf))),
            words => words,
        };
        Input { samples, ..self }
    }

    /// Keeps the selected samples only.
    pub(crate) fn select(self, selection: &Selection) -> Result<Input, Failure> {
        let (name, kind) = (self.name.clone(), self.kind);
        let mut recording = self.into_recording()?;
        selection.keep_in(&mut recording);
        let samples = Samples::Recording(Box::new(recording));
        Ok(Input { name, kind, samples, other_events: Vec::new() })
    }

    /// Prepares samples for a format that has stacks only: names the time that has no stack. `unaccounted`: CPU time without any sample, which is added.
    pub(crate) fn reduce_to_stacks(&mut self, unaccounted: u64) {
        if let Samples::Recording(recording) = &mut self.samples {
            name_stackless(recording);
            add_unaccounted(recording, unaccounted);
            merge_threads(recording);
        }
    }

    /// Makes counts of samples time in this unit. Returns false, and changes nothing, if samples have no times.
    pub(crate) fn count_time(&mut self, unit: Nanos) -> bool {
        match &mut self.samples {
            Samples::Recording(recording) => count_time(recording, unit),
            Samples::Words(..) => false,
        }
    }

    /// Converts the samples to a recording.
    pub(crate) fn into_recording(self) -> Result<Recording, Failure> {
        match self.samples {
            Samples::Recording(recording) => Ok(*recording),
            Samples::Words(data, dictionary) => stackglass_files::recording_of(&data, &dictionary)
                .map_err(|error| Failure::new(format!("{}: {error}", self.name))),
        }
    }
}

/// Number of bytes read to recognise the format.
const HEAD: u64 = 512;

/// Whether the path is `-`: standard input or output.
pub(crate) fn is_stream(path: &Path) -> bool {
    path == Path::new("-")
}

/// Whether this is a regular `.glass` file, which can be read in parts.
pub(crate) fn is_recording(path: &Path) -> bool {
    head_of(path).is_some_and(|head| Kind::of_content(&head, Kind::of_name(path)) == Some(Kind::Glass))
}

/// The first bytes of a regular file, to recognise it by.
pub(crate) fn head_of(path: &Path) -> Option<Vec<u8>> {
    // A pipe can be read only once.
    if is_stream(path) || !path.metadata().is_ok_and(|info| info.is_file()) {
        return None;
    }
    let mut head = Vec::new();
    File::open(path).and_then(|file| file.take(HEAD).read_to_end(&mut head)).ok()?;
    Some(head)
}

/// Refuses an output that is the same file as the input.
pub(crate) fn refuse_same(input: &Path, output: &Path) -> Result<(), Failure> {
    if is_stream(input) || is_stream(output) {
        return Ok(());
    }
    let (Ok(a), Ok(b)) = (input.metadata(), output.metadata()) else { return Ok(()) };
    if (a.dev(), a.ino()) == (b.dev(), b.ino()) && a.is_file() {
        let line = format!("{} is the input: write to another file", output.display());
        return Err(Failure::new(line));
    }
    Ok(())
}

/// The given file, or the newest recording in this folder.
pub(crate) fn choose(file: Option<&Path>) -> Result<PathBuf, Failure> {
    match file {
        Some(file) => Ok(file.to_path_buf()),
        None => recording_file::newest(),
    }
}

/// Reads a file, or standard input for `-`, with every single sample.
pub(crate) fn read_exactly(path: &Path) -> Result<Input, Failure> {
    read_with(path, Detail::Samples, TimeRange::default())
}

/// Reads a file, or standard input for `-`, for a report. Samples of a `.glass` file are merged, so memory does not
/// grow with the length of the recording.
pub(crate) fn read(path: &Path, range: TimeRange) -> Result<Input, Failure> {
    read_with(path, Detail::Stacks, range)
}

/// As [`read_for_report`], but a profile by wall time has every task snapshot: the errors of its shares come from single ones.
pub(crate) fn read_with_task_snapshots(path: &Path, range: TimeRange) -> Result<Input, Failure> {
    let has_task_snapshots =
        |input: &Input| matches!(&input.samples, Samples::Recording(all) if all.is_walltime());
    if is_recording(path) {
        let merged = read(path, range)?;
        if !has_task_snapshots(&merged) {
            return with_threads(merged);
        }
    }
    // Or a stream, which can be read only once.
    with_threads(read_with(path, Detail::Rows, range)?)
}

/// What to read from a `.glass` file.
#[derive(Clone, Copy, PartialEq)]
enum Detail {
    /// Every row of a `.glass` file: every sample of a task.
    Rows,
    /// Every sample.
    Samples,
    /// One merged sample per stack and thread.
    Stacks,
}

/// Input that a flame graph can be drawn from.
pub(crate) enum Drawable {
    /// Samples.
    Samples(Input),
    /// A saved flame graph.
    Graph { name: String, graph: Graph },
}

/// Like [`read_for_report`], but also reads flame graphs saved by Julia.
pub(crate) fn read_drawable(path: &Path, range: TimeRange) -> Result<Drawable, Failure> {
    let opened = open(path)?;
    if opened.kind != Kind::Jlprof {
        return with_threads(samples_of(opened, path, Detail::Stacks, range)?).map(Drawable::Samples);
    }
    refuse_range(&opened.name, range)?;
    let wrong = |error: JlprofError| Failure::new(format!("{}: {error}", opened.name));
    match jlprof::read_from(opened.input).map_err(wrong)? {
        Content::Samples(samples) => {
            let samples = Samples::Words(samples.data, Box::new(samples.dictionary));
            let (name, kind) = (opened.name, opened.kind);
            with_threads(Input { name, kind, samples, other_events: Vec::new() }).map(Drawable::Samples)
        }
        Content::Graph(nodes) => {
            let mut builder = GraphBuilder::default();
            for node in nodes {
                let node = node.map_err(wrong)?;
                let frame = builder.frame(&node.frame);
                builder.open_at(node.depth, frame, Status(node.status), Span::new(node.start, node.stop));
            }
            let graph = builder.finish();
            let graph =
                graph.ok_or_else(|| Failure::new(format!("{}: the flame graph is empty", opened.name)))?;
            Ok(Drawable::Graph { name: opened.name, graph })
        }
    }
}

/// An open file and its format.
struct Opened {
    name: String,
    kind: Kind,
    input: Box<dyn Read>,
    /// It can be read only once.
    stream: bool,
}

fn read_with(path: &Path, detail: Detail, range: TimeRange) -> Result<Input, Failure> {
    samples_of(open(path)?, path, detail, range)
}

fn refuse_range(name: &str, range: TimeRange) -> Result<(), Failure> {
    match range.is_all() {
        true => Ok(()),
        false => Err(Failure::new(format!(
            "{name}: its samples have no times, so --from and --to cannot choose some; a .glass file has them"
        ))),
    }
}

fn open(path: &Path) -> Result<Opened, Failure> {
    let name = if is_stream(path) { "standard input".to_owned() } else { path.display().to_string() };
    let cannot = |error: io::Error| Failure::new(format!("cannot read {name}: {error}"));
    // A named pipe can also be read only once.
    let (mut input, stream): (Box<dyn Read>, bool) = match is_stream(path) {
        true => (Box::new(io::stdin().lock()), true),
        false => {
            let file = File::open(path).map_err(cannot)?;
            let stream = !file.metadata().map_err(cannot)?.is_file();
            (Box::new(file), stream)
        }
    };
    let mut head = Vec::new();
    input.by_ref().take(HEAD).read_to_end(&mut head).map_err(cannot)?;
    let Some(kind) = Kind::of_content(&head, Kind::of_name(path)) else {
        let what = if head.is_empty() { "is empty" } else { "has an unknown format" };
        return Err(Failure::new(format!(
            "{name} {what}: expected .glass, .jlprof, folded stacks (`root;…;leaf 12`) or output of `perf script`"
        )));
    };
    Ok(Opened { name, kind, input: Box::new(Cursor::new(head).chain(input)), stream })
}

fn samples_of(opened: Opened, path: &Path, detail: Detail, range: TimeRange) -> Result<Input, Failure> {
    let Opened { name, kind, input, stream } = opened;
    let wrong = |error: &dyn Display| Failure::new(format!("{name}: {error}"));
    if kind != Kind::Glass {
        refuse_range(&name, range)?;
    }
    let mut other_events = Vec::new();
    let samples = match kind {
        Kind::Glass if detail == Detail::Stacks && !stream => {
            Samples::Recording(Box::new(recording_file::read_merged(path, range)?))
        }
        Kind::Glass => {
            let read = match (detail, stream) {
                (Detail::Rows, false) => stackglass_files::read_rows(path),
                (Detail::Rows, true) => stackglass_files::read_rows_from(input),
                (Detail::Samples, false) => stackglass_files::read(path),
                (Detail::Samples, true) => stackglass_files::read_from(input),
                (Detail::Stacks, _) => stackglass_files::read_merged_from(input),
            };
            let (mut recording, completeness) = read.map_err(Failure::new)?;
            recording_file::check_range(&name, &recording, range)?;
            recording.keep(range);
            Samples::Recording(Box::new(recording_file::with_names(&name, recording, &completeness)?))
        }
        Kind::Jlprof => {
            let read = match stream {
                true => jlprof::read_from(input).and_then(Content::samples),
                false => jlprof::read(path).and_then(Content::samples),
            };
            let samples = read.map_err(|error| match error {
                JlprofError::IsGraph => wrong(&format!("{error}: `stackglass flamegraph` draws it")),
                error => wrong(&error),
            })?;
            Samples::Words(samples.data, Box::new(samples.dictionary))
        }
        Kind::Folded => {
            let recording = folded::read_from(input).map_err(|error| wrong(&error))?;
            if recording.samples.is_empty() {
                return Err(wrong(&"it has no stacks"));
            }
            Samples::Recording(Box::new(recording))
        }
        Kind::PerfScript => {
            let mut events = perf_script::read_events(input).map_err(|error| wrong(&error))?;
            other_events = events.split_off(1);
            let EventSamples { event, recording } = events.remove(0);
            say_events(&name, &event, &other_events);
            Samples::Recording(Box::new(recording))
        }
    };
    Ok(Input { name, kind, samples, other_events })
}

/// Says which of several events is shown.
fn say_events(name: &str, shown: &str, others: &[EventSamples]) {
    if others.is_empty() {
        return;
    }
    let others: Vec<&str> = others.iter().map(event_name).collect();
    let others = others.join(", ");
    message::print(&format!("{name}: {shown} is shown; a flame graph page also has {others}"));
}

/// The name of an event, for readers.
pub(crate) fn event_name(event: &EventSamples) -> &str {
    if event.event.is_empty() { "samples without an event" } else { &event.event }
}

/// Like [`read`], for the full report, which needs threads and tasks.
pub(crate) fn read_for_report(path: &Path, range: TimeRange) -> Result<Input, Failure> {
    with_threads(read(path, range)?)
}

/// Gives samples without threads one thread, with a message.
fn with_threads(mut input: Input) -> Result<Input, Failure> {
    if let Samples::Words(data, _) = &mut input.samples
        && !data.is_empty()
        && !data.has_meta()
    {
        let faked = data.strip_meta().and_then(|bare| bare.add_fake_meta(1, 1));
        *data = faked.map_err(|error| Failure::new(format!("{}: {error}", input.name)))?;
        message::print(&format!("{}: its samples have no thread ids: shown as one thread", input.name));
    }
    Ok(input)
}
