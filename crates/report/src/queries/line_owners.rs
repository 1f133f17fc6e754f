//! Which source line owns the time of a stack: in listings of sources, a line has the time of what it calls in libraries as its own.

use crate::kinds::{self, Class};
use crate::library_code::{OwnLines, is_library_code};
use crate::queries::waits::Waits;
use stackglass_profile::{Frame, Recording, StackId};
use std::sync::Arc;

/// The lines that own the time of stacks.
///
/// ```
/// use stackglass_profile::{Recording, StackId};
/// use stackglass_report::LineOwners;
///
/// assert_eq!(LineOwners::new(&Recording::default()).of(StackId(0)), None);
/// ```
pub struct LineOwners<'r> {
    recording: &'r Recording,
    waits: Option<Waits<'r>>,
    /// By frame index.
    owners: Vec<Owner>,
}

/// Whose line a frame is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Owner {
    /// In no standard library, and in no dependency of another language than Rust.
    Reader,
    /// In such a dependency.
    Dependency,
    /// In a standard library, the C library, or a header that was installed with the system.
    Library,
}

impl<'r> LineOwners<'r> {
    /// The owners in a recording.
    pub fn new(recording: &'r Recording) -> LineOwners<'r> {
        let own_lines = OwnLines::from_recording(recording);
        let owner = |frame: &Frame| match () {
            () if kinds::class(frame) != Class::Own || is_library_code(frame) => Owner::Library,
            () if own_lines.is_dependency(frame) => Owner::Dependency,
            () => Owner::Reader,
        };
        let owners = recording.symbols.frames().iter().map(owner).collect();
        LineOwners { recording, waits: Waits::new(recording), owners }
    }

    /// File and line that own the time of a stack: that of the `.await` in which it waits, or of the innermost frame outside of
    /// libraries and of dependencies in other languages than Rust. Where there is none, that of the innermost dependency, or the
    /// innermost line. `None` if that line or the whole stack is unknown.
    pub fn of(&self, stack: StackId) -> Option<(Arc<str>, i64)> {
        if let Some(wait) = self.waits.as_ref().and_then(|waits| waits.of(stack)) {
            return Some((wait.file, wait.line));
        }
        let symbols = &self.recording.symbols;
        let (mut innermost, mut dependency) = (None, None);
        for location in self.recording.stacks.walk(stack) {
            let frames = symbols.frame_indices(location);
            if frames.is_empty() {
                return None;
            }
            for index in frames {
                let frame = &symbols.frames()[*index as usize];
                let line = has_line(frame).then_some(frame);
                match self.owners[*index as usize] {
                    Owner::Reader => return line.map(place),
                    Owner::Dependency => dependency = dependency.or(line),
                    Owner::Library => innermost = innermost.or(line),
                }
            }
        }
        dependency.or(innermost).map(place)
    }
}

fn place(frame: &Frame) -> (Arc<str>, i64) {
    (frame.file.clone(), frame.line)
}

/// Whether a frame has a source line.
pub fn has_line(frame: &Frame) -> bool {
    !frame.file.is_empty() && frame.line > 0
}
