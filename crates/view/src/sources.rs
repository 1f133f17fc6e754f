//! Source files as the page reads them: which frame is in which file, which line owns the time of a stack, and texts.
//!
//! Paths come with the recording, which may be somebody else's, and what they name becomes part of the page. So only files are read
//! whose names are those of source files: no path in a recording brings a key or a password into a page.

use crate::columns::Columns;
use crate::frames::Frames;
use crate::nodes::Nodes;
use foldhash::HashMap;
use serde::Serialize;
use stackglass_profile::frame::file_name;
use stackglass_profile::{Frame, Recording, StackId, sanitize};
use stackglass_report::annotate::{SourceFile, hottest_files};
use stackglass_report::{LineOwners, has_line};
use std::fmt;
use std::sync::Arc;

/// Most bytes of texts in a page. The hottest files come first.
const MOST: usize = 4 << 20;

/// Names of source files end in one of these.
const ENDINGS: &[&str] = &[
    "rs", "c", "h", "cc", "cp", "cpp", "cxx", "c++", "hh", "hp", "hpp", "hxx", "h++", "inc", "inl", "ipp",
    "tcc", "tpp", "y", "l", "s", "S", "asm", "go", "zig", "swift", "d", "m", "mm", "f", "F", "f90", "F90",
    "f95", "for", "pas", "adb", "ads", "nim", "cr", "hs", "ml", "jl", "v", "odin", "cu", "cuh", "cl", "java",
    "kt", "scala", "cs", "pyx", "vala", "lalrpop", "rl", "def",
];

/// Where the texts of source files come from.
#[derive(Clone, Copy)]
pub struct Sources<'a> {
    /// The text of a file that the recording names.
    pub read: &'a dyn Fn(&Recording, &str) -> SourceFile,
}

impl fmt::Debug for Sources<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sources").finish_non_exhaustive()
    }
}

/// What is known of source files before any is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct SourcesHead {
    /// Files of lines in the recording.
    files: usize,
    /// Those whose text is in the page.
    texts: usize,
    /// Whether texts were asked for.
    asked: bool,
}

impl SourcesHead {
    /// How many texts are in the page.
    pub(crate) fn texts(&self) -> usize {
        self.texts
    }
}

/// A file, as the page has it.
#[derive(Clone, Debug, Default, Serialize)]
struct Row {
    /// The path in the recording, by which `stackglass annotate --file` knows it.
    path: String,
    /// The path as reports show it.
    name: String,
    /// That it is newer than the recording, or why it cannot be read.
    remark: String,
    /// First byte and size of its text; `None` if it is not in the page.
    text: Option<(usize, usize)>,
    /// There was no more room for it.
    left: bool,
}

/// Files by number.
#[derive(Debug, Default)]
pub(crate) struct Files {
    files: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u32>,
}

impl Files {
    /// The number of a file, from 0.
    pub(crate) fn number(&mut self, file: &Arc<str>) -> u32 {
        let (files, numbers) = (&mut self.files, &mut self.numbers);
        *numbers.entry(file.clone()).or_insert_with(|| {
            files.push(file.clone());
            files.len() as u32 - 1
        })
    }
}

/// Adds which frame is in which file (from 1; 0: in none), and whose line owns the time of each node.
pub(crate) fn write_lines(
    recording: &Recording,
    frames: &Frames,
    nodes: &Nodes,
    columns: &mut Columns,
) -> Files {
    let mut files = Files::default();
    let numbers: Vec<u64> = frames
        .all()
        .iter()
        .map(|frame| if has_line(frame) { u64::from(files.number(&frame.file)) + 1 } else { 0 })
        .collect();
    columns.push("frames.source", numbers);
    columns.push("nodes.own", owners(recording, frames, nodes));
    files
}

/// For each node how many levels above it the frame is whose line owns the time that is spent in it, plus 1; 0 if there is none.
fn owners(recording: &Recording, frames: &Frames, nodes: &Nodes) -> Vec<u64> {
    let owners = LineOwners::new(recording);
    let parents = nodes.parents();
    let mut levels = vec![0; nodes.count()];
    for id in 1..=recording.stacks.nodes().len() as u32 {
        let node = nodes.of_stack(StackId(id));
        if node == 0 || levels[node as usize] > 0 {
            continue;
        }
        let Some((file, line)) = owners.of(StackId(id)) else { continue };
        let is = |frame: &Frame| frame.line == line && frame.file == file;
        let (mut at, mut level) = (node, 1);
        while at != 0 {
            if nodes.frame(at).is_some_and(|frame| is(frames.get(frame))) {
                levels[node as usize] = level;
                break;
            }
            (at, level) = (parents[at as usize], level + 1);
        }
    }
    levels
}

/// Adds the files, and their texts as far as they are asked for.
pub(crate) fn write_files(
    recording: &Recording,
    files: Files,
    sources: Option<&Sources<'_>>,
    columns: &mut Columns,
) -> SourcesHead {
    let mut rows: Vec<Row> = files.files.iter().map(|file| row(recording, file)).collect();
    let mut text = String::new();
    if let Some(sources) = sources {
        let hottest = hottest_files(recording);
        let mut order: Vec<usize> =
            hottest.iter().filter_map(|file| Some(*files.numbers.get(file)? as usize)).collect();
        let mut is_ordered = vec![false; rows.len()];
        order.iter().for_each(|number| is_ordered[*number] = true);
        order.extend((0..rows.len()).filter(|number| !is_ordered[*number]));
        for number in order {
            let file = &files.files[number];
            add_text(&mut rows[number], file, &mut text, || (sources.read)(recording, file));
        }
    }
    let head = SourcesHead {
        files: rows.len(),
        texts: rows.iter().filter(|row| row.text.is_some()).count(),
        asked: sources.is_some(),
    };
    columns.push_text("sources", &serde_json::to_string(&rows).expect("it is JSON"));
    columns.push_text("sources.text", &text);
    head
}

fn row(recording: &Recording, file: &str) -> Row {
    let name = match recording.symbols.short_path(file) {
        Some(short) if !short.prefix.is_empty() => format!("{}/{}", short.prefix, short.rest),
        _ => file.to_owned(),
    };
    Row { path: sanitize(file).into_owned(), name: sanitize(&name).into_owned(), ..Row::default() }
}

fn add_text(row: &mut Row, path: &str, all: &mut String, read: impl FnOnce() -> SourceFile) {
    if !is_source(path) {
        return;
    }
    if all.len() >= MOST {
        row.left = true;
        return;
    }
    let file = read();
    row.remark = sanitize(&file.remark.unwrap_or_default()).into_owned();
    let Some(text) = file.text.filter(|text| !text.contains('\0')) else { return };
    if all.len() + text.len() > MOST {
        row.left = true;
        return;
    }
    let begin = all.len();
    for line in text.lines() {
        all.push_str(&sanitize(&line.replace('\t', "    ")));
        all.push('\n');
    }
    row.text = Some((begin, all.len() - begin));
}

/// Whether a path is that of a source file: by its ending, or that of a header of C++ without one.
fn is_source(path: &str) -> bool {
    match file_name(path).rsplit_once('.') {
        Some((name, ending)) => !name.is_empty() && ENDINGS.contains(&ending),
        None => path.contains("/include/"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_source_files_are_read() {
        for path in ["/home/me/app/src/main.rs", "a.c", "/x/y.H.hpp", "/usr/include/c++/12/vector", "sort.S"]
        {
            assert!(is_source(path), "{path}");
        }
        for path in [
            "/home/me/.ssh/id_rsa",
            "/etc/passwd",
            "/home/me/.env",
            "/srv/keys.pem",
            "/x/.rs",
            "/home/me/.netrc",
            "",
        ] {
            assert!(!is_source(path), "{path}");
        }
    }
}
