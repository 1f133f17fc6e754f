//! A recording as it grows: what is the same for a program that we start, a process that is already running, and the
//! crate inside a program.

#[cfg(feature = "launch")]
pub(crate) mod begin;
#[cfg(feature = "launch")]
pub(crate) mod children;
pub mod event_translator;
pub(crate) mod grants;
#[cfg(feature = "launch")]
pub mod observer;
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

pub use event_translator::EventTranslator;
#[cfg(feature = "launch")]
pub use observer::{Observer, Saved};
#[cfg(feature = "launch")]
pub use progress::Progress;
pub(crate) use stream_drain::StreamDrain;
