//! Answers to questions about a profile, as data.

pub mod allocated_lines;
pub mod allocations;
pub(crate) mod call_site;
pub mod callers;
pub mod comparison;
pub(crate) mod cpu_tree;
pub(crate) mod cut_reasons;
pub(crate) mod function_pattern;
pub(crate) mod function_table;
pub mod hot;
pub(crate) mod hot_chains;
pub mod line_owners;
pub(crate) mod line_times;
pub(crate) mod picked;
pub mod selection;
pub(crate) mod stackless;
pub(crate) mod task_snapshot_errors;
pub(crate) mod unaccounted_cpu;
pub mod uncertainty;
pub(crate) mod waits;
pub(crate) mod weight;
