//! Answers to questions about a profile, as data.

pub mod callers;
pub mod comparison;
pub mod file_pattern;
pub(crate) mod function_pattern;
pub(crate) mod line_times;
pub mod uncertainty;
