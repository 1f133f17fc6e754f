//! How a launcher, its guests and other commands find each other: the session folder, the requests in it, and signals.

pub mod bus_guard;
pub mod clearing;
pub mod folder;
pub mod signals;

pub use folder::{OtherSession, Session};
