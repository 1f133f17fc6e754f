//! The options of a flame graph, and making one of a profile.

use crate::frame_options::{FrameOptions, FunctionInFile};
use crate::{Graph, Matcher, filter, from_call_tree, runtime};

pub use crate::frame_options::Quirks;

use stackglass_report::call_tree::{CallTreeError, Moments, Options};
use stackglass_report::{CallTrees, Pick, Recur, Source};

/// How a flame graph is made of a profile.
///
/// Options have the names and meanings of FlameGraphs.jl's `flamegraph`; `threads` and `tasks` are all unless set.
#[derive(Debug, Default)]
pub struct Flamegraph {
    frames: FrameOptions,
    calls: Options,
    keeps_runtime: bool,
    filter: Option<Matcher>,
}

/// A flame graph, or why there is none.
#[derive(Clone, Debug)]
pub struct FlamegraphResult {
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
        self.frames.foreign = shown;
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
        self.frames.pruned.push(FunctionInFile { func: func.into(), file: file.into() });
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
        self.frames.quirks = quirks;
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
    pub fn graph<'s>(&self, source: impl Into<Source<'s>>) -> Result<FlamegraphResult, FlameError> {
        let source = source.into();
        self.graph_of(&CallTrees::new(source)?, source)
    }

    /// The same where several graphs are made of one profile: its samples are counted once.
    ///
    /// # Errors
    /// As [`Flamegraph::graph`].
    pub fn graph_of(
        &self,
        trees: &CallTrees<'_>,
        source: Source<'_>,
    ) -> Result<FlamegraphResult, FlameError> {
        Ok(match from_call_tree::graph(&trees.tree(&self.calls)?, &self.frames, source) {
            None => FlamegraphResult { graph: None, warning: Some(Warning::Empty) },
            Some(graph) => self.trimmed(graph),
        })
    }

    /// The options that concern single frames.
    pub(crate) fn frames(&self) -> &FrameOptions {
        &self.frames
    }

    /// A graph without its runtime's outermost boxes and without what the filter leaves out.
    pub(crate) fn trimmed(&self, mut graph: Graph) -> FlamegraphResult {
        if !self.keeps_runtime {
            graph = runtime::without_shell(graph);
            if !self.frames.quirks.julia_only {
                graph = runtime::without_starts(graph);
            }
        }
        let Some(matcher) = &self.filter else {
            return FlamegraphResult { graph: Some(graph), warning: None };
        };
        match filter::keep(&graph, matcher) {
            Some(kept) => FlamegraphResult { graph: Some(kept), warning: None },
            None => FlamegraphResult { graph: Some(graph), warning: Some(Warning::FilterIgnored) },
        }
    }
}
