//! Allocations: from the tables that a program shares ([`stackglass_wire::heap`]) to the groups of a recording.
//!
//! [`groups`] reads the tables of one process. [`drain`] finds the tables of all processes of a session, follows their live bytes
//! over time, and reads each once, when its process has ended.
//! [`on_request`] records for a while in a program that was started with `stackglass run`.

#[cfg(feature = "launch")]
pub mod drain;
pub mod groups;
#[cfg(feature = "launch")]
pub mod live;
#[cfg(feature = "launch")]
pub mod on_request;
mod settings;
#[cfg(feature = "launch")]
pub(crate) mod table_file;

pub use settings::AllocationSettings;
