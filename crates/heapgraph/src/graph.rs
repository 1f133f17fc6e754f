//! From blocks and roots to a graph.
//!
//! 1. **Lengths**: owners say how many elements of their buffers are initialized (`owned`).
//! 2. **Edges** of each root and block, by layout or by a scan of its words (`edges`).
//! 3. **Reachability** (`reach`): which words of stacks hold blocks that nothing else holds, and which blocks nothing
//!    reaches.
//! 4. **Output**: nodes in order of address behind the roots, each with its edges (`emit`).

mod counts;
mod edges;
mod emit;
mod names;
mod owned;
mod reach;
mod roots;

pub use emit::Totals;
pub use roots::{Root, RootKind};

use crate::blocks::Blocks;
use crate::blocks::lookup::Lookup;
use crate::references::BlockType;
use stackglass_process_view::image::Image;
use stackglass_profile::heap_graph::{AllocationStack, AllocationStacks, HeapGraphSink, NodeKind};
use stackglass_symbols::layouts::Layouts;

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

/// Everything that a graph is made of.
pub struct Input<'a> {
    /// The process.
    pub image: &'a Image,
    /// Its live blocks.
    pub blocks: &'a Blocks,
    /// By the blocks' [`SiteId`](crate::blocks::SiteId). Blocks with other numbers have the first site.
    pub sites: &'a [Site],
    /// The stacks of the sites.
    pub stacks: &'a AllocationStacks,
    /// Layouts of the types in sites and roots.
    pub layouts: &'a Layouts,
    /// Where the search for reachable blocks begins.
    pub roots: &'a [Root],
    /// Address in memory minus address in the file of each module of the layouts.
    pub biases: &'a [u64],
    /// Name text by its content.
    pub with_texts: bool,
    /// Give all nodes the size 1, so that retained sizes are numbers of nodes.
    pub all_one: bool,
}

impl Input<'_> {
    /// The place of a block's site in the list: the first, if the list does not have it.
    fn site(&self, block: usize) -> usize {
        let site = self.blocks.sites[block].0 as usize;
        if site < self.sites.len() { site } else { 0 }
    }

    /// What a block contains.
    fn contains(&self, block: usize) -> Option<BlockType> {
        self.sites[self.site(block)].contains
    }
}

/// Writes the graph to a sink.
///
/// # Errors
/// If the sink fails.
///
/// # Panics
/// If there are no sites.
pub fn build<S: HeapGraphSink>(input: &Input<'_>, sink: &mut S) -> Result<Totals, S::Error> {
    assert!(!input.sites.is_empty());
    let lookup = Lookup::new(input.blocks);
    let mut edges = edges::find(input, &lookup);
    counts::apply(&mut edges, input);
    let unreached = reach::reach(&mut edges, input);
    emit::emit(input, &edges, &unreached, sink)
}
