//! What a snapshot can hold, since readers keep 32 bits.

/// The highest number of nodes: readers keep seven times the number of a node in 32 bits.
pub const MOST_NODES: u32 = u32::MAX / 7;

/// Name of the edges from a block of 4 GiB or more to the nodes that carry the rest of its size. Numbers of more than 32
/// bits wrap in viewers.
pub const CONTINUED: &str = "(continued)";

/// The largest size of a node. Readers keep 32 bits.
pub(super) const LARGEST: u64 = u32::MAX as u64;

/// Larger sums of sizes are not those of a process.
pub(super) const MOST_BYTES: u64 = 1 << 48;

/// What is wrong with more nodes.
pub(super) fn too_many_nodes() -> String {
    format!("more than {MOST_NODES} nodes, which no reader of such files can hold")
}
