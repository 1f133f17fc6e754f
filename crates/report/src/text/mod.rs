//! The parts of all reports: columns, numbers, short names, colours and links.

pub mod columns;
pub mod json;
mod layout_setter;
pub mod links;
pub mod numbers;
pub(crate) mod short;
pub mod style;
pub mod type_name;
