//! When a snapshot of a program that we start is taken, and who makes its file.

use stackglass_attach::frozen::FrozenProcess;
use stackglass_profile::ReachedBlocks;
use std::path::{Path, PathBuf};

/// When a snapshot is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HeapAt {
    /// When the program ends by `exit` or by returning from `main`.
    Exit,
    /// When live bytes reach a new maximum; the last snapshot is kept.
    Peak,
    /// When Stackglass receives this signal, which the program then does not get.
    Signal(i32),
}

/// What a snapshot contains.
#[derive(Clone, Debug)]
pub struct SnapshotSummary {
    /// Bytes of all live blocks.
    pub bytes: u64,
    /// Which blocks something holds, by stack.
    pub reached: Vec<ReachedBlocks>,
    /// Numbers for the user, in one line.
    pub text: String,
}

/// Makes a snapshot of a frozen process, or says why there is none.
pub type SaveSnapshot = fn(FrozenProcess, &Path) -> Result<SnapshotSummary, String>;

/// Snapshots during a recording.
#[derive(Clone, Debug)]
pub struct HeapAtOptions {
    /// When.
    pub at: HeapAt,
    /// A file for the last snapshot, which replaces an older one. `None`: snapshots are kept inside the recording.
    pub output: Option<PathBuf>,
    /// Makes the file of a snapshot.
    pub save: SaveSnapshot,
}
