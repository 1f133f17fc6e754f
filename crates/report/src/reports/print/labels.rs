//! Names of frames, files, threads and tasks in a report.

use crate::quirks::Quirks;
use crate::text::style::Paint;
use crate::{Links, Source};
use foldhash::HashMap;
use stackglass_profile::{Frame, ShortPath, sanitize};
use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;

/// The names of one source.
pub(super) struct Labels<'a> {
    source: Source<'a>,
    quirks: Quirks,
    links: Option<Links>,
    /// Colours of prefixes, assigned in the order in which they are met.
    paints: RefCell<HashMap<Arc<str>, Paint>>,
    /// Cache of file names.
    files: RefCell<HashMap<Box<str>, ShortPath>>,
    /// Names of a recording's tasks.
    tasks: HashMap<u64, &'a str>,
}

impl<'a> Labels<'a> {
    pub(super) fn new(source: Source<'a>, quirks: Quirks, links: Option<Links>) -> Labels<'a> {
        let tasks = match source {
            Source::Recording(recording) => {
                recording.tasks.iter().map(|task| (task.id.0, &*task.name)).collect()
            }
            Source::Data(..) => HashMap::default(),
        };
        Labels { source, quirks, links, paints: RefCell::default(), files: RefCell::default(), tasks }
    }

    /// The link of a frame.
    pub(super) fn link(&self, frame: &Frame) -> Option<String> {
        self.links.as_ref()?.target(&frame.file, frame.line)
    }

    /// The colour of a prefix: grey for the standard library, one of four in turn for the others.
    pub(super) fn paint(&self, prefix: &Arc<str>) -> Paint {
        if matches!(&**prefix, "@std" | "@core" | "@alloc" | "@Base" | "@Core") {
            return Paint::Grey;
        }
        let mut paints = self.paints.borrow_mut();
        if let Some(known) = paints.get(prefix) {
            return *known;
        }
        let next = [Paint::Magenta, Paint::Cyan, Paint::Green, Paint::Yellow][paints.len() % 4];
        paints.insert(prefix.clone(), next);
        next
    }

    /// A name as it is printed.
    pub(super) fn text<'t>(&self, name: &'t str) -> Cow<'t, str> {
        if self.quirks.raw_names { Cow::Borrowed(name) } else { sanitize(name) }
    }

    /// The function's full form if it is known and from Rust, otherwise its path.
    pub(super) fn function<'f>(&self, frame: &'f Frame) -> Cow<'f, str> {
        match &frame.spec {
            Some(spec) if !frame.foreign => self.text(spec),
            _ => self.text(&frame.func),
        }
    }

    /// Prefix and rest of a file's name.
    pub(super) fn file(&self, file: &str) -> ShortPath {
        if let Some(known) = self.files.borrow().get(file) {
            return known.clone();
        }
        let short = self.short(file);
        self.files.borrow_mut().insert(file.into(), short.clone());
        short
    }

    fn short(&self, file: &str) -> ShortPath {
        let known = match self.source {
            Source::Recording(recording) => recording.symbols.short_path(file),
            Source::Data(_, dictionary) => dictionary.short_path(file),
        };
        let short = known.cloned().unwrap_or_else(|| ShortPath {
            prefix: Arc::from(""),
            rest: if file.starts_with('/') { Arc::from(file) } else { Arc::from(self.normal(file)) },
        });
        match (self.text(&short.prefix), self.text(&short.rest)) {
            (Cow::Borrowed(_), Cow::Borrowed(_)) => short,
            (prefix, rest) => ShortPath { prefix: Arc::from(prefix), rest: Arc::from(rest) },
        }
    }

    /// A relative path without `.` and, where possible, `..`.
    fn normal(&self, file: &str) -> String {
        if file.is_empty() && !self.quirks.empty_file_is_dot {
            return "[unknown file]".to_owned();
        }
        let mut parts: Vec<&str> = Vec::new();
        for part in file.split('/') {
            match part {
                "" | "." => {}
                ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
                _ => parts.push(part),
            }
        }
        if parts.is_empty() { ".".to_owned() } else { parts.join("/") }
    }

    /// A task's name in parentheses, or nothing.
    pub(super) fn task(&self, task: u64) -> String {
        let name = match self.source {
            Source::Recording(_) => self.tasks.get(&task).copied(),
            Source::Data(_, dictionary) => dictionary.task_name(task),
        };
        name.filter(|name| !name.is_empty()).map_or(String::new(), |name| format!(" ({})", self.text(name)))
    }

    /// A thread's label.
    pub(super) fn thread(&self, thread: u64) -> Cow<'a, str> {
        match self.source {
            Source::Recording(recording) => {
                let number = u32::try_from(thread).unwrap_or(0);
                Cow::Owned(
                    self.text(&recording.thread_label(stackglass_profile::ThreadNumber(number))).into_owned(),
                )
            }
            Source::Data(_, dictionary) => self.text(dictionary.thread_label(thread)),
        }
    }
}
