//! A recording as it grows: what is the same for a program that we start, a process that is already running, and the
//! crate inside a program.

mod address_space;
#[cfg(feature = "launch")]
pub(crate) mod machine;
#[cfg(feature = "launch")]
pub mod observer;
pub mod process_image;
pub mod recorder;
#[cfg(feature = "launch")]
pub(crate) mod recording_file;

#[cfg(feature = "launch")]
pub use observer::{Observer, Progress, Saved};
pub use process_image::ProcessImage;
pub use recorder::Recorder;
