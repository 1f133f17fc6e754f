//! Heap snapshots on disk.

mod parts;
#[path = "../support/heapsnapshot.rs"]
mod structure;
