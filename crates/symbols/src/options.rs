//! What callers may ask for, and what they are told.

use std::path::{Path, PathBuf};

/// How to symbolize.
///
/// ```
/// let options = stackglass_symbols::Options { debug_folders: vec!["/srv/debug".into()], ..Default::default() };
/// assert!(options.threads.is_none());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Folders to search for separate debug files, before `/usr/lib/debug`. They are laid out
    /// like it: `.build-id/xx/yyy.debug`, or the path of the program.
    pub debug_folders: Vec<PathBuf>,
    /// Folder of the standard library's sources (`…/lib/rustlib/src/rust/library`), where
    /// `/rustc/HASH/library` leads. `None`: the installed toolchains are searched for the commit.
    pub library_sources: Option<PathBuf>,
    /// Threads to use; `None`: one for each available processor.
    pub threads: Option<usize>,
}

impl Options {
    pub(crate) fn debug_folders(&self) -> impl Iterator<Item = &Path> {
        self.debug_folders.iter().map(PathBuf::as_path).chain([Path::new("/usr/lib/debug")])
    }

    pub(crate) fn threads(&self) -> usize {
        self.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
    }
}

/// How far the work is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Parts that are done.
    pub done: usize,
    /// Parts there are. A part is a module or a unit of debug information.
    pub total: usize,
}

/// What symbolization came to.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Outcome {
    /// Locations that were looked at.
    pub locations: usize,
    /// Those of them that have a function's name now.
    pub named: usize,
    /// Those of them that have a source line now.
    pub with_line: usize,
    /// What went wrong, by file. The frames concerned have poorer names; nothing else is affected.
    pub problems: Vec<crate::Error>,
}
