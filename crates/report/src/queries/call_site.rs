//! Where a stack is, in the reader's terms: the innermost function that is no library's, and what it called there.

use super::function_table::FunctionTable;
use crate::kinds::Class;
use stackglass_profile::{Recording, StackId};
use std::sync::Arc;

/// Where a thread is.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Place {
    /// The library function that the innermost own function called.
    pub(crate) wait: Option<String>,
    /// The innermost own function.
    pub(crate) caller: Option<String>,
    /// The line of the call.
    pub(crate) line: Option<(Arc<str>, i64)>,
}

/// The same; of code without lines the innermost caller that has one stands with it.
pub(crate) fn place_with_line(recording: &Recording, names: &FunctionTable, stack: StackId) -> Place {
    let place = place(recording, names, stack);
    if place.line.is_some() || place.caller.is_none() {
        return place;
    }
    let frames = recording.stacks.walk(stack).flat_map(|location| names.frames(location).iter().rev());
    let lined = frames.filter(|frame| frame.class == Class::Own).find_map(|frame| {
        let line = &names.lines[frame.line as usize];
        let name = &names.functions[frame.function as usize].name;
        (!line.file.is_empty()).then(|| (name.clone(), (line.file.clone(), line.line)))
    });
    match lined {
        Some((caller, line)) => {
            Place { wait: place.wait.or(place.caller), caller: Some(caller), line: Some(line) }
        }
        None => place,
    }
}

/// Where a stack of `recording`, whose names these are, ends.
pub(crate) fn place(recording: &Recording, names: &FunctionTable, stack: StackId) -> Place {
    let name = |function: u32| names.functions[function as usize].name.clone();
    let mut wait: Option<u32> = None;
    for location in recording.stacks.walk(stack) {
        for frame in names.frames(location).iter().rev() {
            match frame.class {
                Class::Own => {
                    let line = &names.lines[frame.line as usize];
                    let line = (!line.file.is_empty()).then(|| (line.file.clone(), line.line));
                    return Place { wait: wait.map(name), caller: Some(name(frame.function)), line };
                }
                _ if frame.start && wait.is_some() => {}
                _ => wait = Some(frame.function),
            }
        }
    }
    Place { wait: wait.map(name), caller: None, line: None }
}
