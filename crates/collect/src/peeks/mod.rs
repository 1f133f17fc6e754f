//! Peeks: a report of a running process, without a recording.
//!
//! `stackglass peek PID` writes a [request] file with its options and sends a signal. Whichever process answers reads
//! the request and appends the answer to the file ([`responder`]).

pub mod activity;
pub mod handler;
#[cfg(feature = "launch")]
mod part;
pub mod request;
pub mod responder;
#[path = "system_calls_x86_64.rs"]
mod system_calls;

#[cfg(feature = "launch")]
pub use part::PeekPart;
