//! Takes heap snapshots.
//!
//! A process is frozen ([`stackglass_attach::frozen`]) and becomes an [`Image`](stackglass_heapgraph::image::Image). Its blocks come from the table of the allocation
//! recorder ([`recorded`]), if it has one, else from its C library's allocator. [`stackglass_heapgraph`] makes the graph.

pub mod image;
mod recorded;
mod take;

pub use take::{HeapError, SiteName, Taken, snapshot};
