//! Why there are no await stacks, and whether all of them were read.

use stackglass_attach::frozen::{FreezeError, FrozenProcess};

/// Why there are no await stacks.
#[derive(Debug, thiserror::Error)]
pub enum TasksError {
    /// The process cannot be frozen.
    #[error(transparent)]
    Freeze(#[from] FreezeError),
    /// It ended meanwhile.
    #[error("process {0} has ended while its tasks were read")]
    Ended(u32),
    /// Its copy ended meanwhile.
    #[error("the copy of process {0} ended while it was read (`tasks --stop` needs no copy)")]
    CopyEnded(u32),
}

/// Whether all was read: the memory still exists.
pub(super) fn check_complete(process: &FrozenProcess, pid: u32) -> Result<(), TasksError> {
    match (process.is_alive(), stackglass_procfs::process::is_alive(pid)) {
        (true, _) => Ok(()),
        (false, true) => Err(process.refused_stops().map_or(TasksError::CopyEnded(pid), TasksError::Freeze)),
        (false, false) => Err(TasksError::Ended(pid)),
    }
}
