//! Answers to questions about a heap graph: what is alive, what holds it, what leaked.
//!
//! 1. **Edges that hold** their targets (`edges`), by the rules of Chrome's DevTools.
//! 2. **Reachability** (`reach`): what is alive, and the shortest path to each node.
//! 3. **Leak candidates** (`leaks`): which of the blocks that nothing reaches own the others, and to which of them weak edges
//!    lead (`weakly_reached`).
//! 4. **Dominators** (`dominators`): the nodes that would go if one node went, and their size.
//! 5. **Answers**: sums by type (`types`), the largest holders (`largest`, `variables`), holders of a type (`retainers`), its
//!    blocks (`blocks_of_type`), all of it for each type (`each_type`), the dominator tree by type (`tree`), wasted memory (`waste`), growth between snapshots (`growth`).
//!
//! Graphs have millions of nodes. All of this takes some 25 bytes for a node beside the graph, and works without recursion.

pub mod alike;
mod bits;
mod blocks_of_type;
mod dominators;
mod each_type;
mod edges;
pub mod growth;
pub(crate) mod holders;
mod largest;
mod leaks;
mod one_type;
mod paths;
mod reach;
mod retainers;
mod sites;
mod tree;
pub(crate) mod type_names;
mod types;
mod variables;
mod waste;
pub mod watch;
mod weakly_reached;

pub use blocks_of_type::{BlockRow, BlocksOfType};
pub use each_type::EachType;
pub use largest::{Dominator, RootSizes};
pub use leaks::{Leaks, OwnerRow};
pub use one_type::{TypeAnswer, TypeSize};
pub use paths::{HeapPath, Step};
pub use retainers::RetainerRow;
pub use sites::SiteRow;
pub use tree::{HeapTree, TreeKind, TreeRow};
pub(crate) use types::total;
pub use types::{TypeRow, TypeTable};
pub use waste::{DuplicateString, Duplicates, UnusedRow, Waste};

use bits::Bits;
use dominators::Dominators;
use edges::Holding;
use reach::Reach;
use stackglass_profile::heap_graph::{HeapGraph, UNREACHABLE};
use type_names::TypeNames;

/// What can be asked about one heap graph.
///
/// ```
/// use stackglass_profile::heap_graph::{EdgeKind, HeapGraphBuilder, HeapGraphSink, NodeIndex, NodeKind};
/// use stackglass_heap_report::answers::HeapAnswers;
///
/// let mut builder = HeapGraphBuilder::default();
/// let [root, list, next] = ["", "List", "next"].map(|text| builder.name(text));
/// builder.node(NodeKind::Synthetic, root, 1, 0)?;
/// builder.node(NodeKind::Object, list, 3, 16)?;
/// builder.edge(NodeIndex(0), NodeIndex(1), EdgeKind::Property, next.0)?;
/// builder.node(NodeKind::Object, list, 5, 16)?;
/// builder.edge(NodeIndex(1), NodeIndex(2), EdgeKind::Property, next.0)?;
/// let graph = builder.finish();
/// let answers = HeapAnswers::new(&graph);
/// let row = &answers.types().alive[0];
/// assert_eq!((row.name.as_str(), row.count, row.self_size, row.retained_size), ("List", 2, 32, 32));
/// # Ok::<(), std::convert::Infallible>(())
/// ```
pub struct HeapAnswers<'g> {
    graph: &'g HeapGraph,
    type_names: TypeNames,
    holding: Holding<'g>,
    leaks: leaks::Owners,
    dominators: Dominators,
    reach: Reach,
    /// Leak candidates to which weak edges lead.
    weakly: Bits,
}

impl<'g> HeapAnswers<'g> {
    /// Prepares all answers. Takes about a second for a million nodes.
    pub fn new(graph: &'g HeapGraph) -> HeapAnswers<'g> {
        let type_names = TypeNames::new(graph);
        let mut holding = Holding::new(graph);
        // The first search is dropped before dominators need memory.
        let leaks = match unreachable_node(graph) {
            Some(node) => leaks::owners(graph, &mut holding, node, &Reach::new(graph).alive),
            None => leaks::Owners::default(),
        };
        let dominators = Dominators::new(graph, &holding);
        let reach = Reach::new(graph);
        let weakly = weakly_reached::weakly_reached(graph, &reach.alive, unreachable_node(graph));
        HeapAnswers { graph, type_names, holding, leaks, dominators, reach, weakly }
    }

    /// The graph.
    pub fn graph(&self) -> &'g HeapGraph {
        self.graph
    }

    /// The sum of all own sizes.
    pub fn self_size(&self) -> u64 {
        self.graph.self_sizes.iter().fold(0, |sum, size| sum.saturating_add(size))
    }

    /// Whether each block has the size 1, as in snapshots that were taken with `--all-one`: sizes are numbers of blocks.
    pub fn sizes_are_counts(&self) -> bool {
        self.type_names.sizes_are_counts
    }

    /// The size of all nodes that only this node holds, with its own.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn retained_size(&self, node: usize) -> u64 {
        self.dominators.retained[node]
    }

    /// The length of the shortest path from the root, as DevTools counts it: from the user's own roots if there are
    /// any, with 100 000 000 added to all other distances then. `None` if there is no path.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn distance(&self, node: usize) -> Option<u64> {
        self.reach.distance(self.graph, node)
    }

    /// Whether a root reaches the node.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn is_alive(&self, node: usize) -> bool {
        self.reach.alive.get(node)
    }

    /// The name of the type of a node.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn type_of(&self, node: usize) -> &str {
        self.type_names.name(self.type_names.of(self.graph, node))
    }
}

/// The node above all blocks that nothing reaches: a child of the root.
fn unreachable_node(graph: &HeapGraph) -> Option<u32> {
    let name = graph.strings.iter().position(|text| &**text == UNREACHABLE)? as u32;
    let kind = graph.node_kinds.iter().position(|kind| kind == "synthetic")? as u16;
    let is_it = |node: u32| {
        let at = node as usize;
        graph.names[at].0 == name && graph.kinds[at] == kind
    };
    graph.targets[edges::range(graph, 0)].iter().map(|target| target.0).find(|target| is_it(*target))
}
