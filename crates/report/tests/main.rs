//! Reports of recordings with known content. One binary, so that the tests compile soon.
mod goldens;
mod made_up;

mod allocations;
mod annotate_bytes;
mod call_tree;
mod deep;
mod hot;
mod json;
mod peek;
mod properties;
mod report;
mod report_paths;
mod sanitize;
mod summary;
mod summary_answers;
mod summary_names;
mod tasks;
mod waits;
