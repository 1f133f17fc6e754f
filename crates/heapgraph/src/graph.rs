//! From blocks and roots to a graph.
//!
//! 1. **Lengths**: owners say how many elements of their buffers are initialized (`owned`).
//! 2. **Edges** of each root and block, by layout or by a scan of its words (`edges`).
//! 3. **Reachability** (`reach`): which words of stacks hold blocks that nothing else holds, and which blocks nothing
//!    reaches.
//! 4. **Disguised addresses** (`disguised`) lead weakly to blocks that would be lost without them.
//! 5. **Output**: nodes in order of address behind the roots, each with its edges (`emit`).

mod counts;
mod disguised;
mod edges;
mod emit;
mod empty_values;
mod input;
mod names;
mod owned;
mod reach;
mod words;

pub use crate::root::{Root, RootKind};
pub use crate::site::Site;
pub use emit::Totals;
pub use input::Input;

use crate::blocks::BlockIndex;
use crate::blocks::lookup::Lookup;
use stackglass_profile::heap_graph::HeapGraphSink;

/// What was found about a graph that was written.
#[derive(Clone, Debug, Default)]
pub struct Built {
    /// Sums.
    pub totals: Totals,
    /// Blocks that nothing reaches, in order.
    pub unreached: Vec<BlockIndex>,
}

/// Writes the graph to a sink.
///
/// # Errors
/// If the sink fails.
///
/// # Panics
/// If there are no sites.
pub fn build<S: HeapGraphSink>(input: &Input<'_>, sink: &mut S) -> Result<Built, S::Error> {
    assert!(!input.sites.is_empty());
    let lookup = Lookup::new(input.blocks);
    let mut edges = edges::find(input, &lookup);
    counts::apply(&mut edges, input);
    let unreached = reach::reach(&mut edges, input);
    edges.disguised = disguised::find(&edges, input, &unreached.blocks);
    let totals = emit::emit(input, &edges, &unreached, sink)?;
    Ok(Built { totals, unreached: unreached.blocks })
}
