//! A recording as it grows: what is the same for a program that we start, a process that is already running, and the
//! crate inside a program.

#[cfg(feature = "launch")]
pub(crate) mod children;
pub(crate) mod grants;
#[cfg(feature = "launch")]
pub(crate) mod machine;
#[cfg(feature = "launch")]
pub mod observer;
pub mod process_image;
#[cfg(feature = "launch")]
pub(crate) mod process_titles;
#[cfg(feature = "launch")]
pub mod progress;
#[cfg(feature = "launch")]
pub(crate) mod recording_file;
#[cfg(feature = "launch")]
pub(crate) mod recording_loop;
pub(crate) mod stream_drain;
pub mod waits;

#[cfg(feature = "launch")]
pub use observer::{Observer, Saved};
pub use process_image::ProcessImage;
#[cfg(feature = "launch")]
pub use progress::Progress;
pub(crate) use stream_drain::StreamDrain;
