//! The tree of calls of a profile: one node for each distinct way to get to a frame, with how often it was seen.
//!
//! What flame graphs are made of. Reports print the same tree; here foreign frames are in it always.

use crate::report::order::by_file_func_line;
use crate::report::tree::{Node, Tree};
use crate::report::{Pick, Quirks, Recur};
use crate::traces::Traces;
use crate::{DataError, Frame, Report, Source, kinds};

/// Which samples count, and what makes two frames the same.
#[derive(Clone, Debug)]
pub struct Options {
    /// Merges equal frames; otherwise each address has a node of its own.
    pub combine: bool,
    /// Folds recursion by call site.
    pub recur: Recur,
    /// Threads to count, by number.
    pub threads: Pick,
    /// Tasks to count, by id.
    pub tasks: Pick,
    /// An address that the dictionary does not list is an error; otherwise it is an unknown frame.
    #[doc(hidden)]
    pub all_listed: bool,
    /// Folds recursion as the reference does, metadata included.
    #[doc(hidden)]
    pub folds_into_metadata: bool,
}

impl Default for Options {
    fn default() -> Options {
        let (threads, tasks) = (Pick::All, Pick::All);
        Options {
            combine: true,
            recur: Recur::Off,
            threads,
            tasks,
            all_listed: false,
            folds_into_metadata: false,
        }
    }
}

/// Why there is no tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallTreeError {
    /// The data does not say which thread and task a sample is of.
    #[error(transparent)]
    Data(#[from] DataError),
    /// An address has no entry in the dictionary.
    #[error("the dictionary has no entry for address {address:#x}")]
    NotListed {
        /// Which.
        address: u64,
    },
}

/// A tree of calls; node 0 is the root, which is no frame.
///
/// ```
/// use stackglass_profile::{CallTree, Data, Dictionary, Frame};
///
/// let mut dictionary = Dictionary::new();
/// for (address, name) in [(16, "leaf"), (32, "main")] {
///     dictionary.set(address, [Frame { func: name.into(), ..Frame::unknown(address) }]);
/// }
/// let data = Data::new(vec![16, 32, 0, 32, 0]).add_fake_meta(1, 1)?;
/// let seen = CallTree::look(&data, &dictionary, |tree| {
///     let main = tree.children(0)[0];
///     let leaf = tree.children(main)[0];
///     (tree.count(main), tree.count(leaf), tree.frame(leaf).unwrap().func.to_string())
/// })?;
/// assert_eq!(seen, (2, 1, "leaf".to_owned()));
/// # Ok::<(), stackglass_profile::call_tree::CallTreeError>(())
/// ```
pub struct CallTree<'a> {
    tree: Tree<'a>,
    rust: bool,
}

impl CallTree<'_> {
    /// The tree of all samples of a buffer with its dictionary.
    ///
    /// # Errors
    /// When the data has no metadata.
    pub fn look<R>(
        data: &crate::Data,
        dictionary: &crate::Dictionary,
        look: impl FnOnce(&CallTree<'_>) -> R,
    ) -> Result<R, CallTreeError> {
        CallTree::of((data, dictionary), &Options::default(), look)
    }

    /// Builds the tree of the samples that the options pick and shows it.
    ///
    /// # Errors
    /// When data has no metadata.
    pub fn of<'s, R>(
        source: impl Into<Source<'s>>,
        options: &Options,
        look: impl FnOnce(&CallTree<'_>) -> R,
    ) -> Result<R, CallTreeError> {
        let source = source.into();
        if let Source::Data(data, _) = source
            && !data.is_empty()
            && !data.has_meta()
        {
            return Err(DataError::MissingMetadata.into());
        }
        let mut traces = Traces::new(source);
        if options.threads != Pick::All || options.tasks != Pick::All {
            traces.runs.retain(|run| options.threads.has(run.thread) && options.tasks.has(run.task));
            traces.nodes_as_met = false;
        }
        if options.all_listed
            && let Some(address) = traces.first_unlisted()
        {
            return Err(CallTreeError::NotListed { address });
        }
        let folds_into_metadata = options.folds_into_metadata;
        let quirks = Quirks { folds_into_metadata, ..Quirks::default() };
        let report = Report::new().quirks(quirks).c(true).combine(options.combine).recur(options.recur);
        let tree = Tree::build(&traces, &traces.runs, &report);
        let rust = source.frames().iter().any(|frame| frame.func.starts_with("std::rt::lang_start"));
        Ok(look(&CallTree { tree, rust }))
    }

    /// Number of nodes, the root included.
    pub fn len(&self) -> usize {
        self.tree.nodes.len()
    }

    /// True when there is only the root.
    pub fn is_empty(&self) -> bool {
        self.tree.is_empty()
    }

    /// The frame of a node; `None` for the root.
    pub fn frame(&self, node: u32) -> Option<&Frame> {
        self.tree.shown(node).map(|step| step.frame)
    }

    /// Snapshots in a node or below it.
    pub fn count(&self, node: u32) -> u64 {
        self.node(node).count
    }

    /// Whether a call that led to a node went through a vtable or a function pointer.
    pub fn dispatched(&self, node: u32) -> bool {
        self.node(node).dispatched
    }

    /// Whether a node only starts a program or a thread, by its frame.
    pub fn starts(&self, node: u32) -> bool {
        self.frame(node).is_some_and(|frame| kinds::is_start(frame, self.rust))
    }

    /// What a node calls, in the order of file, function and line.
    pub fn children(&self, node: u32) -> Vec<u32> {
        let mut children = Vec::new();
        self.add_children(node, &mut children);
        children
    }

    /// The same, at the end of a list.
    pub fn add_children(&self, node: u32, list: &mut Vec<u32>) {
        let first = list.len();
        list.extend(self.tree.children(node));
        // Equal ones in the order in which they were met.
        list[first..].reverse();
        if list.len() - first > 1 {
            list[first..].sort_by(|a, b| match (self.frame(*a), self.frame(*b)) {
                (Some(a), Some(b)) => by_file_func_line(a, b),
                _ => std::cmp::Ordering::Equal,
            });
        }
    }

    fn node(&self, node: u32) -> &Node {
        &self.tree.nodes[node as usize]
    }
}
