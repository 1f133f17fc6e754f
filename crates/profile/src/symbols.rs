//! The names of a recording: a dictionary from locations to frames.

use crate::{Frame, LocationId, ShortPath, StackId};
use foldhash::HashMap;
use std::sync::Arc;

/// The frames of each location: inlined frames from the innermost on, then the function itself.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    frames: Vec<Frame>,
    frame_ids: HashMap<FrameKey, u32>,
    /// By location id: the indices of its frames. Empty if not symbolized yet.
    by_location: Vec<Box<[u32]>>,
    /// By location id: whether the call there goes through a vtable or a function pointer. Missing entries are false.
    dispatches: Vec<bool>,
    short_paths: HashMap<Arc<str>, ShortPath>,
    /// By stack of an allocation: the allocated type.
    allocated_types: HashMap<StackId, Arc<str>>,
    /// Modules with missing names, with the reason.
    notes: Vec<ModuleNote>,
}

/// Part of the name of a block whose container is known, but not what it holds: `Vec<?> buffer`. Names of types have no `?`.
const UNKNOWN_ELEMENT: &str = "<?>";

/// Whether a name of what is allocated is that of a type. `Vec<?> buffer` counts as unknown.
///
/// ```
/// use stackglass_profile::symbols::is_known_type;
///
/// assert!(is_known_type("Option<Box<str>>") && !is_known_type("HashMap<?> table"));
/// ```
pub fn is_known_type(name: &str) -> bool {
    !name.contains(UNKNOWN_ELEMENT)
}

/// Why frames of a module have no names or incomplete ones.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModuleNote {
    /// Path of the module.
    pub module: Arc<str>,
    /// What is missing.
    pub missing: Missing,
    /// The language of most of its code.
    pub language: Language,
}

/// The language of a module, by what helps to get its names.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(u8)]
pub enum Language {
    /// It is not known.
    #[default]
    Unknown = 0,
    /// Rust.
    Rust = 1,
    /// C, C++, or another language whose compiler has the flags of a C compiler.
    C = 2,
    /// Go.
    Go = 3,
}

/// What symbolization did not find.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Missing {
    /// There are function names, but no lines and inlined functions.
    DebugInfo = 1,
    /// The file is stripped: there are only exported function names.
    Names = 2,
    /// The file could not be opened or read.
    File = 3,
    /// The file has changed since it was profiled: the build ids differ.
    Changed = 4,
}

/// All of a frame for comparison, so that frames that print differently are distinguished.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct FrameKey {
    frame: Frame,
    allocates_for_caller: Option<bool>,
    spec: Option<Arc<str>>,
    module: Arc<str>,
    krate: Arc<str>,
}

impl Symbols {
    /// An empty dictionary.
    pub fn new() -> Symbols {
        Symbols::default()
    }

    /// Sets the frames of a location, innermost first. Their addresses are dropped: frames that differ only in address share
    /// an entry.
    pub fn set(&mut self, location: LocationId, frames: impl IntoIterator<Item = Frame>) {
        let ids: Box<[u32]> = frames.into_iter().map(|frame| self.intern(frame)).collect();
        let index = location.0 as usize;
        if self.by_location.len() <= index {
            self.by_location.resize_with(index + 1, Box::default);
        }
        self.by_location[index] = ids;
    }

    /// Marks the call at a location as one through a vtable or a function pointer, not through the dynamic linker's tables.
    pub fn set_dispatches(&mut self, location: LocationId) {
        let index = location.0 as usize;
        if self.dispatches.len() <= index {
            self.dispatches.resize(index + 1, false);
        }
        self.dispatches[index] = true;
    }

    /// Whether the call at a location goes through a vtable or a function pointer: its callee is *dispatched*.
    pub fn dispatches(&self, location: LocationId) -> bool {
        self.dispatches.get(location.0 as usize).copied().unwrap_or(false)
    }

    /// Says whether the function of a location allocates for its caller. If it does, so does what is inlined into it. If not,
    /// that says nothing of inlined functions.
    pub fn set_allocates_for_caller(&mut self, location: LocationId, allocates: bool) {
        let frames: Vec<Frame> = self.frames_of(location).cloned().collect();
        let said = |frame: Frame| match allocates || !frame.inlined {
            true => Frame { allocates_for_caller: Some(allocates), ..frame },
            false => frame,
        };
        self.set(location, frames.into_iter().map(said));
    }

    /// Sets the type that is allocated at a stack.
    pub fn set_allocated_type(&mut self, stack: StackId, name: Arc<str>) {
        self.allocated_types.insert(stack, name);
    }

    /// The type that is allocated at a stack; `None` if it is unknown.
    pub fn allocated_type(&self, stack: StackId) -> Option<&Arc<str>> {
        self.allocated_types.get(&stack)
    }

    /// All stacks with a known type, sorted by stack.
    pub fn allocated_types(&self) -> Vec<(StackId, &Arc<str>)> {
        let mut all: Vec<_> = self.allocated_types.iter().map(|(stack, name)| (*stack, name)).collect();
        all.sort_by_key(|(stack, _)| *stack);
        all
    }

    fn intern(&mut self, mut frame: Frame) -> u32 {
        frame.address = 0;
        let key = FrameKey {
            allocates_for_caller: frame.allocates_for_caller,
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

    /// Indices into [`Symbols::frames`] for a location, innermost first; empty if not symbolized.
    pub fn frame_indices(&self, location: LocationId) -> &[u32] {
        self.by_location.get(location.0 as usize).map_or(&[], |ids| ids)
    }

    /// The frames of a location, innermost first; none if not symbolized.
    pub fn frames_of(&self, location: LocationId) -> impl DoubleEndedIterator<Item = &Frame> {
        self.frame_indices(location).iter().map(|i| &self.frames[*i as usize])
    }

    /// All distinct frames.
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// Number of locations with entries: the highest id that was set, plus one.
    pub fn locations(&self) -> usize {
        self.by_location.len()
    }

    /// Whether nothing was symbolized.
    pub fn is_empty(&self) -> bool {
        self.by_location.is_empty()
    }

    /// Sets the short form of a source path.
    pub fn set_short_path(&mut self, file: Arc<str>, short: ShortPath) {
        self.short_paths.insert(file, short);
    }

    /// The short form of a source path, if it has one.
    pub fn short_path(&self, file: &str) -> Option<&ShortPath> {
        self.short_paths.get(file)
    }

    /// All short paths, sorted by file.
    pub fn short_paths(&self) -> Vec<(&Arc<str>, &ShortPath)> {
        let mut all: Vec<_> = self.short_paths.iter().collect();
        all.sort_by(|a, b| a.0.cmp(b.0));
        all
    }

    /// Adds a note about a module's missing names, once per module and reason.
    pub fn note(&mut self, note: ModuleNote) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// The notes about missing names.
    pub fn notes(&self) -> &[ModuleNote] {
        &self.notes
    }
}
