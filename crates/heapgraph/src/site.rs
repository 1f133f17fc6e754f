//! Allocation sites: what blocks have in common that one place has allocated, or that are of one type.

use crate::references::BlockType;
use stackglass_profile::heap_graph::{AllocationStack, NodeKind};

/// What the blocks of one allocation site, or of one type, have in common.
#[derive(Clone, PartialEq, Debug)]
pub struct Site {
    /// The name of their nodes: a type, or the place that allocated them.
    pub name: String,
    /// The kind of their nodes.
    pub kind: NodeKind,
    /// What they contain; `None`: their words are scanned.
    pub contains: Option<BlockType>,
    /// The stack that allocated them.
    pub allocated_by: AllocationStack,
}
