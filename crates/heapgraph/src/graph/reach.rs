//! What roots reach, and what nothing reaches.
//!
//! Words on stacks and in registers may be left over, and most are borrowed. One holds its target only if the target cannot be
//! reached otherwise; if several could, the outermost frame does. Of the blocks that nothing reaches, the *owners* are those
//! that no other unreached block reaches, or one of each cycle of such blocks.

use super::edges::{Edges, WEAK};
use super::{Input, RootKind};
use crate::blocks::BlockIndex;
use foldhash::HashMap;

/// Makes edges of stacks and registers weak where their targets are held otherwise. Returns the owners of unreached blocks.
pub(super) fn reach(edges: &mut Edges, input: &Input<'_>) -> Unreached {
    let mut walk = Walk {
        roots: input.roots.len(),
        reached: vec![false; input.blocks.len()],
        pending: Vec::new(),
        holders: HashMap::default(),
    };
    for kind in RootKind::ALL {
        let places = || input.roots.iter().enumerate().filter(|(_, root)| root.kind == kind);
        for edge in places().flat_map(|(place, _)| edges.of(place)).collect::<Vec<_>>() {
            if edges.kinds[edge] & WEAK != 0 {
                continue;
            }
            let target = edges.targets[edge];
            if !kind.is_doubtful() {
                walk.from(target, edges, &mut |_| ());
            } else if walk.reached[target.0 as usize] {
                edges.kinds[edge] |= WEAK;
            } else {
                let mut held = Vec::new();
                walk.from(target, edges, &mut |earlier| held.push(earlier));
                held.into_iter().for_each(|earlier| edges.kinds[earlier] |= WEAK);
                walk.holders.insert(target.0, edge);
            }
        }
    }
    let unreached_count = walk.reached.iter().filter(|reached| !**reached).count();
    walk.holders.clear();
    let mut owners: Vec<Option<BlockIndex>> = Vec::new();
    for index in 0..input.blocks.len() as u32 {
        if walk.reached[index as usize] {
            continue;
        }
        walk.from(BlockIndex(index), edges, &mut |earlier| owners[earlier] = None);
        walk.holders.insert(index, owners.len());
        owners.push(Some(BlockIndex(index)));
    }
    Unreached { owners: owners.into_iter().flatten().collect(), count: unreached_count }
}

/// Blocks that nothing reaches.
#[derive(Debug, Default)]
pub(super) struct Unreached {
    /// Those through which all others are reached.
    pub owners: Vec<BlockIndex>,
    /// Number of all.
    pub count: usize,
}

struct Walk {
    roots: usize,
    reached: Vec<bool>,
    pending: Vec<BlockIndex>,
    /// What is held by one edge or owner alone, by block.
    holders: HashMap<u32, usize>,
}

impl Walk {
    /// Reaches everything from a block. Calls `each` with the holders of blocks that are reached again.
    fn from(&mut self, block: BlockIndex, edges: &Edges, each: &mut dyn FnMut(usize)) {
        if std::mem::replace(&mut self.reached[block.0 as usize], true) {
            return;
        }
        self.pending.push(block);
        while let Some(from) = self.pending.pop() {
            for edge in edges.of(self.roots + from.0 as usize) {
                let to = edges.targets[edge];
                if edges.kinds[edge] & WEAK != 0 || to == block {
                    continue;
                }
                if !std::mem::replace(&mut self.reached[to.0 as usize], true) {
                    self.pending.push(to);
                } else if let Some(holder) = self.holders.remove(&to.0) {
                    each(holder);
                }
            }
        }
    }
}
