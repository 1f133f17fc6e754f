//! What a task needs to go on: a tree of futures, each of which waits for all of its parts or for one of them.
//!
//! It is the await stack with more: what each branch waits for, and how the branches belong together. What is not understood can
//! go on by itself ([`Kind::Open`]), as can timers, and whatever the kernel or another program ends.

use crate::values::Value;
use stackglass_profile::task_dump::SharedKind;

/// Index of a node.
pub(crate) type NodeId = usize;

/// What a future waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// All of its parts. Without parts, it can go on.
    All,
    /// All of its parts, or one that fails.
    Try,
    /// One of its parts. Without parts, it can go on.
    Any,
    /// Something that may happen at any time.
    Open,
    /// The end of the task with this id.
    Task(u64),
    /// A lock or channel.
    Shared {
        kind: SharedKind,
        address: u64,
        /// Permits of a lock: several if it writes. 0 if that is not known.
        permits: u64,
        /// Permits that it has got already.
        assigned: u64,
    },
}

/// What is known of the values that a future has, besides those of its parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Content {
    /// Nothing.
    Unknown,
    /// They hold no lock.
    Nothing,
    /// They belong to a coroutine.
    Coroutine(Value),
}

/// A future.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Node {
    /// What waits for it. The first node is its own.
    pub parent: NodeId,
    pub kind: Kind,
    pub content: Content,
}

/// The futures of a task, those that wait before those that they wait for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Needs {
    pub nodes: Vec<Node>,
}

impl Kind {
    /// Whether it has got what it waits for, and was woken.
    pub fn is_met(self) -> bool {
        matches!(self, Kind::Shared { permits, assigned, .. } if permits > 0 && assigned == permits)
    }

    /// The address of a lock, and permits of it that are assigned to this future, if it still waits for others. It holds nothing by
    /// them, but nobody behind it in the queue gets any before.
    pub fn partial(self) -> Option<(u64, u64)> {
        match self {
            Kind::Shared { address, permits, assigned, .. } if assigned > 0 && assigned < permits => {
                Some((address, assigned))
            }
            _ => None,
        }
    }
}

impl Needs {
    /// The root.
    pub const ROOT: NodeId = 0;

    /// A task of which one future is known: what it awaits is added.
    pub fn new() -> Needs {
        Needs { nodes: vec![Node { parent: Needs::ROOT, kind: Kind::All, content: Content::Unknown }] }
    }

    /// Adds a future for which another waits.
    pub fn add(&mut self, parent: NodeId, kind: Kind, content: Content) -> NodeId {
        self.nodes.push(Node { parent, kind, content });
        self.nodes.len() - 1
    }

    /// The parts of each future.
    pub fn parts(&self) -> Vec<Vec<NodeId>> {
        let mut parts = vec![Vec::new(); self.nodes.len()];
        for (id, node) in self.nodes.iter().enumerate().skip(1) {
            parts[node.parent].push(id);
        }
        parts
    }

    /// Whether the task could not go on if nothing that it waits for happened, except what may happen at any time.
    pub fn may_be_stuck(&self) -> bool {
        let mut parts = vec![(0usize, 0usize); self.nodes.len()];
        for (id, node) in self.nodes.iter().enumerate().rev() {
            let (all, open) = parts[id];
            let is_open = match node.kind {
                Kind::Open => true,
                Kind::Task(_) | Kind::Shared { .. } => false,
                Kind::All | Kind::Try => open == all,
                Kind::Any => open > 0 || all == 0,
            };
            if id == Needs::ROOT {
                return !is_open;
            }
            parts[node.parent].0 += 1;
            parts[node.parent].1 += usize::from(is_open);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_that_may_be_stuck() {
        let with = |kinds: &[(NodeId, Kind)]| {
            let mut needs = Needs::new();
            for (parent, kind) in kinds {
                needs.add(*parent, *kind, Content::Nothing);
            }
            needs.may_be_stuck()
        };
        assert!(!Needs::default().may_be_stuck());
        assert!(!with(&[]));
        assert!(with(&[(0, Kind::Task(3))]));
        assert!(!with(&[(0, Kind::Open), (1, Kind::Task(3))]));
        assert!(with(&[(0, Kind::All), (1, Kind::Task(3)), (1, Kind::Open)]));
        assert!(!with(&[(0, Kind::Any), (1, Kind::Task(3)), (1, Kind::Open)]));
        assert!(with(&[(0, Kind::Any), (1, Kind::Task(3)), (1, Kind::All), (3, Kind::Task(4))]));
        assert!(!with(&[(0, Kind::Any), (1, Kind::Task(3)), (1, Kind::All)]));
    }
}
