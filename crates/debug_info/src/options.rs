//! Where files with debug information are searched, and with how many threads they are read.

use std::path::{Path, PathBuf};

/// How debug information is found and read.
///
/// ```
/// let options = stackglass_debug_info::Options { debug_folders: vec!["/srv/debug".into()], ..Default::default() };
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
    /// The folders that are searched, in this order.
    pub fn debug_folders(&self) -> impl Iterator<Item = &Path> {
        self.debug_folders.iter().map(PathBuf::as_path).chain([Path::new("/usr/lib/debug")])
    }

    /// The number of threads.
    pub fn threads(&self) -> usize {
        self.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
    }
}
