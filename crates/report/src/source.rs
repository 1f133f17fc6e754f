//! The source of a report: a recording, or a word buffer with its dictionary.

use crate::file_pattern::FilePattern;
use crate::state_filter::StateFilter;
use foldhash::HashSet;
use stackglass_profile::{Data, Dictionary, Frame, Recording, ShortPath};
use std::sync::Arc;

/// The source of a report.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// A symbolized recording.
    Recording(&'a Recording),
    /// A buffer in Julia's layout, with the names of its addresses.
    Data(&'a Data, &'a Dictionary),
}

impl<'a> Source<'a> {
    /// How a source path is shown, if it has a short form.
    pub fn short_path(&self, file: &str) -> Option<&'a ShortPath> {
        match self {
            Source::Recording(recording) => recording.symbols.short_path(file),
            Source::Data(_, dictionary) => dictionary.short_path(file),
        }
    }

    /// What is counted in these states: CPU time, or in a profile by wall time the wall time of tasks.
    pub fn noun(&self, states: StateFilter) -> &'static str {
        match self {
            Source::Recording(recording) if recording.is_walltime() => "wall time of tasks",
            _ => states.noun(),
        }
    }

    /// All frames with an entry. Some may appear more than once.
    pub fn frames(&self) -> Vec<&'a Frame> {
        match self {
            Source::Recording(recording) => recording.symbols.frames().iter().collect(),
            Source::Data(_, dictionary) => {
                let addresses = dictionary.addresses().into_iter();
                addresses.flat_map(|address| dictionary.get(address).unwrap_or(&[])).collect()
            }
        }
    }

    /// The recorded paths of source files that match a pattern.
    pub fn files(&self, pattern: &FilePattern) -> HashSet<Arc<str>> {
        let mut judged: HashSet<&Arc<str>> = HashSet::default();
        let files = self.frames().into_iter().map(|frame| &frame.file).filter(|file| judged.insert(file));
        files.filter(|file| pattern.matches(file, self.short_path(file))).cloned().collect()
    }
}

impl<'a> From<&'a Recording> for Source<'a> {
    fn from(recording: &'a Recording) -> Source<'a> {
        Source::Recording(recording)
    }
}

impl<'a> From<(&'a Data, &'a Dictionary)> for Source<'a> {
    fn from((data, dictionary): (&'a Data, &'a Dictionary)) -> Source<'a> {
        Source::Data(data, dictionary)
    }
}
