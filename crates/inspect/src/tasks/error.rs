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
    /// Its copy ended meanwhile, or a thread of it ran that cannot be stopped unseen.
    #[error(
        "process {0} did not stand still while it was read: its copy ended, or a thread that waits with a set of signals of its own went \
         on (`tasks --stop` stops all threads)"
    )]
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
