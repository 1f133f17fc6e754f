//! Takes heap snapshots.
//!
//! A process is frozen ([`stackglass_attach::frozen`]) and becomes a [`CoreImage`](stackglass_process_view::core_image::CoreImage). Its
//! blocks come from the table of the allocation recorder (`recorded`), if it has one, else from its C library's allocator.
//! [`stackglass_heapgraph`] makes the graph, and [`stackglass_files::heapsnapshot`] writes it.

mod error;
mod graph;
mod in_allocator;
mod interpreters;
mod memory;
mod options;
pub mod output;
pub mod own;
mod recorded;
mod take;

pub use error::HeapError;
pub use graph::{MOST_FRAMES, SiteFrames, Written, write as write_graph};
pub use options::TakeOptions;
pub use take::{Taken, save, take, take_graph};
