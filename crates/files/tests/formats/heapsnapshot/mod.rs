//! Heap snapshots on disk.

mod others;
mod parts;
mod recordings;
mod round_trip;
#[path = "../../support/heapsnapshot.rs"]
mod structure;
