//! What all reports are written with: columns, numbers, short names, colours and links.

pub mod columns;
pub mod links;
pub mod numbers;
pub(crate) mod short;
pub mod style;
