//! Reports as text.

pub mod allocations;
pub mod annotate;
pub(crate) mod callers;
pub(crate) mod comparison;
pub mod hot;
pub(crate) mod json_frame;
pub(crate) mod json_head;
pub mod peek;
pub(crate) mod print;
pub mod summary;
pub mod tasks;
