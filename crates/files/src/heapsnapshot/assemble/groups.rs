//! Groups of small blocks: which nodes they replace, and what they add up to.

/// A group of at least two leaves.
pub(super) struct Group {
    /// The row of its first member, which it replaces.
    pub row: u32,
    pub name: u32,
    pub members: u32,
    pub self_size: u64,
    /// Unused bytes of its members.
    pub unused: u32,
    /// The stack that allocated all of them. `None` before the first one.
    pub stack: Option<u32>,
    /// Index of its name in [`Groups::names`].
    pub own_name: u32,
}

/// All groups of a snapshot.
#[derive(Default)]
pub(super) struct Groups {
    /// By row.
    pub groups: Vec<Group>,
    /// Of each node: the row in the file, of the group for members of a group. The highest bit marks members that are not
    /// written.
    pub rows: Vec<u32>,
    /// Nodes that are not written.
    pub gone: u64,
    /// Names of groups.
    pub names: Vec<String>,
}

/// Marks a member that is not written.
pub(super) const GONE: u32 = 1 << 31;

impl Groups {
    /// The row of a node in the file, and whether the node itself is written.
    #[inline]
    pub(super) fn row(&self, row: u32) -> (u32, bool) {
        let new = self.rows.get(row as usize).copied().unwrap_or(0);
        (new & !GONE, new & GONE == 0)
    }

    /// The group that this node stands for. Rows must be asked for in order; `next` is the next group.
    #[inline]
    pub(super) fn at(&self, row: u32, next: &mut usize) -> Option<&Group> {
        let group = self.groups.get(*next).filter(|group| group.row == row)?;
        *next += 1;
        Some(group)
    }

    /// The name of the root, which tells readers of the snapshot that small blocks are grouped.
    pub(super) fn remark(&self) -> String {
        let (leaves, groups) = (self.gone + self.groups.len() as u64, self.groups.len());
        format!("(root; {leaves} small blocks are shown as {groups} nodes, such as \"2 × TYPE\")")
    }
}
