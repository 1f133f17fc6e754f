//! How a launcher, its guests and other commands find each other: the session folder, the requests in it, and signals.

pub mod bus_guard;
#[cfg(feature = "launch")]
pub mod clearing;
#[cfg(feature = "launch")]
pub mod folder;
#[cfg(feature = "launch")]
mod signal_watch;
#[cfg(feature = "launch")]
pub mod signals;

#[cfg(feature = "launch")]
pub use folder::{OtherSession, Session};
