//! Which frames become boxes, and which status bits they have.

use crate::{Status, status};
use stackglass_profile::Frame;

/// Behaviour of the reference to repeat instead of correct.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Quirks {
    /// Status bits by Julia's names only, and only Julia's shell is trimmed.
    pub julia_only: bool,
    /// An address that the dictionary does not list is an error.
    pub all_listed: bool,
    /// Folding recursion continues into the metadata.
    pub folds_into_metadata: bool,
    /// With folded recursion, a sample counts in every node that it passes. Children may then be wider than their parent.
    pub counts_passed: bool,
}

impl Quirks {
    /// All of them, as in the reference.
    pub const ALL: Quirks =
        Quirks { julia_only: true, all_listed: true, folds_into_metadata: true, counts_passed: true };
}

/// A function, by the full names of function and source file.
#[derive(Debug)]
pub(crate) struct FunctionInFile {
    pub func: String,
    pub file: String,
}

/// The options of a flame graph that concern single frames.
#[derive(Debug, Default)]
pub(crate) struct FrameOptions {
    /// Foreign frames have separate boxes.
    pub foreign: bool,
    /// Functions left out with everything that they call.
    pub pruned: Vec<FunctionInFile>,
    /// Behaviour of the reference to repeat.
    pub quirks: Quirks,
}

impl FrameOptions {
    /// Whether a frame is left out with everything that it calls.
    pub(crate) fn prunes(&self, frame: &Frame) -> bool {
        self.pruned.iter().any(|one| *one.func == *frame.func && *one.file == *frame.file)
    }

    /// The status bits of a frame by its name.
    pub(crate) fn status(&self, frame: &Frame) -> Status {
        if self.quirks.julia_only { status::of_julia(frame) } else { status::of_name(frame) }
    }
}
