//! What roots reach, and what nothing reaches.
//!
//! Words on stacks, in registers and in memory of unknown use may be left over, and most are borrowed. One holds its target only if
//! the target cannot be reached otherwise. If several could hold it, a local variable that owns it does, else the outermost frame.
//! Of the blocks that nothing reaches, the snapshot lists only *starts*: those that no other unreached block reaches, or one of
//! each cycle of such blocks. They are an order of the file, not an answer: what owns the leak candidates of any snapshot is found
//! by its readers, by their own rules of what holds what (`heap_report/src/answers/leaks.rs`).
//!
//! Both are the smallest sets of starts from which all is reached. A first walk in order finds starts that no earlier start
//! reaches. A second walk in reverse order keeps those that no later start reaches.

use super::edges::{Edges, OWNS, WEAK};
use super::input::Input;
use crate::blocks::BlockIndex;
use crate::root::RootKind;

/// Makes edges of stacks and registers weak where their targets are held otherwise. Returns the starts of unreached blocks.
pub(super) fn reach(edges: &mut Edges, input: &Input<'_>) -> Unreached {
    let mut walk =
        Walk { roots: input.roots.len(), states: vec![State::New; input.blocks.len()], pending: Vec::new() };
    for kind in RootKind::ALL {
        let places = input.roots.iter().enumerate().filter(|(_, root)| root.kind == kind);
        let mut from_here: Vec<usize> = places
            .flat_map(|(place, _)| edges.of(place))
            .filter(|edge| edges.kinds[*edge] & WEAK == 0)
            .collect();
        if !kind.is_doubtful() {
            for edge in from_here {
                walk.advance(edges.targets[edge], State::New, State::Reached, edges);
            }
            continue;
        }
        // Local variables that own a block come before words that may be copies of them.
        from_here.sort_by_key(|edge| edges.kinds[*edge] & OWNS == 0);
        let starts = walk.starts(from_here, |edge| edges.targets[*edge], edges);
        for (edge, is_needed) in starts {
            if !is_needed {
                edges.kinds[edge] |= WEAK;
            }
        }
    }
    let unreached: Vec<BlockIndex> = (0..input.blocks.len() as u32)
        .map(BlockIndex)
        .filter(|block| walk.states[block.0 as usize] == State::New)
        .collect();
    let starts = walk.starts(unreached.clone(), |block| *block, edges);
    let starts = starts.into_iter().filter_map(|(block, is_needed)| is_needed.then_some(block)).collect();
    Unreached { starts, blocks: unreached }
}

/// Blocks that nothing reaches.
#[derive(Debug, Default)]
pub(super) struct Unreached {
    /// Those through which all others are reached.
    pub starts: Vec<BlockIndex>,
    /// All of them.
    pub blocks: Vec<BlockIndex>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Not reached.
    New,
    /// Reached by a start of the first walk.
    Started,
    /// Reached.
    Reached,
}

struct Walk {
    roots: usize,
    states: Vec<State>,
    pending: Vec<BlockIndex>,
}

impl Walk {
    /// Reaches everything from the targets of some candidates, and says for each of these whether it is needed.
    fn starts<T>(
        &mut self,
        candidates: Vec<T>,
        target: impl Fn(&T) -> BlockIndex,
        edges: &Edges,
    ) -> Vec<(T, bool)> {
        let mut all: Vec<(T, bool)> = candidates
            .into_iter()
            .map(|candidate| {
                let is_first = self.advance(target(&candidate), State::New, State::Started, edges);
                (candidate, is_first)
            })
            .collect();
        for (candidate, is_needed) in all.iter_mut().rev() {
            *is_needed = *is_needed && self.advance(target(candidate), State::Started, State::Reached, edges);
        }
        all
    }

    /// Moves all blocks that a block reaches from one state to the next. False if it has left that state already.
    fn advance(&mut self, block: BlockIndex, from: State, to: State, edges: &Edges) -> bool {
        if self.states[block.0 as usize] != from {
            return false;
        }
        self.states[block.0 as usize] = to;
        self.pending.push(block);
        while let Some(at) = self.pending.pop() {
            for edge in edges.of(self.roots + at.0 as usize) {
                let next = edges.targets[edge];
                if edges.kinds[edge] & WEAK == 0 && self.states[next.0 as usize] == from {
                    self.states[next.0 as usize] = to;
                    self.pending.push(next);
                }
            }
        }
        true
    }
}
