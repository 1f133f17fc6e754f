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

/// A function in a source file.
#[derive(Debug)]
pub(crate) struct FunctionInFile {
    /// Its path, or the end of it.
    pub func: String,
    /// The path of the file, or the end of it.
    pub file: String,
}

impl FunctionInFile {
    /// Whether a frame has this function and file. `exactly`: by full names only.
    pub(crate) fn is_of(&self, frame: &Frame, exactly: bool) -> bool {
        let ends = |path: &str, end: &str, separator: &str| {
            let before = path.strip_suffix(end).filter(|_| !end.is_empty());
            path == end || !exactly && before.is_some_and(|before| before.ends_with(separator))
        };
        ends(&frame.func, &self.func, "::") && ends(&frame.file, &self.file, "/")
    }
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
        self.pruned.iter().any(|one| one.is_of(frame, self.quirks.julia_only))
    }

    /// The status bits of a frame by its name.
    pub(crate) fn status(&self, frame: &Frame) -> Status {
        if self.quirks.julia_only { status::of_julia(frame) } else { status::of_name(frame) }
    }
}
