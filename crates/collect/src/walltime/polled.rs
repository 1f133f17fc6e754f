//! The stack of a thread that polls a task, as the stack of the task: from the task's own function on.
//!
//! The frames around it are those of the runtime. Without them, the time in which a task runs and the time in which it waits are
//! in one tree.

use super::flatten::frame;
use super::names::{Call, Code, Names};
use stackglass_profile::{AwaitKind, AwaitLocation};
use std::sync::Arc;

/// A frame of a task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum TaskFrame {
    /// Without an address.
    Await(AwaitLocation),
    /// Code.
    Code(Code),
}

/// Functions between the runtime's and that of the task.
const RUNTIME: [&str; 7] = [
    "tokio::runtime::",
    "tokio::loom::",
    "std::panicking::",
    "std::panic::",
    "core::panic::unwind_safe::",
    "core::ops::function::FnOnce::",
    "__rust_try",
];

/// The stack of a task with a name, innermost first. `codes`: from the innermost address to that of the function that polls. `None`
/// if some of them have no names yet.
pub(super) fn stack(codes: &[Code], name: &str, is_blocking: bool, names: &Names) -> Option<Vec<TaskFrame>> {
    let calls: Vec<&Arc<[Call]>> = codes.iter().map(|code| names.of(*code)).collect::<Option<_>>()?;
    if let Some(cut) = cut_at(codes, &calls, name) {
        return Some(cut);
    }
    let root =
        (!is_blocking).then(|| TaskFrame::Await(AwaitLocation { kind: AwaitKind::Polled, ..frame(name) }));
    // The task's function is no coroutine, or was inlined without a trace.
    let is_runtime = |call: &Call| RUNTIME.iter().any(|path| call.function.starts_with(path));
    let outermost = (0..codes.len()).rev().find_map(|at| {
        let last = calls[at].iter().rposition(|call| !is_runtime(call))?;
        Some((at, last))
    });
    let mut stack = match outermost {
        Some((at, last)) => up_to(codes, &calls, at, last),
        // The runtime itself runs.
        None => codes.iter().copied().map(TaskFrame::Code).collect(),
    };
    stack.extend(root);
    Some(stack)
}

/// The stack up to the outermost call of the function with this name. `None` if there is none, or no names.
pub(super) fn of_function(codes: &[Code], name: &str, names: &Names) -> Option<Vec<TaskFrame>> {
    let calls: Vec<&Arc<[Call]>> = codes.iter().map(|code| names.of(*code)).collect::<Option<_>>()?;
    cut_at(codes, &calls, name)
}

fn cut_at(codes: &[Code], calls: &[&Arc<[Call]>], name: &str) -> Option<Vec<TaskFrame>> {
    let is_it = |call: &Call| *call.function == *name;
    let at = calls.iter().rposition(|calls| calls.iter().any(is_it))?;
    let last = calls[at].iter().rposition(is_it)?;
    Some(up_to(codes, calls, at, last))
}

/// The stack up to one call.
fn up_to(codes: &[Code], calls: &[&Arc<[Call]>], at: usize, last: usize) -> Vec<TaskFrame> {
    let whole = last + 1 == calls[at].len();
    let inner = codes[..at + usize::from(whole)].iter().copied().map(TaskFrame::Code);
    // Part of the calls at an address: without the address.
    let part = if whole { &[] } else { &calls[at][..=last] };
    let part = part.iter().map(|call| {
        TaskFrame::Await(AwaitLocation {
            kind: AwaitKind::Polled,
            function: call.function.clone(),
            file: call.file.clone(),
            line: call.line,
        })
    });
    inner.chain(part).collect()
}
