//! Every format of files: what is written is what is read, also by others, and what others write is read.

mod folded;
mod glass;
mod heapsnapshot;
mod jlprof;
mod perf_script;
mod same_numbers;
#[path = "../support/mod.rs"]
mod support;
