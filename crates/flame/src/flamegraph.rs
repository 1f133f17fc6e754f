//! The options of a flame graph, and building one from a profile.

use crate::frame_options::{FrameOptions, FunctionInFile};
use crate::{Graph, Matcher, filter, from_call_tree, startup_code};

pub use crate::frame_options::Quirks;

use stackglass_report::call_tree::{CallTreeError, Options, StateFilter};
use stackglass_report::{CallTrees, Pick, Recur, Source};

/// The options of a flame graph.
///
/// They have the names and meanings of FlameGraphs.jl's `flamegraph`, except that all threads and tasks are the default.
#[derive(Debug, Default)]
pub struct Flamegraph {
    frames: FrameOptions,
    calls: Options,
    keeps_runtime: bool,
    filter: Option<Matcher>,
}

/// A flame graph, or the reason why there is none.
#[derive(Clone, Debug)]
pub struct FlamegraphResult {
    /// The graph; `None` if no samples were selected.
    pub graph: Option<Graph>,
    /// A message for the reader.
    pub warning: Option<Warning>,
}

/// A message for the reader.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Warning {
    /// No samples were selected.
    #[error(
        "there are no samples to draw: run the program longer, sample more often, or select other threads and tasks"
    )]
    Empty,
    /// Nothing matches the filter, so the graph is unfiltered.
    #[error("no frame satisfies the filter, so it is ignored")]
    FilterIgnored,
}

/// Why no graph can be built.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(transparent)]
pub struct FlameError(#[from] CallTreeError);

impl Flamegraph {
    /// All samples, without foreign frames.
    ///
    /// Samples of sleeping threads count, as in the reference. [`Flamegraph::moments`] excludes them, as the command does. In
    /// a program without Rust all frames are foreign: see [`Flamegraph::c`].
    pub fn new() -> Flamegraph {
        Flamegraph::default()
    }

    /// Shows foreign frames, those not compiled from Rust. If hidden, their status bits go to their callers.
    pub fn c(mut self, shown: bool) -> Flamegraph {
        self.frames.foreign = shown;
        self
    }

    /// Merges equal frames; otherwise each address has a separate box.
    pub fn combine(mut self, combined: bool) -> Flamegraph {
        self.calls.combine = combined;
        self
    }

    /// Folds recursion by call site: a sample is drawn only where it ends, as if the recursion were a loop.
    pub fn recur(mut self, recur: Recur) -> Flamegraph {
        self.calls.recur = recur;
        self
    }

    /// Trims code that only starts programs and threads, as Julia trims its shell. On by default.
    pub fn norepl(mut self, trimmed: bool) -> Flamegraph {
        self.keeps_runtime = !trimmed;
        self
    }

    /// Omits a function of a file, with everything that it calls. Both are whole paths or the ends of paths: `de::from_str` and
    /// `src/de.rs`. [`Flamegraph::prunes_in_vain`] tells whether one is nowhere.
    pub fn prune(mut self, func: impl Into<String>, file: impl Into<String>) -> Flamegraph {
        self.frames.pruned.push(FunctionInFile { func: func.into(), file: file.into() });
        self
    }

    /// Keeps only branches with a matching box.
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

    /// Repeats behaviour of the reference that is otherwise corrected.
    #[doc(hidden)]
    pub fn quirks(mut self, quirks: Quirks) -> Flamegraph {
        self.calls.all_listed = quirks.all_listed;
        self.calls.folds_into_metadata = quirks.folds_into_metadata;
        self.calls.counts_passed = quirks.counts_passed;
        self.frames.quirks = quirks;
        self
    }

    /// Thread states to count: all by default.
    pub fn moments(mut self, moments: StateFilter) -> Flamegraph {
        self.calls.moments = moments;
        self
    }

    /// Builds the graph of a recording, or of a buffer with its dictionary.
    ///
    /// # Errors
    /// If data has no metadata.
    pub fn graph<'s>(&self, source: impl Into<Source<'s>>) -> Result<FlamegraphResult, FlameError> {
        let source = source.into();
        self.graph_of(&CallTrees::new(source)?, source)
    }

    /// As [`Flamegraph::graph`], for several graphs of one profile: its samples are aggregated only once.
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

    /// Whether a function to [omit](Flamegraph::prune) is in no sample, in the file that was given for it.
    pub fn prunes_in_vain<'s>(&self, source: impl Into<Source<'s>>) -> bool {
        let frames = source.into().frames();
        let exactly = self.frames.quirks.julia_only;
        let is_somewhere = |one: &FunctionInFile| frames.iter().any(|frame| one.is_of(frame, exactly));
        !self.frames.pruned.iter().all(is_somewhere)
    }

    /// The options that concern single frames.
    pub(crate) fn frames(&self) -> &FrameOptions {
        &self.frames
    }

    /// The graph without runtime boxes and filtered branches.
    pub(crate) fn trimmed(&self, mut graph: Graph) -> FlamegraphResult {
        if !self.keeps_runtime {
            graph = startup_code::without_shell(graph);
            if !self.frames.quirks.julia_only {
                graph = startup_code::without_starts(graph);
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
