//! What is known of a process that does not run: its memory, modules, threads, frames and variables.
//!
//! A [`CoreImage`](core_image::CoreImage) is the memory and the registers of a frozen copy, of a process that is stopped, or of the own
//! process. A [`ProcessView`] knows its modules, and finds the rest from there. Graphs of heaps and await stacks are read from it.
//!
//! Everything that comes from the process is hostile input: addresses and counts are checked before they are used.
#![forbid(unsafe_code)]

pub mod core_image;
mod landing_pads;
pub mod locals;
mod module_files;
pub mod modules;
pub mod pages;
pub mod stacks;
pub mod threads;
mod view;

pub use landing_pads::LandingPads;
pub use stackglass_unwind::{CallSites, LandingPad};
pub use view::{ProcessView, Threads};
