//! What the locations of a recording are called: the dictionary from location to frames.

use crate::{Frame, LocationId, ShortPath};
use foldhash::HashMap;
use std::sync::Arc;

/// Frames of each location, innermost inlined frame first, the real function last.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    frames: Vec<Frame>,
    frame_ids: HashMap<FrameKey, u32>,
    /// By location id: the indices of its frames. Empty: not symbolized yet.
    by_location: Vec<Box<[u32]>>,
    /// By location id, as far as any is true: it ends in a call through a vtable or a function pointer.
    dispatches: Vec<bool>,
    short_paths: HashMap<Arc<str>, ShortPath>,
    /// Modules whose names are wanting, with the reason, by module file name.
    notes: Vec<ModuleNote>,
}

/// Why a module's frames have no or poor names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModuleNote {
    /// Path of the module.
    pub module: Arc<str>,
    /// What is missing.
    pub missing: Missing,
}

/// What symbolization did not find.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Missing {
    /// Function names are there, lines and inlined functions are not.
    DebugInfo = 1,
    /// Not even function names but the exported ones: the file is stripped.
    Names = 2,
    /// The file could not be opened or read.
    File = 3,
    /// The file on disk is not the one that was profiled (build ids differ).
    Changed = 4,
}

/// Everything of a frame, compared in full (two frames that print differently stay apart).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct FrameKey {
    frame: Frame,
    spec: Option<Arc<str>>,
    module: Arc<str>,
    krate: Arc<str>,
}

impl Symbols {
    /// An empty dictionary.
    pub fn new() -> Symbols {
        Symbols::default()
    }

    /// Sets the frames of a location, innermost first. Addresses are not kept apart: frames that
    /// differ in nothing else share an entry.
    pub fn set(&mut self, location: LocationId, frames: impl IntoIterator<Item = Frame>) {
        let ids: Box<[u32]> = frames.into_iter().map(|frame| self.intern(frame)).collect();
        let index = location.0 as usize;
        if self.by_location.len() <= index {
            self.by_location.resize_with(index + 1, Box::default);
        }
        self.by_location[index] = ids;
    }

    /// Says that a location's code ends in a call through a vtable or a function pointer (not through the tables
    /// of the dynamic linker), told from the code before the return address.
    pub fn set_dispatches(&mut self, location: LocationId) {
        let index = location.0 as usize;
        if self.dispatches.len() <= index {
            self.dispatches.resize(index + 1, false);
        }
        self.dispatches[index] = true;
    }

    /// Whether the call at a location goes through a vtable or a function pointer; what it calls was *dispatched*.
    pub fn dispatches(&self, location: LocationId) -> bool {
        self.dispatches.get(location.0 as usize).copied().unwrap_or(false)
    }

    fn intern(&mut self, mut frame: Frame) -> u32 {
        frame.address = 0;
        let key = FrameKey {
            spec: frame.spec.clone(),
            module: frame.module.clone(),
            krate: frame.krate.clone(),
            frame: frame.clone(),
        };
        let next = self.frames.len() as u32;
        *self.frame_ids.entry(key).or_insert_with(|| {
            self.frames.push(frame);
            next
        })
    }

    /// Indices into [`Symbols::frames`] for a location, innermost first; empty when unknown.
    pub fn frame_indices(&self, location: LocationId) -> &[u32] {
        self.by_location.get(location.0 as usize).map_or(&[], |ids| ids)
    }

    /// Frames of a location, innermost first; none when it was not symbolized.
    pub fn frames_of(&self, location: LocationId) -> impl DoubleEndedIterator<Item = &Frame> {
        self.frame_indices(location).iter().map(|i| &self.frames[*i as usize])
    }

    /// All distinct frames.
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// How many locations have an entry (by the highest id that was set).
    pub fn locations(&self) -> usize {
        self.by_location.len()
    }

    /// True when nothing was symbolized.
    pub fn is_empty(&self) -> bool {
        self.by_location.is_empty()
    }

    /// Remembers how a source path is shown.
    pub fn set_short_path(&mut self, file: Arc<str>, short: ShortPath) {
        self.short_paths.insert(file, short);
    }

    /// How a source path is shown, if it has a short form.
    pub fn short_path(&self, file: &str) -> Option<&ShortPath> {
        self.short_paths.get(file)
    }

    /// All short paths, sorted by file.
    pub fn short_paths(&self) -> Vec<(&Arc<str>, &ShortPath)> {
        let mut all: Vec<_> = self.short_paths.iter().collect();
        all.sort_by(|a, b| a.0.cmp(b.0));
        all
    }

    /// Remembers why a module's names are wanting (once per module and reason).
    pub fn note(&mut self, note: ModuleNote) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Why names are wanting.
    pub fn notes(&self) -> &[ModuleNote] {
        &self.notes
    }
}
