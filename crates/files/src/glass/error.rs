//! What can go wrong when a recording is written or read, and what to do about it.

use std::io;
use std::path::PathBuf;

/// A recording could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// Something else lies under that name.
    #[error("{} exists and is not a recording: it is left alone; remove it or name another file", path.display())]
    NotOurs {
        /// The name.
        path: PathBuf,
    },
    /// The file could not be made.
    #[error("cannot create {}: {source}; name a file in a folder that can be written to", path.display())]
    Create {
        /// The name.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file could not be lengthened.
    #[error("cannot write to {}: {source}{}{}", path.display(), what_stays(*kept), remedy(source))]
    Write {
        /// The name.
        path: PathBuf,
        /// Why.
        source: io::Error,
        /// Size of the file now.
        kept: u64,
    },
    /// The recording is not the one that was appended before, grown, or contradicts itself.
    #[error("the recording for {} is not the one written so far, grown: {what}", path.display())]
    Inconsistent {
        /// The name.
        path: PathBuf,
        /// What shows it.
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

/// A recording could not be read at all. (What can be read of a cut or damaged one is read.)
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// It cannot be opened.
    #[error("cannot open {name}: {source}")]
    Open {
        /// The file.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// The system failed to read.
    #[error("cannot read {name} at byte {at}: {source}")]
    Read {
        /// The file.
        name: String,
        /// Where the chunk begins that could not be read.
        at: u64,
        /// Why.
        source: io::Error,
    },
    /// Nothing in it.
    #[error("{name} is empty")]
    Empty {
        /// The file.
        name: String,
    },
    /// The first bytes are not those of a recording.
    #[error("{name} is not a recording: at byte 0 it says \"{}\"", found.escape_ascii())]
    NotGlass {
        /// The file.
        name: String,
        /// Its first bytes, at most eight.
        found: Vec<u8>,
    },
    /// Written by a later (or earlier) program.
    #[error(
        "{name} has version {found} (at byte 8), this program reads version {ours}: use the program that wrote it"
    )]
    Version {
        /// The file.
        name: String,
        /// Version it says.
        found: u32,
        /// The one we read.
        ours: u32,
    },
}
