//! Interned stacks: a trie that grows from the root frame to the leaf, so that stacks with the
//! same callers share them. The cost of a profile is in distinct stacks, not in samples.

use crate::{LocationId, ModuleIndex, StackId};
use foldhash::HashMap;

/// A place in code, independent of where the module was mapped.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Location {
    /// The module; `None` when the address lay in none (then `offset` is the address itself).
    pub module: Option<ModuleIndex>,
    /// Look-up address minus the module's load bias: an address as in the file.
    pub offset: u64,
}

/// Children of a node that are linked: most have fewer.
const LINKED: usize = 8;

/// The trie and the locations it is made of.
#[derive(Clone, Debug, Default)]
pub struct Stacks {
    locations: Vec<Location>,
    location_ids: HashMap<Location, LocationId>,
    /// Node `i + 1` is `nodes[i]`: its caller's node and its own location. Node 0 is the root.
    nodes: Vec<(StackId, LocationId)>,
    /// For each node, the root included: the newest of its first [`LINKED`] children, and its own next sibling (0: none).
    /// New frames of a stack lie side by side here; in a table of all children each would be a miss of the cache.
    links: Vec<(StackId, StackId)>,
    /// All further children.
    children: HashMap<(StackId, LocationId), StackId>,
    /// The nodes of the stack that was interned last, from the root on. The next one mostly begins as it does.
    last: Vec<StackId>,
}

impl Stacks {
    /// No stacks but the empty one.
    pub fn new() -> Stacks {
        Stacks::default()
    }

    /// The id of a location, new or known.
    pub fn intern_location(&mut self, location: Location) -> LocationId {
        let next = LocationId(self.locations.len() as u32);
        *self.location_ids.entry(location).or_insert_with(|| {
            self.locations.push(location);
            next
        })
    }

    /// The stack made of `caller` and one more frame at `location`.
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

    /// Interns a stack given leaf first.
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

    /// All nodes in order of their ids from 1: (caller, location). A caller's id is always smaller.
    pub fn nodes(&self) -> &[(StackId, LocationId)] {
        &self.nodes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Short stacks of a few locations in a fixed order without a pattern: prefixes, extensions and equal ones among them.
    /// Nodes have up to 20 children.
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
