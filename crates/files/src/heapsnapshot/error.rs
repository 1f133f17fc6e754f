//! Why a heap snapshot cannot be written or read.

use crate::fault::Fault;
use std::io;
use std::path::{Path, PathBuf};

/// Why a heap snapshot cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HeapSnapshotError {
    /// The system refused an operation.
    #[error("cannot {doing} {}: {source}", path.display())]
    System {
        /// The operation.
        doing: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The contents are wrong at one place.
    #[error("{} is damaged at byte {offset}: {what}", path.display())]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// Offset in the file.
        offset: u64,
        /// What is wrong.
        what: String,
    },
    /// The contents are wrong as a whole, or no heap snapshot.
    #[error("{}: {what}", path.display())]
    Invalid {
        /// Path of the file.
        path: PathBuf,
        /// What is wrong, and what helps.
        what: String,
    },
}

impl HeapSnapshotError {
    pub(super) fn system(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { doing, path: path.to_owned(), source }
    }

    pub(super) fn invalid(path: &Path, what: impl Into<String>) -> Self {
        Self::Invalid { path: path.to_owned(), what: what.into() }
    }
}

impl Fault {
    /// The error of a file.
    pub(super) fn in_file(self, path: &Path) -> HeapSnapshotError {
        let path = path.to_owned();
        match self {
            Self::System(source) => HeapSnapshotError::System { doing: "read", path, source },
            Self::At { offset, what } => HeapSnapshotError::Damaged { path, offset, what },
            Self::Whole(what) => HeapSnapshotError::Invalid { path, what },
        }
    }
}
