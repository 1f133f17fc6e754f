//! Takes heap snapshots.
//!
//! A process is frozen ([`stackglass_attach::frozen`]) and becomes an [`Image`](stackglass_process_view::image::Image). Its blocks
//! come from the table of the allocation recorder (`recorded`), if it has one, else from its C library's allocator.
//! [`stackglass_heapgraph`] makes the graph, and [`stackglass_files::heapsnapshot`] writes it.

mod graph;
mod interpreters;
mod memory;
pub mod output;
pub mod own;
mod recorded;
mod take;

pub use graph::{MOST_FRAMES, SiteFrames};
pub use take::{TakeOptions, Taken, save, take};

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
    /// Its copy ended meanwhile.
    #[error("the copy of process {0} ended while it was read (`heap take --stop` needs no copy)")]
    CopyEnded(u32),
    /// The result cannot be written.
    #[error(transparent)]
    Output(#[from] HeapSnapshotError),
}
