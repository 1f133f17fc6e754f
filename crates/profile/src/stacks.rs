//! Interned stacks: a trie that grows from the root frame to the leaf, so that stacks with the
//! same callers share them. The cost of a profile is in distinct stacks, not in samples.

use crate::{LocationId, ModuleIndex, StackId};
use foldhash::fast::RandomState;
use std::collections::HashMap;

/// A place in code, independent of where the module was mapped.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Location {
    /// The module; `None` when the address lay in none (then `offset` is the address itself).
    pub module: Option<ModuleIndex>,
    /// Look-up address minus the module's load bias: an address as in the file.
    pub offset: u64,
}

/// The trie and the locations it is made of.
#[derive(Clone, Debug, Default)]
pub struct Stacks {
    locations: Vec<Location>,
    location_ids: HashMap<Location, LocationId, RandomState>,
    /// Node `i + 1` is `nodes[i]`: its caller's node and its own location. Node 0 is the root.
    nodes: Vec<(StackId, LocationId)>,
    children: HashMap<(StackId, LocationId), StackId, RandomState>,
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
        let next = StackId(self.nodes.len() as u32 + 1);
        *self.children.entry((caller, location)).or_insert_with(|| {
            self.nodes.push((caller, location));
            next
        })
    }

    /// Interns a stack given leaf first.
    pub fn intern(&mut self, leaf_first: &[LocationId]) -> StackId {
        leaf_first.iter().rev().fold(StackId(0), |caller, location| self.extend(caller, *location))
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
