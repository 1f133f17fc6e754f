//! Trees of calls: equal samples are counted once, then the trie of their stacks becomes a tree of frames.

pub(crate) mod aggregated_samples;
pub mod call_tree;
pub(crate) mod siblings;
pub(crate) mod tree;
