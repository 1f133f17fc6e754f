//! Errors of writing and reading recordings, and what helps.

use std::io;
use std::path::PathBuf;

/// Why a recording could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The path is that of another kind of file.
    #[error("{} exists and is not a recording: remove it or name another file", path.display())]
    NotOurs {
        /// Path of the file.
        path: PathBuf,
    },
    /// The file could not be created.
    #[error("cannot create {}: {source}; name a file in a writable folder", path.display())]
    Create {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file could not be extended.
    #[error("cannot write to {}: {source}{}{}", path.display(), what_stays(*kept), remedy(source))]
    Write {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
        /// Current size of the file.
        kept: u64,
    },
    /// The recording does not continue the one written so far, or contradicts itself.
    #[error("the recording for {} does not continue the one written so far: {what}", path.display())]
    Inconsistent {
        /// Path of the file.
        path: PathBuf,
        /// The contradiction.
        what: &'static str,
    },
}

fn what_stays(kept: u64) -> String {
    match kept {
        0 => String::new(),
        bytes => format!("; its first {bytes} bytes are kept and stay readable"),
    }
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull => "; free some space, or name a file on another disk",
        io::ErrorKind::QuotaExceeded => "; free some of your disk quota, or name a file on another disk",
        io::ErrorKind::FileTooLarge => {
            "; raise the limit (ulimit -f), or record less (a larger delay, a bound on words)"
        }
        _ => "",
    }
}

/// Why a recording could not be read at all. Truncated and damaged recordings are read as far as possible.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file could not be opened.
    #[error("cannot open {name}: {source}")]
    Open {
        /// Name of the file.
        name: String,
        /// The system's error.
        source: io::Error,
    },
    /// The system failed to read.
    #[error("cannot read {name} at byte {at}: {source}")]
    Read {
        /// Name of the file.
        name: String,
        /// Offset of the chunk that could not be read.
        at: u64,
        /// The system's error.
        source: io::Error,
    },
    /// The file is empty.
    #[error("{name} is empty")]
    Empty {
        /// Name of the file.
        name: String,
    },
    /// The first bytes are not those of a recording.
    #[error("{name} is not a recording: at byte 0 it says \"{}\"", found.escape_ascii())]
    NotGlass {
        /// Name of the file.
        name: String,
        /// Its first bytes, at most eight.
        found: Vec<u8>,
    },
    /// The file has another version.
    #[error(
        "{name} has version {found} (at byte 8), this program reads version {ours}: use the program that wrote it"
    )]
    Version {
        /// Name of the file.
        name: String,
        /// Version of the file.
        found: u32,
        /// Version that this program reads.
        ours: u32,
    },
}
