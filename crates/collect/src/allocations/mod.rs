//! Allocations: from the tables that a program shares ([`stackglass_wire::heap`]) to the groups of a recording.
//!
//! [`drain`] finds the tables of all processes of a session, follows their live bytes over time, and reads each when its process
//! has ended, by [`stackglass_inspect::allocation_groups`]. `slices` reads counters meanwhile, for allocations by time. [`on_request`] records for a while in a program that was started with
//! `stackglass run`, [`unprepared`] in any other, if that is allowed.

pub mod drain;
pub(crate) mod functions;
pub mod live;
pub mod on_request;
mod settings;
mod slices;
pub(crate) mod table_file;
pub mod unprepared;

pub use settings::AllocationSettings;
