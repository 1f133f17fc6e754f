//! Children by key in trees that only grow: a list where there are few, a table where there are many.
//!
//! Nearly every node of a profile's tree has one or two children. A short list stays in the cache. A hash lookup for
//! each step down would cost more than everything else in a report.

use foldhash::HashMap;

/// A node with this many children keeps them in the table.
const MANY: usize = 8;

/// Bit of [`Link::child`]: the children are in the table. No node has such a high number.
const IN_TABLE: u32 = 1 << 31;

/// The links between the nodes of a tree. Node 0 is the root. Nodes are numbered in order of creation, so a parent's
/// number is smaller than its children's.
#[derive(Clone, Debug)]
pub(crate) struct Siblings {
    links: Vec<Link>,
    /// By parent and key: children of nodes with at least [`MANY`] children.
    table: HashMap<(u32, u32), u32>,
}

/// Four links fill a cache line.
#[derive(Clone, Copy, Debug, Default)]
struct Link {
    key: u32,
    parent: u32,
    /// The newest child, 0 for none. [`IN_TABLE`] is set if the children are in the table.
    child: u32,
    /// The next older child of the same parent, 0 for none.
    older: u32,
}

impl Siblings {
    /// A tree with only a root.
    pub(crate) fn new() -> Siblings {
        Siblings { links: vec![Link::default()], table: HashMap::default() }
    }

    /// Reserves memory for this many more nodes.
    pub(crate) fn reserve(&mut self, nodes: usize) {
        self.links.reserve(nodes);
    }

    /// Number of nodes.
    pub(crate) fn len(&self) -> usize {
        self.links.len()
    }

    /// Adds a node without a parent, the root of another tree.
    pub(crate) fn lone(&mut self, key: u32) -> u32 {
        let new = self.links.len() as u32;
        self.links.push(Link { key, ..Link::default() });
        new
    }

    /// Returns the child with this key. A new child gets the number [`Siblings::len`].
    #[inline]
    pub(crate) fn child(&mut self, parent: u32, key: u32) -> u32 {
        let newest = self.links[parent as usize].child;
        let (mut at, mut children) = (newest, 0);
        while children < MANY && at & IN_TABLE == 0 {
            if at == 0 {
                return self.add(parent, key, newest);
            }
            let link = &self.links[at as usize];
            if link.key == key {
                return at;
            }
            (at, children) = (link.older, children + 1);
        }
        self.child_of_many(parent, key)
    }

    fn child_of_many(&mut self, parent: u32, key: u32) -> u32 {
        if self.links[parent as usize].child & IN_TABLE == 0 {
            self.fill_table(parent);
        }
        match self.table.get(&(parent, key)) {
            Some(known) => *known,
            None => self.add_child(parent, key),
        }
    }

    /// Adds a child with a new key. It gets the number [`Siblings::len`].
    #[inline]
    pub(crate) fn add_child(&mut self, parent: u32, key: u32) -> u32 {
        let newest = self.links[parent as usize].child;
        if newest & IN_TABLE == 0 {
            return self.add(parent, key, newest);
        }
        let new = self.add(parent, key, newest & !IN_TABLE);
        self.links[parent as usize].child |= IN_TABLE;
        self.table.insert((parent, key), new);
        new
    }

    #[inline]
    fn add(&mut self, parent: u32, key: u32, older: u32) -> u32 {
        let new = self.links.len() as u32;
        self.links.push(Link { key, parent, child: 0, older });
        self.links[parent as usize].child = new;
        new
    }

    #[cold]
    fn fill_table(&mut self, parent: u32) {
        let mut at = self.newest(parent);
        while at != 0 {
            let Link { key, older, .. } = self.links[at as usize];
            self.table.insert((parent, key), at);
            at = older;
        }
        self.links[parent as usize].child |= IN_TABLE;
    }

    /// The newest child, 0 for none.
    fn newest(&self, parent: u32) -> u32 {
        self.links[parent as usize].child & !IN_TABLE
    }

    /// The key of a node.
    pub(crate) fn key(&self, node: u32) -> u32 {
        self.links[node as usize].key
    }

    /// The parent of a node. The root is its own parent.
    pub(crate) fn parent(&self, node: u32) -> u32 {
        self.links[node as usize].parent
    }

    /// What `node` makes of the parent and key of each node, in the same memory.
    pub(crate) fn into_nodes<T>(self, node: impl Fn(u32, u32) -> T) -> Vec<T> {
        let mut nodes: Vec<T> = self.links.into_iter().map(|link| node(link.parent, link.key)).collect();
        // Frees the unused part of that memory.
        nodes.shrink_to_fit();
        nodes
    }

    /// The children of a node, newest first.
    pub(crate) fn children(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let mut at = self.newest(node);
        std::iter::from_fn(move || {
            let child = at;
            at = self.links[child as usize].older;
            (child != 0).then_some(child)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_many_children_are_found_again() {
        let many = 3 * MANY as u32;
        let mut tree = Siblings::new();
        for round in 0..2 {
            for key in 0..many {
                let child = tree.child(0, key * 7);
                assert_eq!((child, tree.key(child), tree.parent(child)), (2 * key + 1, key * 7, 0));
                let below = tree.child(child, 5);
                assert_eq!((below, tree.parent(below)), (child + 1, child), "round {round}");
            }
        }
        assert_eq!(tree.len() as u32, 2 * many + 1);
        let children: Vec<u32> = tree.children(0).collect();
        assert_eq!(children.len() as u32, many);
        assert!(children.is_sorted_by(|a, b| a > b), "newest first: {children:?}");
        assert_eq!(tree.children(2).count(), 0);
    }

    #[test]
    fn children_added_without_lookup_are_found() {
        let many = 3 * MANY as u32;
        for looked_up_from in 0..many {
            let mut tree = Siblings::new();
            let family = tree.lone(9);
            for key in 0..many {
                let next = tree.len() as u32;
                assert_eq!(tree.add_child(family, key), next);
                if key >= looked_up_from {
                    assert_eq!(tree.child(family, key / 2), family + 1 + key / 2);
                }
            }
            assert_eq!(tree.child(family, many), family + many + 1, "a new one");
            assert!(tree.children(family).eq((family + 1..family + many + 2).rev()));
            assert_eq!((tree.key(family), tree.children(0).count()), (9, 0));
            let nodes = tree.into_nodes(|parent, key| (parent, key));
            assert_eq!(nodes[family as usize + 3], (family, 2));
            assert_eq!(nodes.len() as u32, family + many + 2);
        }
    }
}
