//! Interned stacks: a trie from the root frame to the leaf, so that stacks share their callers. The size of a profile
//! depends on the number of distinct stacks, not on the number of samples.

use crate::{LocationId, ModuleIndex, StackId};
use foldhash::HashMap;

/// A code location, independent of where its module was mapped.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Location {
    /// The module. `None` if the address is in no module; then `offset` is the address itself.
    pub module: Option<ModuleIndex>,
    /// Lookup address minus the module's load bias: an address as in the file.
    pub offset: u64,
}

/// Maximum number of linked children of a node. Most nodes have fewer.
const LINKED: usize = 8;

/// The trie of stacks, with its locations.
#[derive(Clone, Debug, Default)]
pub struct Stacks {
    locations: Vec<Location>,
    location_ids: HashMap<Location, LocationId>,
    /// Node `i + 1` is `nodes[i]`: its caller's node and its own location. Node 0 is the root.
    nodes: Vec<(StackId, LocationId)>,
    /// By node, including the root: the newest of its first [`LINKED`] children, and its next sibling; 0 for none. New
    /// frames of a stack are adjacent here. In a hash table each of them would be a cache miss.
    links: Vec<(StackId, StackId)>,
    /// All further children.
    children: HashMap<(StackId, LocationId), StackId>,
    /// The nodes of the last interned stack, from the root on. The next stack usually shares most of them.
    last: Vec<StackId>,
}

impl Stacks {
    /// A trie with only the empty stack.
    pub fn new() -> Stacks {
        Stacks::default()
    }

    /// Returns the id of a location; adds the location if it is new.
    pub fn intern_location(&mut self, location: Location) -> LocationId {
        let next = LocationId(self.locations.len() as u32);
        *self.location_ids.entry(location).or_insert_with(|| {
            self.locations.push(location);
            next
        })
    }

    /// Returns the stack of `caller` with one more frame at `location`; adds it if it is new.
    pub fn extend(&mut self, caller: StackId, location: LocationId) -> StackId {
        if self.links.is_empty() {
            self.links.push((StackId(0), StackId(0)));
        }
        let first = self.links[caller.0 as usize].0;
        let (mut child, mut linked) = (first, 0);
        while child.0 != 0 {
            if self.nodes[child.0 as usize - 1].1 == location {
                return child;
            }
            (child, linked) = (self.links[child.0 as usize].1, linked + 1);
        }
        let new = StackId(self.nodes.len() as u32 + 1);
        let mut sibling = StackId(0);
        if linked < LINKED {
            self.links[caller.0 as usize].0 = new;
            sibling = first;
        } else {
            let known = *self.children.entry((caller, location)).or_insert(new);
            if known != new {
                return known;
            }
        }
        self.nodes.push((caller, location));
        self.links.push((StackId(0), sibling));
        new
    }

    /// Returns the id of a stack given leaf first; adds the stack if it is new.
    pub fn intern(&mut self, leaf_first: &[LocationId]) -> StackId {
        let mut last = std::mem::take(&mut self.last);
        let mut frames = leaf_first.iter().rev();
        let mut depth = 0;
        let mut stack = StackId(0);
        for location in frames.by_ref() {
            let known =
                last.get(depth).copied().filter(|node| self.nodes[node.0 as usize - 1].1 == *location);
            let Some(node) = known else {
                last.truncate(depth);
                stack = self.extend(stack, *location);
                last.push(stack);
                break;
            };
            (stack, depth) = (node, depth + 1);
        }
        for location in frames {
            stack = self.extend(stack, *location);
            last.push(stack);
        }
        self.last = last;
        stack
    }

    /// All locations, in order of their ids.
    pub fn locations(&self) -> &[Location] {
        &self.locations
    }

    /// The location with this id.
    ///
    /// # Panics
    /// When the id is not of this table.
    pub fn location(&self, id: LocationId) -> Location {
        self.locations[id.0 as usize]
    }

    /// Caller and location of a stack's innermost frame; `None` for the empty stack.
    ///
    /// # Panics
    /// When the id is not of this table.
    pub fn frame(&self, stack: StackId) -> Option<(StackId, LocationId)> {
        (stack.0 != 0).then(|| self.nodes[stack.0 as usize - 1])
    }

    /// Locations of a stack, leaf first.
    pub fn walk(&self, stack: StackId) -> impl Iterator<Item = LocationId> + '_ {
        let mut at = stack;
        std::iter::from_fn(move || {
            let (caller, location) = self.frame(at)?;
            at = caller;
            Some(location)
        })
    }

    /// All nodes in order of their ids from 1, as (caller, location). Callers have smaller ids than callees.
    pub fn nodes(&self) -> &[(StackId, LocationId)] {
        &self.nodes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pseudo-random short stacks of a few locations, so that prefixes and equal stacks occur. Nodes have up to 20 children.
    #[test]
    fn each_stack_is_interned_once() {
        let (mut stacks, mut nodes, mut seed) = (Stacks::new(), HashMap::default(), 7u32);
        for _ in 0..5000 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let len = seed >> 29;
            let leaf_first: Vec<LocationId> = (0..len)
                .map(|i| LocationId((seed >> (4 + 3 * i)) % if i + 1 == len { 20 } else { 3 }))
                .collect();
            let expected = leaf_first.iter().rev().fold(StackId(0), |caller, location| {
                let new = StackId(nodes.len() as u32 + 1);
                *nodes.entry((caller, *location)).or_insert(new)
            });
            assert_eq!(stacks.intern(&leaf_first), expected, "{leaf_first:?}");
        }
        assert_eq!(stacks.nodes().len(), nodes.len());
        assert!(stacks.nodes().iter().zip(1..).all(|(node, id)| nodes[node] == StackId(id)));
        assert!(!stacks.children.is_empty() && nodes.len() > 500, "{}", nodes.len());
    }
}
