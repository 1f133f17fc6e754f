//! The call site of a stack: the innermost function outside of libraries, and the library function it called.

use super::function_table::{FunctionTable, TableFrame};
use crate::kinds::Class;
use stackglass_profile::{Recording, StackId};
use std::sync::Arc;

/// A line of a source file.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct CallLine {
    pub(crate) file: Arc<str>,
    pub(crate) line: i64,
}

/// Where a stack ends, as shown to the reader.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct CallSite {
    /// The library function that was called.
    pub(crate) callee: Option<String>,
    /// The innermost function outside of libraries.
    pub(crate) caller: Option<String>,
    /// The line of the call.
    pub(crate) line: Option<CallLine>,
}

/// As [`call_site`]. For code without lines, the innermost caller with a line is taken.
pub(crate) fn call_site_with_line(recording: &Recording, names: &FunctionTable, stack: StackId) -> CallSite {
    let site = call_site(recording, names, stack);
    if site.line.is_some() || site.caller.is_none() {
        return site;
    }
    let frames = recording.stacks.walk(stack).flat_map(|location| names.frames(location).iter().rev());
    let lined = frames.filter(|frame| frame.class == Class::Own).find_map(|frame| {
        let line = &names.lines[frame.line as usize];
        let name = &names.functions[frame.function as usize].name;
        (!line.file.is_empty()).then(|| (name.clone(), CallLine { file: line.file.clone(), line: line.line }))
    });
    match lined {
        Some((caller, line)) => {
            CallSite { callee: site.callee.or(site.caller), caller: Some(caller), line: Some(line) }
        }
        None => site,
    }
}

/// The call site of a stack of `recording`, which `names` was made from.
pub(crate) fn call_site(recording: &Recording, names: &FunctionTable, stack: StackId) -> CallSite {
    let frames = || recording.stacks.walk(stack).flat_map(|location| names.frames(location).iter().rev());
    // Threads of a library alone have no code of the reader's: there, the library's is taken.
    let own = if frames().any(|frame| frame.own && !frame.start) {
        |frame: &TableFrame| frame.own
    } else {
        |frame: &TableFrame| frame.class == Class::Own
    };
    let name = |function: u32| names.functions[function as usize].name.clone();
    let mut callee: Option<u32> = None;
    for location in recording.stacks.walk(stack) {
        for frame in names.frames(location).iter().rev() {
            match own(frame) {
                true => {
                    let line = &names.lines[frame.line as usize];
                    let line = (!line.file.is_empty())
                        .then(|| CallLine { file: line.file.clone(), line: line.line });
                    return CallSite { callee: callee.map(name), caller: Some(name(frame.function)), line };
                }
                false if frame.start && callee.is_some() => {}
                false => callee = Some(frame.function),
            }
        }
    }
    CallSite { callee: callee.map(name), caller: None, line: None }
}
