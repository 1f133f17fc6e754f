//! What a verb reads: a `.glass` recording, Julia's samples or folded stacks, told apart by content.

use crate::failure::Failure;
use crate::message;
use crate::recording_file;
use stackglass_files::jlprof::{self, Content, JlprofError};
use stackglass_files::{folded, perf_script};
use stackglass_flame::{Graph, GraphBuilder, Span, Status};
use stackglass_profile::{Data, Dictionary, Recording};
use stackglass_report::Source;
use std::ffi::OsStr;
use std::fmt::{self, Display};
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Kinds of files with samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Our recordings.
    Glass,
    /// Samples as Julia saves them.
    Jlprof,
    /// `root;…;leaf N`
    Folded,
    /// Text of `perf script`.
    PerfScript,
}

impl Kind {
    /// All that can be written.
    pub(crate) const ALL: &[Kind] = &[Kind::Glass, Kind::Jlprof, Kind::Folded];

    /// Its name on the command line, and its file extension.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Kind::Glass => "glass",
            Kind::Jlprof => "jlprof",
            Kind::Folded => "folded",
            Kind::PerfScript => "perf script",
        }
    }

    /// By the extension of a file.
    pub(crate) fn of_name(path: &Path) -> Option<Kind> {
        let extension = path.extension().and_then(OsStr::to_str)?;
        Kind::ALL.iter().copied().find(|kind| kind.word().eq_ignore_ascii_case(extension))
    }

    /// By a file's first bytes and, where they could be anything, its name.
    fn of_content(head: &[u8], name: Option<Kind>) -> Option<Kind> {
        let order = head.get(8..12);
        // Julia does not look at the first eight bytes of its own files; the next four tell the byte order.
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
            // Its reader says what is wrong with it.
            _ => name,
        }
    }
}

impl Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// What was read.
pub(crate) struct Input {
    /// As messages call it.
    pub(crate) name: String,
    pub(crate) kind: Kind,
    samples: Samples,
}

enum Samples {
    Recording(Box<Recording>),
    Words(Data, Box<Dictionary>),
}

impl Input {
    /// For reports.
    pub(crate) fn source(&self) -> Source<'_> {
        match &self.samples {
            Samples::Recording(recording) => Source::Recording(recording),
            Samples::Words(data, dictionary) => Source::Data(data, dictionary),
        }
    }

    /// The recording, where it knows how long things took.
    pub(crate) fn timed(&self) -> Option<&Recording> {
        match &self.samples {
            // One that was made of samples from elsewhere has no times; an empty one may have had no samples.
            Samples::Recording(recording) if recording.about.delay.0 > 0 || recording.samples.is_empty() => {
                Some(recording)
            }
            _ => None,
        }
    }

    /// As a recording, whatever it was.
    pub(crate) fn into_recording(self) -> Result<Recording, Failure> {
        match self.samples {
            Samples::Recording(recording) => Ok(*recording),
            Samples::Words(data, dictionary) => stackglass_files::recording_of(&data, &dictionary)
                .map_err(|error| Failure::new(format!("{}: {error}", self.name))),
        }
    }
}

/// Bytes that tell what a file is.
const HEAD: u64 = 512;

/// Whether a name stands for standard input or output.
pub(crate) fn is_stream(path: &Path) -> bool {
    path == Path::new("-")
}

/// Whether a `.glass` file has this name, which can be read in parts.
pub(crate) fn is_recording(path: &Path) -> bool {
    // What is read of a pipe is gone.
    if is_stream(path) || !path.metadata().is_ok_and(|about| about.is_file()) {
        return false;
    }
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(HEAD).read_to_end(&mut head));
    read.is_ok() && Kind::of_content(&head, Kind::of_name(path)) == Some(Kind::Glass)
}

/// Refuses an output that is the input, by whatever name.
pub(crate) fn refuse_same(input: &Path, output: &Path) -> Result<(), Failure> {
    if is_stream(input) || is_stream(output) {
        return Ok(());
    }
    let (Ok(a), Ok(b)) = (input.metadata(), output.metadata()) else { return Ok(()) };
    if (a.dev(), a.ino()) == (b.dev(), b.ino()) && a.is_file() {
        let line = format!("{} is what is read: write to another file", output.display());
        return Err(Failure::new(line));
    }
    Ok(())
}

/// The file that is named, or the newest recording of this folder.
pub(crate) fn choose(file: Option<&Path>) -> Result<PathBuf, Failure> {
    match file {
        Some(file) => Ok(file.to_path_buf()),
        None => recording_file::newest(),
    }
}

/// Reads a file, or standard input for `-`, with every sample in its place.
pub(crate) fn read_exactly(path: &Path) -> Result<Input, Failure> {
    read_with(path, Detail::Samples)
}

/// Reads a file, or standard input for `-`, for a report: of a `.glass` file in memory that does not grow
/// with its length.
pub(crate) fn read(path: &Path) -> Result<Input, Failure> {
    read_with(path, Detail::Stacks)
}

/// What is wanted of a `.glass` file.
#[derive(Clone, Copy, PartialEq)]
enum Detail {
    /// Each sample.
    Samples,
    /// Each stack of each thread, its samples counted together.
    Stacks,
}

/// What a picture can be drawn of.
pub(crate) enum Drawable {
    /// Samples.
    Samples(Input),
    /// A flame graph that was saved, and its name.
    Graph(String, Graph),
}

/// As [`read_for_report`], and flame graphs as Julia saves them.
pub(crate) fn read_drawable(path: &Path) -> Result<Drawable, Failure> {
    let opened = open(path)?;
    if opened.kind != Kind::Jlprof {
        return told(samples_of(opened, path, Detail::Stacks)?).map(Drawable::Samples);
    }
    let wrong = |error: JlprofError| Failure::new(format!("{}: {error}", opened.name));
    match jlprof::read_from(opened.input).map_err(wrong)? {
        Content::Samples(samples) => {
            let samples = Samples::Words(samples.data, Box::new(samples.dictionary));
            told(Input { name: opened.name, kind: opened.kind, samples }).map(Drawable::Samples)
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
                graph.ok_or_else(|| Failure::new(format!("{}: a flame graph without a box", opened.name)))?;
            Ok(Drawable::Graph(opened.name, graph))
        }
    }
}

/// A file that was opened, and what it is.
struct Opened {
    name: String,
    kind: Kind,
    input: Box<dyn Read>,
    /// It can be read once only.
    stream: bool,
}

fn read_with(path: &Path, detail: Detail) -> Result<Input, Failure> {
    samples_of(open(path)?, path, detail)
}

fn open(path: &Path) -> Result<Opened, Failure> {
    let name = if is_stream(path) { "standard input".to_owned() } else { path.display().to_string() };
    let cannot = |error: io::Error| Failure::new(format!("cannot read {name}: {error}"));
    // A pipe that has a name can be opened once as well.
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
        let what = if head.is_empty() { "is empty" } else { "is none of these" };
        return Err(Failure::new(format!(
            "{name} {what}: .glass, .jlprof, folded stacks (`root;…;leaf 12`) and text of `perf script` can be read"
        )));
    };
    Ok(Opened { name, kind, input: Box::new(Cursor::new(head).chain(input)), stream })
}

fn samples_of(opened: Opened, path: &Path, detail: Detail) -> Result<Input, Failure> {
    let Opened { name, kind, input, stream } = opened;
    let wrong = |error: &dyn Display| Failure::new(format!("{name}: {error}"));
    let samples = match kind {
        Kind::Glass if detail == Detail::Stacks && !stream => {
            Samples::Recording(Box::new(recording_file::read_merged(path)?))
        }
        Kind::Glass => {
            let read = match (detail, stream) {
                (Detail::Samples, false) => stackglass_files::read(path),
                (Detail::Samples, true) => stackglass_files::read_from(input),
                (Detail::Stacks, _) => stackglass_files::read_merged_from(input),
            };
            let (recording, completeness) = read.map_err(Failure::new)?;
            Samples::Recording(Box::new(recording_file::with_names(&name, recording, &completeness)))
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
            Samples::Recording(Box::new(recording))
        }
        Kind::PerfScript => {
            let recording = perf_script::read_from(input).map_err(|error| wrong(&error))?;
            Samples::Recording(Box::new(recording))
        }
    };
    Ok(Input { name, kind, samples })
}

/// As [`read`], for the complete report, which needs to know threads and tasks.
pub(crate) fn read_for_report(path: &Path) -> Result<Input, Failure> {
    told(read(path)?)
}

/// Samples that name no threads get one, which is said.
fn told(mut input: Input) -> Result<Input, Failure> {
    if let Samples::Words(data, _) = &mut input.samples
        && !data.is_empty()
        && !data.has_meta()
    {
        let faked = data.strip_meta().and_then(|bare| bare.add_fake_meta(1, 1));
        *data = faked.map_err(|error| Failure::new(format!("{}: {error}", input.name)))?;
        message::print(&format!("{}: its samples name no threads: shown as one", input.name));
    }
    Ok(input)
}
