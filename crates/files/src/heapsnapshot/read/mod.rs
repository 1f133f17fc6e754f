//! Reads heap snapshots of any origin.

mod continued;
pub(super) mod from_parts;
mod groups;
pub(super) mod single;
