//! Children by key in trees that only grow: a list where there are few, a table where there are many.
//!
//! Nearly every node of a profile's tree has one child or two. A list of them is in the cache when
//! it is walked; a hash look-up for each step down would cost more than all else in a report.

use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// With this many children a node has them in the table.
const MANY: usize = 8;

/// How the nodes of a tree hang together. Node 0 is the root; numbers ascend in order of making, so
/// a parent's is smaller than its children's.
#[derive(Clone, Debug)]
pub(crate) struct Siblings {
    links: Vec<Link>,
    /// By parent and key: children of nodes that have [`MANY`].
    table: HashMap<(u32, u32), u32, RandomState>,
}

/// Four of them fill a line of the cache.
#[derive(Clone, Copy, Debug, Default)]
struct Link {
    key: u32,
    parent: u32,
    /// The newest child; 0: none.
    child: u32,
    /// The next older child of the same parent; 0: none.
    older: u32,
}

impl Siblings {
    /// A tree of its root.
    pub(crate) fn new() -> Siblings {
        Siblings { links: vec![Link::default()], table: HashMap::default() }
    }

    /// Makes room for so many more nodes.
    pub(crate) fn reserve(&mut self, nodes: usize) {
        self.links.reserve(nodes);
    }

    /// Number of nodes.
    pub(crate) fn len(&self) -> usize {
        self.links.len()
    }

    /// The child with this key; a new one has the number that [`Siblings::len`] was.
    #[inline]
    pub(crate) fn child(&mut self, parent: u32, key: u32) -> u32 {
        let newest = self.links[parent as usize].child;
        let mut at = newest;
        for children in 0..MANY {
            if at == 0 {
                return self.add(parent, key, newest, children + 1 == MANY);
            }
            let link = &self.links[at as usize];
            if link.key == key {
                return at;
            }
            at = link.older;
        }
        let new = self.links.len() as u32;
        match self.table.entry((parent, key)) {
            Entry::Occupied(known) => return *known.get(),
            Entry::Vacant(vacant) => vacant.insert(new),
        };
        self.add(parent, key, newest, false)
    }

    #[inline]
    fn add(&mut self, parent: u32, key: u32, older: u32, now_many: bool) -> u32 {
        let new = self.links.len() as u32;
        self.links.push(Link { key, parent, child: 0, older });
        self.links[parent as usize].child = new;
        if now_many {
            let mut at = new;
            while at != 0 {
                let Link { key, older, .. } = self.links[at as usize];
                self.table.insert((parent, key), at);
                at = older;
            }
        }
        new
    }

    /// The key a node was made with.
    pub(crate) fn key(&self, node: u32) -> u32 {
        self.links[node as usize].key
    }

    /// The parent of a node; the root is its own.
    pub(crate) fn parent(&self, node: u32) -> u32 {
        self.links[node as usize].parent
    }

    /// The children of a node, newest first.
    pub(crate) fn children(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let mut at = self.links[node as usize].child;
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
}
