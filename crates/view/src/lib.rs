//! A recording as one page: its threads on a time axis, and below them what the selected range and threads did.
//!
//! [`Packed`] turns a recording into columns of numbers ([`columns`]), which the page in `page/` counts again for each selection.
//! [`Page`] writes the file: one HTML document that opens from disk and makes no request.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod allocations;
mod assembly;
pub mod columns;
mod compared;
mod first;
mod frames;
pub mod heap;
mod lanes;
mod nodes;
pub mod packed;
pub mod page;
mod samples;
pub mod server;
mod sources;
mod task_dump;
mod tasks;

pub use heap::Heap;
pub use packed::{Beside, Facts, Packed, Tasks};
pub use page::Page;
pub use server::{ServeError, Server};
pub use sources::Sources;
pub use task_dump::TaskDump;
