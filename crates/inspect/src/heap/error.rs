//! Why there is no heap snapshot.

use stackglass_attach::frozen::FreezeError;
use stackglass_files::heapsnapshot::HeapSnapshotError;
use stackglass_heapgraph::blocks::glibc::NoGlibcHeap;

/// Why there is no heap snapshot.
#[derive(Debug, thiserror::Error)]
pub enum HeapError {
    /// The process cannot be frozen.
    #[error(transparent)]
    Freeze(#[from] FreezeError),
    /// Its blocks are not known.
    #[error(transparent)]
    NoBlocks(#[from] NoGlibcHeap),
    /// It ended meanwhile.
    #[error("process {0} has ended while its heap was read")]
    Ended(u32),
    /// Its copy ended meanwhile, or a thread of it ran that cannot be stopped unseen.
    #[error(
        "process {0} did not stand still while it was read: its copy ended, or a thread that waits with a set of signals of its own went \
         on (`heap take --stop` stops all threads)"
    )]
    CopyEnded(u32),
    /// The result cannot be written.
    #[error(transparent)]
    Output(#[from] HeapSnapshotError),
}

/// A sink in memory never fails.
impl From<std::convert::Infallible> for HeapError {
    fn from(never: std::convert::Infallible) -> HeapError {
        match never {}
    }
}
