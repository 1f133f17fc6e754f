//! Why there are no await stacks.

use stackglass_attach::frozen::FreezeError;

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
