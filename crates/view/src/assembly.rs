//! Disassembled functions as the page reads them, and at which instruction each sample was taken.
//!
//! The innermost address of a stack is exact: it is the instruction at which the thread was interrupted, or to which it returns from the
//! kernel. (Of callers, the recording has the address of the call's last byte.) A CPU often takes the interrupt only when a slow instruction
//! is done, so time may show at the one behind it: the page says so, and moves nothing.

use crate::columns::{Columns, zigzag};
use crate::frames::Strings;
use crate::sources::Files;
use foldhash::HashMap;
use serde::Serialize;
use stackglass_flame::frame_name;
use stackglass_profile::frame::file_name;
use stackglass_profile::{Location, ModuleIndex, Recording, Sample, sanitize};
use stackglass_symbols::Disassembly;
use std::collections::BTreeSet;

/// What is known of disassembled functions before any is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct CodeHead {
    functions: usize,
    instructions: usize,
}

impl CodeHead {
    /// How many functions are in the page.
    pub(crate) fn functions(&self) -> usize {
        self.functions
    }
}

/// A function, as the page has it.
#[derive(Clone, Debug, Serialize)]
struct Row {
    name: String,
    module: String,
    /// Where it begins in the file.
    address: u64,
    /// Number of its first instruction, and how many it has.
    first: usize,
    count: usize,
    /// First byte and size of its text: an instruction a line.
    text: (usize, usize),
    /// Frames in which samples end there: of the function, and of those inlined into it.
    frames: BTreeSet<u32>,
}

#[derive(Serialize)]
struct Rows {
    functions: Vec<Row>,
    /// Names of functions for `code.name`.
    names: Vec<String>,
    /// Module, reason and CPU time (ns) of code that is not there.
    left: Vec<(String, String, u64)>,
}

/// Adds the columns. Samples have the order of the page.
pub(crate) fn write(
    recording: &Recording,
    code: &Disassembly,
    samples: &[&Sample],
    files: &mut Files,
    columns: &mut Columns,
) -> CodeHead {
    let module = |index: ModuleIndex| {
        let path = recording.modules.get(index.0 as usize).map_or("", |module| &module.path);
        sanitize(file_name(path)).into_owned()
    };
    let mut names = Strings::default();
    let (mut functions, mut text) = (Vec::new(), String::new());
    let (mut lengths, mut sources, mut lines, mut inner) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut numbers: HashMap<Location, u64> = HashMap::default();
    for function in &code.functions {
        let (first, begin) = (lengths.len(), text.len());
        let ends =
            function.instructions.iter().skip(1).map(|code| code.address).chain([function.addresses.end]);
        for (code, end) in function.instructions.iter().zip(ends) {
            let at = Location { module: Some(function.module), offset: code.address };
            lengths.push(end.saturating_sub(code.address));
            numbers.insert(at, lengths.len() as u64);
            let has_line = !code.file.is_empty() && code.line > 0;
            sources.push(if has_line { u64::from(files.number(&code.file)) + 1 } else { 0 });
            lines.push(zigzag(code.line));
            inner.push(names.intern(&sanitize(&code.function)));
            text.push_str(&sanitize(&code.text));
            text.push('\n');
        }
        let symbols = &recording.symbols;
        let of_leaves = function.leaves.iter().map(|leaf| symbols.frame_indices(*leaf));
        let outer = function.leaves.first().and_then(|leaf| symbols.frames_of(*leaf).next_back());
        functions.push(Row {
            name: outer.map_or_else(
                || format!("{:#x}", function.addresses.start),
                |frame| frame_name(frame).into_owned(),
            ),
            module: module(function.module),
            address: function.addresses.start,
            first,
            count: function.instructions.len(),
            text: (begin, text.len() - begin),
            frames: of_leaves.flatten().copied().collect(),
        });
    }
    let at = |sample: &&Sample| {
        let (_, leaf) = recording.stacks.frame(sample.stack)?;
        numbers.get(&recording.stacks.location(leaf)).copied()
    };
    columns.push("samples.code", samples.iter().map(|sample| at(sample).unwrap_or(0)));
    let head = CodeHead { functions: functions.len(), instructions: lengths.len() };
    columns.push("code.length", lengths);
    columns.push("code.source", sources);
    columns.push("code.line", lines);
    columns.push("code.name", inner);
    let left = code.left.iter();
    let left =
        left.map(|(of, why, time)| (of.map_or_else(String::new, module), why.to_string(), *time)).collect();
    let rows = Rows { functions, names: names.into_list(), left };
    columns.push_text("code", &serde_json::to_string(&rows).expect("it is JSON"));
    columns.push_text("code.text", &text);
    head
}
