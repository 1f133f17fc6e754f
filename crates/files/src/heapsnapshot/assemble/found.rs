//! What the readings before the output find.

use super::groups::Groups;
use crate::heapsnapshot::part_files::EdgeRecord;

/// What the first reading finds.
pub(super) struct Found {
    /// Of each node: edges that begin there.
    pub counts: Vec<u32>,
    /// Whether edges are in the order of the nodes where they begin.
    pub grouped: bool,
    /// Nodes of 4 GiB or more, with the number of further nodes that carry the rest of their size.
    pub continued: Vec<(u32, u32)>,
    pub self_size: u64,
    pub groups: Option<Groups>,
}

impl Found {
    /// The row in the file of an edge's target; `None` if the edge is not written, since its target is a member of a group
    /// to which another edge leads.
    #[inline]
    pub fn target(&self, edge: &EdgeRecord, weak: u32) -> Option<u32> {
        let to = edge.to as u32;
        let Some(groups) = &self.groups else { return Some(to) };
        let (row, written) = groups.row(to);
        (written || edge.kind == weak).then_some(row)
    }
}
