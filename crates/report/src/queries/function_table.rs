//! The functions and source lines of a recording, numbered and classified.

use crate::executors::{self, Executors};
use crate::kinds::{self, Class};
use crate::library_code::{OwnLines, is_library_code};
use crate::queries::weight::Weight;
use crate::text::short::in_brackets;
use foldhash::HashMap;
use stackglass_profile::frame::file_name;
use stackglass_profile::{Frame, LocationId, Recording, sanitize};
use std::sync::Arc;

/// Index into [`FunctionTable::functions`].
pub(crate) type FunctionNumber = u32;
/// Index into [`FunctionTable::lines`].
pub(crate) type LineNumber = u32;

/// The name of all functions of Stackglass's own library.
const RECORDER: &str = "[recording allocations]";

/// The line of frames without one.
pub(crate) const NO_LINE: LineNumber = 0;

/// A function, whatever called it.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub name: String,
    /// For foreign functions, the file name of the module. Otherwise empty.
    pub module: String,
    pub class: Class,
    /// It may only start a program or thread.
    pub start: bool,
    /// It is named by its module and its start address there.
    pub by_start: bool,
    /// It belongs to the program, not to one of its libraries.
    pub is_readers_own: bool,
    /// It belongs to an executor or thread pool.
    pub is_executor: bool,
    /// CPU time of stacks that ended in it.
    pub own: Weight,
    /// CPU time of stacks that contained it.
    pub total: Weight,
}

/// A source line.
#[derive(Clone, Debug)]
pub(crate) struct SourceLine {
    pub file: Arc<str>,
    pub line: i64,
    /// CPU time of stacks that ended in it, or in library code that it called.
    pub own: Weight,
}

/// A frame, as numbers of this table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableFrame {
    pub function: FunctionNumber,
    pub line: LineNumber,
    pub class: Class,
    /// It belongs to no standard library, and to no dependency in another language than Rust: its line is one that the reader
    /// may change.
    pub own: bool,
    /// It may only start a program or thread.
    pub start: bool,
    /// The executor that it belongs to.
    pub executor: Executors,
    /// An executor may call the program through it.
    pub glue: bool,
    pub inlined: bool,
    /// Nothing distinguishes its function from others of its module.
    pub nameless: bool,
    /// Distinguishes instances of a generic function: index of the first frame with its full name.
    pub instance: u32,
}

/// All functions and lines of a recording.
#[derive(Clone, Debug)]
pub(crate) struct FunctionTable {
    pub functions: Vec<Function>,
    pub lines: Vec<SourceLine>,
    /// By location: its frames, outermost first.
    places: Vec<Box<[TableFrame]>>,
}

impl FunctionTable {
    pub(crate) fn new(recording: &Recording) -> FunctionTable {
        // Converted stacks do not tell languages apart: there, a `main` may be the program itself.
        let is_start_of_rust = |frame: &Frame| frame.func.starts_with("std::rt::lang_start");
        let rust = recording.has_rust()
            && (recording.info.delay.0 > 0 || recording.symbols.frames().iter().any(is_start_of_rust));
        let mut names = Numbering::new(rust, OwnLines::from_recording(recording));
        let symbols = &recording.symbols;
        let frames: Vec<TableFrame> =
            symbols.frames().iter().map(|frame| names.shown(frame, &frame.module)).collect();
        let place = |(index, location): (usize, &stackglass_profile::Location)| -> Box<[TableFrame]> {
            let module = location.module.and_then(|module| recording.modules.get(module.0 as usize));
            let path = module.map_or("", |module| &module.path);
            match symbols.frame_indices(LocationId(index as u32)) {
                [] => [names.shown(&Frame::unknown(0), path)].into(),
                indices => indices
                    .iter()
                    .rev()
                    .map(|frame| match symbols.frames()[*frame as usize].is_unknown() {
                        true => names.shown(&Frame::unknown(0), path),
                        false => frames[*frame as usize],
                    })
                    .collect(),
            }
        };
        let places = recording.stacks.locations().iter().enumerate().map(place).collect();
        FunctionTable { functions: names.functions, lines: names.lines, places }
    }

    /// Leaves out the frames of Python's interpreter if Python functions have names: its loop runs them, so their time is
    /// that of the functions, and what they call is called by them.
    pub(crate) fn leave_out_interpreter(&mut self) {
        let is_python = |function: &Function| function.module.is_empty() && function.name.starts_with("py::");
        if !self.functions.iter().any(is_python) {
            return;
        }
        let is_loop: Vec<bool> =
            self.functions.iter().map(|function| kinds::is_python_loop(&function.name)).collect();
        for frames in &mut self.places {
            let of_loop = |frame: &&TableFrame| is_loop[frame.function as usize];
            if frames.iter().any(|frame| of_loop(&frame)) {
                *frames = frames.iter().filter(|frame| !of_loop(frame)).copied().collect();
            }
        }
    }

    /// Frames of a location, outermost first.
    pub(crate) fn frames(&self, location: LocationId) -> &[TableFrame] {
        &self.places[location.0 as usize]
    }
}

/// Whether a frame belongs to the program, not to one of its libraries. `rust`: the program is compiled from Rust.
pub(crate) fn is_readers_own(frame: &Frame, rust: bool) -> bool {
    kinds::class(frame) == Class::Own
        && !kinds::is_start(frame, rust)
        && Executors::from_frame(frame).is_none()
        && !kinds::is_library(frame)
        && !kinds::is_dependency(&frame.file)
        && !is_library_code(frame)
}

struct Numbering {
    rust: bool,
    own_lines: OwnLines,
    functions: Vec<Function>,
    lines: Vec<SourceLine>,
    /// By name and, for foreign functions, module.
    function_numbers: HashMap<(String, String), FunctionNumber>,
    line_numbers: HashMap<(Arc<str>, i64), LineNumber>,
    instances: HashMap<Arc<str>, u32>,
}

impl Numbering {
    fn new(rust: bool, own_lines: OwnLines) -> Numbering {
        let no_line = SourceLine { file: Arc::from(""), line: -1, own: Weight::default() };
        Numbering {
            rust,
            own_lines,
            functions: Vec::new(),
            lines: vec![no_line],
            function_numbers: HashMap::default(),
            line_numbers: HashMap::default(),
            instances: HashMap::default(),
        }
    }

    fn shown(&mut self, frame: &Frame, module: &str) -> TableFrame {
        let module = file_name(module);
        let class = kinds::class(frame);
        let start = kinds::is_start(frame, self.rust);
        let executor = Executors::from_frame(frame);
        let recorder = kinds::is_recorder(module);
        let name = match (&*frame.func, module) {
            // The inside of the recorder is of no interest, but what it costs is.
            _ if recorder => RECORDER.to_owned(),
            ("", "") => "[unknown code]".to_owned(),
            ("", module) => in_brackets(module),
            (func, _) if class == Class::C => sanitize(public_name(func)).into_owned(),
            (func, _) => sanitize(func).into_owned(),
        };
        let key = (name, if frame.foreign { module.to_owned() } else { String::new() });
        let function = match self.function_numbers.get(&key) {
            Some(number) => *number,
            None => {
                let weight = Weight::default();
                self.functions.push(Function {
                    name: key.0.clone(),
                    module: key.1.clone(),
                    class,
                    start,
                    by_start: !recorder && frame.start_as_name().is_some(),
                    is_readers_own: is_readers_own(frame, self.rust),
                    is_executor: !executor.is_none(),
                    own: weight,
                    total: weight,
                });
                let number = self.functions.len() as u32 - 1;
                self.function_numbers.insert(key, number);
                number
            }
        };
        let line = match frame.file.is_empty() || frame.line < 0 {
            true => NO_LINE,
            false => *self.line_numbers.entry((frame.file.clone(), frame.line)).or_insert_with(|| {
                self.lines.push(SourceLine {
                    file: frame.file.clone(),
                    line: frame.line,
                    own: Weight::default(),
                });
                self.lines.len() as u32 - 1
            }),
        };
        let next = self.instances.len() as u32;
        let full = frame.spec.clone().unwrap_or_else(|| frame.func.clone());
        let instance = *self.instances.entry(full).or_insert(next);
        let nameless = recorder || frame.func.is_empty();
        let glue = executors::is_glue(frame);
        let inlined = frame.inlined;
        let own = class == Class::Own && !is_library_code(frame) && !self.own_lines.is_dependency(frame);
        TableFrame { function, line, class, own, start, executor, glue, inlined, nameless, instance }
    }
}

/// The exported name of a function of the C library: `malloc` for `__GI___libc_malloc`.
pub(crate) fn public_name(func: &str) -> &str {
    let func = func.strip_prefix("__GI_").unwrap_or(func);
    let plain = func.strip_prefix("__libc_").unwrap_or(func);
    if ["malloc", "free", "calloc", "realloc", "memalign"].contains(&plain) { plain } else { func }
}

#[cfg(test)]
mod tests {
    use super::public_name;

    #[test]
    fn public_names() {
        assert_eq!(public_name("__GI___libc_malloc"), "malloc");
        assert_eq!(public_name("__GI___qsort_r"), "__qsort_r");
        assert_eq!(public_name("__libc_start_main_impl"), "__libc_start_main_impl");
    }
}
