//! Progress and results of symbolization.

/// Progress of symbolization.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Finished parts.
    pub done: usize,
    /// All parts. A part is a module or a unit of debug information.
    pub total: usize,
}

/// Result of symbolization.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Outcome {
    /// Locations processed.
    pub locations: usize,
    /// Locations with a function name.
    pub named: usize,
    /// Locations with a source line.
    pub with_line: usize,
    /// One line on what debuginfod servers sent, and which of them failed; `None` if there is nothing to say.
    pub debuginfod: Option<String>,
    /// Errors, by file. They affect only names and lines of the frames in that file.
    pub problems: Vec<stackglass_debug_info::Error>,
}
