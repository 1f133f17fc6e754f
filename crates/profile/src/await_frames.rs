//! Frames of await stacks in a recording.
//!
//! A task that waits has no code that runs, so its frames have no address. They are locations of pseudo modules: one for each
//! function, whose path has the function and its file, and the offset is the line. So a growing file has all of them at any
//! moment, without names that are written at its end.

use crate::{Frame, Module};
use std::sync::Arc;

/// Begin of the paths of these modules.
const START: &str = "[await]";
/// Between the parts of such a path: no name has this character.
const SEPARATOR: char = '\u{1f}';

/// What a task does in a frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AwaitKind {
    /// It waits.
    Waiting,
    /// It runs, or it could: it is polled, or waits for a worker.
    Polled,
}

/// A frame of a task without an address.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct AwaitLocation {
    /// What the task does.
    pub kind: AwaitKind,
    /// Path of the function, or the type of a future.
    pub function: Arc<str>,
    /// Source file; empty if unknown.
    pub file: Arc<str>,
    /// Line in that file; 0 if unknown.
    pub line: u32,
}

impl AwaitLocation {
    /// The pseudo module of this frame. The offset of its location is the line.
    pub fn module(&self) -> Module {
        let kind = match self.kind {
            AwaitKind::Waiting => "waiting",
            AwaitKind::Polled => "polled",
        };
        let AwaitLocation { function, file, .. } = self;
        let path = format!("{START}{SEPARATOR}{kind}{SEPARATOR}{function}{SEPARATOR}{file}");
        Module { path: path.into(), build_id: [].into() }
    }

    /// The frame at an offset of a pseudo module; `None` for the path of any other module.
    ///
    /// ```
    /// use stackglass_profile::{AwaitKind, AwaitLocation};
    ///
    /// let kind = AwaitKind::Waiting;
    /// let frame = AwaitLocation { kind, function: "app::serve".into(), file: "src/main.rs".into(), line: 42 };
    /// assert_eq!(AwaitLocation::from_path(&frame.module().path, 42), Some(frame));
    /// assert_eq!(AwaitLocation::from_path("/usr/bin/app", 42), None);
    /// ```
    pub fn from_path(path: &str, offset: u64) -> Option<AwaitLocation> {
        let mut parts = path.strip_prefix(START)?.strip_prefix(SEPARATOR)?.splitn(3, SEPARATOR);
        let kind = match parts.next()? {
            "waiting" => AwaitKind::Waiting,
            "polled" => AwaitKind::Polled,
            _ => return None,
        };
        let (function, file) = (parts.next()?.into(), parts.next()?.into());
        Some(AwaitLocation { kind, function, file, line: u32::try_from(offset).unwrap_or(0) })
    }

    /// How reports show it.
    pub fn frame(&self) -> Frame {
        // The path of an implementation begins with its type.
        let krate = self.function.split_once("::").map_or("", |(krate, _)| krate);
        let is_name = krate.chars().all(|char| char.is_alphanumeric() || char == '_');
        Frame {
            func: self.function.clone(),
            file: self.file.clone(),
            line: if self.line == 0 { -1 } else { self.line.into() },
            foreign: false,
            krate: if is_name { krate.into() } else { "".into() },
            ..Frame::unknown(0)
        }
    }
}

/// Whether a module is no file, but holds frames of await stacks.
pub fn is_await_module(path: &str) -> bool {
    path.strip_prefix(START).is_some_and(|rest| rest.starts_with(SEPARATOR))
}
