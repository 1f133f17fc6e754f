//! The options of a flame graph, and making one of a profile.

use crate::{Graph, Matcher, Status, filter, from_calls, runtime};
use stackglass_report::call_tree::{CallTreeError, Moments, Options};
use stackglass_report::{CallTrees, Pick, Recur, Source};

/// How a flame graph is made of a profile.
///
/// Options have the names and meanings of FlameGraphs.jl's `flamegraph`; `threads` and `tasks` are all unless set.
#[derive(Debug, Default)]
pub struct Flamegraph {
    pub(crate) c: bool,
    calls: Options,
    pub(crate) keeps_runtime: bool,
    pub(crate) pruned: Vec<(String, String)>,
    filter: Option<Matcher>,
    pub(crate) quirks: Quirks,
}

/// Behaviour of the reference that we otherwise correct.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Quirks {
    /// Bits by Julia's names only, and nothing but Julia's shell is trimmed.
    pub julia_only: bool,
    /// An address that the dictionary does not list is an error.
    pub all_listed: bool,
    /// Folding recursion runs on into the metadata.
    pub folds_into_metadata: bool,
    /// Where recursion is folded, a sample counts wherever it passes: children may be wider than their parent.
    pub counts_passed: bool,
}

impl Quirks {
    /// All of them, as in the reference.
    pub const ALL: Quirks =
        Quirks { julia_only: true, all_listed: true, folds_into_metadata: true, counts_passed: true };
}

/// A flame graph, or why there is none.
#[derive(Clone, Debug)]
pub struct Flamegraphed {
    /// The graph; `None` when no sample was picked.
    pub graph: Option<Graph>,
    /// What there is to say about it.
    pub warning: Option<Warning>,
}

/// A message for people.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Warning {
    /// There is no graph.
    #[error(
        "there are no samples to draw: run the program longer, sample more often, or pick other threads and tasks"
    )]
    Empty,
    /// The graph is not filtered.
    #[error("no frame satisfies the filter, so it is ignored")]
    FilterIgnored,
}

/// Why there can be no graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(transparent)]
pub struct FlameError(#[from] CallTreeError);

impl Flamegraph {
    /// All samples, without foreign frames.
    ///
    /// Samples of sleeping threads count too, as in the reference; [`Flamegraph::moments`] leaves them out, as the
    /// command does. In a program without Rust all frames are foreign: see [`Flamegraph::c`].
    pub fn new() -> Flamegraph {
        Flamegraph::default()
    }

    /// Shows foreign frames, those not compiled from Rust. Otherwise their bits go to their caller.
    pub fn c(mut self, shown: bool) -> Flamegraph {
        self.c = shown;
        self
    }

    /// Merges equal frames; otherwise each address has a box of its own.
    pub fn combine(mut self, combined: bool) -> Flamegraph {
        self.calls.combine = combined;
        self
    }

    /// Folds recursion by call site: a sample is drawn where it ends, as if there had been a loop.
    pub fn recur(mut self, recur: Recur) -> Flamegraph {
        self.calls.recur = recur;
        self
    }

    /// Trims code that only starts programs and threads (what Julia does with its shell). On unless switched off.
    pub fn norepl(mut self, trimmed: bool) -> Flamegraph {
        self.keeps_runtime = !trimmed;
        self
    }

    /// Leaves out functions of a file, and all that they call. Both names are compared in full.
    pub fn prune(mut self, func: impl Into<String>, file: impl Into<String>) -> Flamegraph {
        self.pruned.push((func.into(), file.into()));
        self
    }

    /// Keeps only branches with a box that matches.
    pub fn filter(mut self, matcher: Matcher) -> Flamegraph {
        self.filter = Some(matcher);
        self
    }

    /// Threads to count, by number.
    pub fn threads(mut self, pick: impl Into<Pick>) -> Flamegraph {
        self.calls.threads = pick.into();
        self
    }

    /// Tasks to count, by id.
    pub fn tasks(mut self, pick: impl Into<Pick>) -> Flamegraph {
        self.calls.tasks = pick.into();
        self
    }

    /// Repeats behaviour of the reference that we otherwise correct.
    #[doc(hidden)]
    pub fn quirks(mut self, quirks: Quirks) -> Flamegraph {
        self.calls.all_listed = quirks.all_listed;
        self.calls.folds_into_metadata = quirks.folds_into_metadata;
        self.calls.counts_passed = quirks.counts_passed;
        self.quirks = quirks;
        self
    }

    /// Moments to count: all of them unless set.
    pub fn moments(mut self, moments: Moments) -> Flamegraph {
        self.calls.moments = moments;
        self
    }

    /// Makes the graph of a recording, or of a buffer with its dictionary.
    ///
    /// # Errors
    /// When data does not tell threads and tasks.
    pub fn graph<'s>(&self, source: impl Into<Source<'s>>) -> Result<Flamegraphed, FlameError> {
        let source = source.into();
        self.graph_of(&CallTrees::new(source)?, source)
    }

    /// The same where several graphs are made of one profile: its samples are counted once.
    ///
    /// # Errors
    /// As [`Flamegraph::graph`].
    pub fn graph_of(&self, trees: &CallTrees<'_>, source: Source<'_>) -> Result<Flamegraphed, FlameError> {
        Ok(match from_calls::graph(&trees.tree(&self.calls)?, self, source) {
            None => Flamegraphed { graph: None, warning: Some(Warning::Empty) },
            Some(graph) => self.trimmed(graph),
        })
    }

    /// A graph without its runtime's outermost boxes and without what the filter leaves out.
    pub(crate) fn trimmed(&self, mut graph: Graph) -> Flamegraphed {
        if !self.keeps_runtime {
            graph = runtime::without_shell(graph);
            if !self.quirks.julia_only {
                graph = runtime::without_starts(graph);
            }
        }
        let Some(matcher) = &self.filter else {
            return Flamegraphed { graph: Some(graph), warning: None };
        };
        match filter::keep(&graph, matcher) {
            Some(kept) => Flamegraphed { graph: Some(kept), warning: None },
            None => Flamegraphed { graph: Some(graph), warning: Some(Warning::FilterIgnored) },
        }
    }

    pub(crate) fn prunes(&self, frame: &stackglass_profile::Frame) -> bool {
        self.pruned.iter().any(|(func, file)| **func == *frame.func && **file == *frame.file)
    }

    /// The bits of a frame by its name.
    pub(crate) fn status(&self, frame: &stackglass_profile::Frame) -> Status {
        if self.quirks.julia_only { crate::status::of_julia(frame) } else { crate::status::of_name(frame) }
    }
}
