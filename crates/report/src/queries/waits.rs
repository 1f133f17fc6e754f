//! Where tasks wait, in the reader's own code: the line of the innermost `.await` there, and the future in which the wait ends.
//!
//! An await stack ends in a future of a library: `Sleep` says little. The time belongs to the function that awaits it.

use crate::queries::function_table::is_readers_own;
use crate::text::short::last_name;
use stackglass_profile::{AwaitKind, AwaitLocation, Frame, Recording, StackId};
use std::sync::Arc;

/// The last frame of a task that was woken, and waits for a worker of its runtime.
const READY: &str = "[ready]";

/// A line in which tasks wait.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Wait {
    /// The function.
    pub function: Arc<str>,
    /// Its source file.
    pub file: Arc<str>,
    /// The line of the `.await`.
    pub line: i64,
    /// The innermost future; empty if it is not known.
    pub future: Arc<str>,
    /// The line is in the program itself. Otherwise only libraries are on the stack.
    pub is_own: bool,
}

impl Wait {
    /// What it waits in, in words: `waits in Sleep`. Empty if the future is not known.
    pub fn words(future: &str) -> String {
        match future {
            "" => String::new(),
            READY => "waits for a worker".to_owned(),
            future => format!("waits in {}", Wait::short(future)),
        }
    }

    /// The same in one word: `Sleep`, `ready`.
    pub(crate) fn short(future: &str) -> &str {
        last_name(future).trim_matches(['[', ']'])
    }
}

/// The waits in a recording with await stacks.
pub struct Waits<'r> {
    recording: &'r Recording,
    /// By module: what its frames do, if they are those of await stacks.
    kinds: Vec<Option<AwaitKind>>,
    rust: bool,
}

impl<'r> Waits<'r> {
    /// `None` if the recording has no await stacks.
    pub fn new(recording: &'r Recording) -> Option<Waits<'r>> {
        let kind =
            |module: &stackglass_profile::Module| AwaitLocation::from_path(&module.path, 0).map(|at| at.kind);
        let kinds: Vec<Option<AwaitKind>> = recording.modules.iter().map(kind).collect();
        let has_any = kinds.iter().any(Option::is_some);
        has_any.then(|| Waits { recording, kinds, rust: recording.has_rust() })
    }

    /// The wait that a stack ends in. `None` if its task runs, or if none of its frames has a line.
    pub fn of(&self, stack: StackId) -> Option<Wait> {
        let mut leaf: Option<&Frame> = None;
        let mut found: Option<&Frame> = None;
        for id in self.recording.stacks.walk(stack) {
            let location = self.recording.stacks.location(id);
            let kind = location.module.and_then(|module| *self.kinds.get(module.0 as usize)?);
            // Only the last frame tells whether the task runs.
            let is_wait = |frame: &Frame| kind == Some(AwaitKind::Waiting) || *frame.func == *READY;
            for frame in self.recording.symbols.frames_of(id) {
                if leaf.is_none() && !is_wait(frame) {
                    return None;
                }
                leaf.get_or_insert(frame);
                if frame.file.is_empty() || frame.line <= 0 {
                    continue;
                }
                if is_readers_own(frame, self.rust) {
                    return Some(wait(frame, leaf?, true));
                }
                found = found.or(Some(frame));
            }
        }
        // Only libraries are on the stack.
        Some(wait(found?, leaf?, false))
    }
}

fn wait(at: &Frame, leaf: &Frame, is_own: bool) -> Wait {
    let future = if std::ptr::eq(at, leaf) { "".into() } else { leaf.func.clone() };
    Wait { function: at.func.clone(), file: at.file.clone(), line: at.line, future, is_own }
}
