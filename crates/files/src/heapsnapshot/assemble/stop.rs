//! Why writing a snapshot ends early.

use crate::fault::Fault;
use crate::heapsnapshot::error::HeapSnapshotError;
use std::path::Path;

/// Why a reading with output ends early.
pub(super) enum Stop {
    Read(Fault),
    Written(HeapSnapshotError),
}

impl Stop {
    /// The error, where a fault is one of this file.
    pub(super) fn in_file(self, path: &Path) -> HeapSnapshotError {
        match self {
            Self::Read(fault) => fault.in_file(path),
            Self::Written(error) => error,
        }
    }
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Read(fault)
    }
}

impl From<HeapSnapshotError> for Stop {
    fn from(error: HeapSnapshotError) -> Self {
        Self::Written(error)
    }
}
