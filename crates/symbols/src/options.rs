//! Options and results of symbolization.

use std::path::{Path, PathBuf};

/// Options of [`symbolize`](crate::symbolize()).
///
/// ```
/// let options = stackglass_symbols::Options { debug_folders: vec!["/srv/debug".into()], ..Default::default() };
/// assert!(options.threads.is_none());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Folders with separate debug files, searched before `/usr/lib/debug` and with the same layout:
    /// `.build-id/xx/yyy.debug`, or the path of the program.
    pub debug_folders: Vec<PathBuf>,
    /// Servers that are asked for missing debug files. `None`: no server is contacted.
    pub debuginfod: Option<crate::Debuginfod>,
    /// Folder of the standard library's sources (`…/lib/rustlib/src/rust/library`), which replaces
    /// `/rustc/HASH/library`. `None`: the installed toolchains are searched for the commit.
    pub library_sources: Option<PathBuf>,
    /// Number of threads; `None`: one for each available CPU.
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

/// Progress of symbolization.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Finished parts.
    pub done: usize,
    /// All parts. A part is a module or a unit of debug information.
    pub total: usize,
}

/// Result of symbolization.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Outcome {
    /// Locations processed.
    pub locations: usize,
    /// Locations with a function name.
    pub named: usize,
    /// Locations with a source line.
    pub with_line: usize,
    /// One line on what debuginfod servers sent, and which of them failed; `None` if there is nothing to say.
    pub debuginfod: Option<String>,
    /// Errors, by file. They affect only names and lines of the frames in that file.
    pub problems: Vec<crate::Error>,
}
