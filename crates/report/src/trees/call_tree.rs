//! The call tree of a profile: one node for each distinct path from the root to a frame, with its number of snapshots.
//!
//! Flame graphs are made from it. It always includes foreign frames, and a sample with folded recursion counts only on
//! the path to its end. Reports build their trees with the same code (`tree.rs`) and other options.

use crate::options::{Pick, Recur};
use crate::order::{by_file_func_line, ranks};
use crate::quirks::Quirks;
pub use crate::state_filter::StateFilter;
use crate::trees::aggregated_samples::{AggregatedSamples, SampleGroup};
use crate::trees::tree::{Folded, Node, Tree, TreeOptions};
use crate::{Source, kinds};
use foldhash::HashMap;
use stackglass_profile::{DataError, Frame};
use std::cmp::Ordering;

/// Which samples count, and which frames are merged.
#[derive(Clone, Debug)]
pub struct Options {
    /// Merges equal frames; otherwise each address has a separate node.
    pub combine: bool,
    /// Folds recursion by call site. A sample then counts only on the path to the node where it ends, so that children
    /// never sum to more than their parent. (In reports it counts in every node that it passes.)
    pub recur: Recur,
    /// Threads to count, by number.
    pub threads: Pick,
    /// Tasks to count, by id.
    pub tasks: Pick,
    /// Thread states to count.
    pub moments: StateFilter,
    /// Treats an address without a dictionary entry as an error instead of an unknown frame.
    #[doc(hidden)]
    pub all_listed: bool,
    /// Folds recursion as the reference does, including metadata.
    #[doc(hidden)]
    pub folds_into_metadata: bool,
    /// Counts samples in every node that they pass, as the reference does.
    #[doc(hidden)]
    pub counts_passed: bool,
}

impl Default for Options {
    fn default() -> Options {
        let (threads, tasks) = (Pick::All, Pick::All);
        Options {
            combine: true,
            recur: Recur::Off,
            threads,
            tasks,
            moments: StateFilter::All,
            all_listed: false,
            folds_into_metadata: false,
            counts_passed: false,
        }
    }
}

/// Why there is no tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallTreeError {
    /// The data has no metadata.
    #[error(transparent)]
    Data(#[from] DataError),
    /// An address has no entry in the dictionary.
    #[error("the dictionary has no entry for address {address:#x}")]
    NotListed {
        /// The address.
        address: u64,
    },
}

/// The aggregated samples of a profile, from which trees are built.
pub struct CallTrees<'a> {
    samples: AggregatedSamples<'a>,
    rust: bool,
}

/// The snapshots of one task on one thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaskCount {
    /// Number of the thread.
    pub thread: u64,
    /// Id of the task.
    pub task: u64,
    /// Snapshots.
    pub count: u64,
}

/// A call tree. Node 0 is the root, which has no frame.
///
/// ```
/// use stackglass_profile::{Data, Dictionary, Frame};
/// use stackglass_report::CallTrees;
///
/// let mut dictionary = Dictionary::new();
/// for (address, name) in [(16, "leaf"), (32, "main")] {
///     dictionary.set(address, [Frame { func: name.into(), ..Frame::unknown(address) }]);
/// }
/// let data = Data::new(vec![16, 32, 0, 32, 0]).add_fake_meta(1, 1)?;
/// let trees = CallTrees::new((&data, &dictionary))?;
/// let tree = trees.tree(&Default::default())?;
/// let main = tree.children(0)[0];
/// let leaf = tree.children(main)[0];
/// assert_eq!((tree.count(main), tree.count(leaf)), (2, 1));
/// assert_eq!(&*tree.frame(leaf).unwrap().func, "leaf");
/// # Ok::<(), stackglass_report::call_tree::CallTreeError>(())
/// ```
pub struct CallTree<'a> {
    tree: Tree<'a>,
    /// By frame number: the rank in the order of siblings. Only if there are many more nodes than frames.
    ranks: Option<Vec<u32>>,
    rust: bool,
}

impl<'a> CallTrees<'a> {
    /// Aggregates the samples of a recording, or of a buffer with its dictionary.
    ///
    /// # Errors
    /// When data has no metadata.
    pub fn new(source: impl Into<Source<'a>>) -> Result<CallTrees<'a>, CallTreeError> {
        let source = source.into();
        if let Source::Data(data, _) = source
            && !data.is_empty()
            && !data.has_meta()
        {
            return Err(DataError::MissingMetadata.into());
        }
        let rust = source.frames().iter().any(|frame| frame.func.starts_with("std::rt::lang_start"));
        Ok(CallTrees { samples: AggregatedSamples::new(source), rust })
    }

    /// Builds the tree of the samples that the options select.
    ///
    /// # Errors
    /// If an address has no dictionary entry and the options require one.
    pub fn tree(&self, options: &Options) -> Result<CallTree<'_>, CallTreeError> {
        let picked = |group: &&SampleGroup| {
            options.threads.has(group.thread)
                && options.tasks.has(group.task)
                && options.moments.has(group.state)
        };
        let groups: Vec<SampleGroup> = self.samples.groups.iter().filter(picked).copied().collect();
        if options.all_listed
            && let Some(address) = self.samples.first_unlisted(&groups)
        {
            return Err(CallTreeError::NotListed { address });
        }
        let folds_into_metadata = options.folds_into_metadata;
        let quirks = Quirks { folds_into_metadata, ..Quirks::default() };
        let folded = if options.counts_passed { Folded::Passed } else { Folded::Ended };
        let made = TreeOptions {
            foreign: true,
            combine: options.combine,
            recur: options.recur,
            folded,
            flat_counts: false,
            quirks,
        };
        let tree = Tree::build(&self.samples, &groups, &made);
        let worth_it = tree.frames().len() * 4 < tree.nodes.len();
        let ranks =
            worth_it.then(|| ranks(&tree.frames().iter().map(|frame| frame.frame).collect::<Vec<_>>()));
        Ok(CallTree { tree, ranks, rust: self.rust })
    }

    /// Snapshots in these states by thread and task, unordered.
    pub fn counts(&self, moments: StateFilter) -> Vec<TaskCount> {
        let mut counts: HashMap<(u64, u64), u64> = HashMap::default();
        for group in self.samples.groups.iter().filter(|group| moments.has(group.state)) {
            *counts.entry((group.thread, group.task)).or_default() += group.count;
        }
        counts.into_iter().map(|((thread, task), count)| TaskCount { thread, task, count }).collect()
    }
}

impl CallTree<'_> {
    /// Number of nodes, the root included.
    pub fn len(&self) -> usize {
        self.tree.nodes.len()
    }

    /// Whether there is only the root.
    pub fn is_empty(&self) -> bool {
        self.tree.is_empty()
    }

    /// The frame of a node; `None` for the root.
    pub fn frame(&self, node: u32) -> Option<&Frame> {
        self.tree.frame(node).map(|step| step.frame)
    }

    /// Number of distinct frame numbers, see [`CallTree::frame_number`].
    pub fn frames(&self) -> usize {
        self.tree.frames().len()
    }

    /// The number of a node's frame. Nodes with the same number show the same frame. 0, without meaning, for the root.
    pub fn frame_number(&self, node: u32) -> u32 {
        self.tree.frame_number(node)
    }

    /// Snapshots in a node or below it.
    pub fn count(&self, node: u32) -> u64 {
        self.node(node).count
    }

    /// Whether a call to this node went through a vtable or a function pointer.
    pub fn dispatched(&self, node: u32) -> bool {
        self.node(node).dispatched
    }

    /// Whether a node's frame only starts a program or a thread.
    pub fn starts(&self, node: u32) -> bool {
        self.frame(node).is_some_and(|frame| kinds::is_start(frame, self.rust))
    }

    /// The callees of a node, sorted by file, function and line.
    pub fn children(&self, node: u32) -> Vec<u32> {
        let mut children = Vec::new();
        self.add_children(node, &mut children);
        children
    }

    /// Appends the callees of a node to a list, sorted by file, function and line.
    pub fn add_children(&self, node: u32, list: &mut Vec<u32>) {
        let first = list.len();
        // With folded recursion, a node may have no samples.
        list.extend(self.tree.children(node).filter(|child| self.count(*child) > 0));
        // Keeps equal ones in the order in which they were met.
        list[first..].reverse();
        if list.len() - first < 2 {
            return;
        }
        match &self.ranks {
            Some(ranks) => list[first..].sort_by_key(|node| ranks[self.frame_number(*node) as usize]),
            None => list[first..].sort_by(|a, b| match (self.frame(*a), self.frame(*b)) {
                (Some(a), Some(b)) => by_file_func_line(a, b),
                _ => Ordering::Equal,
            }),
        }
    }

    fn node(&self, node: u32) -> &Node {
        &self.tree.nodes[node as usize]
    }
}
