//! The stack of a thread that polls a task, as the stack of the task: from the task's own function on.
//!
//! The frames around it are those of the runtime. Without them, the time in which a task runs and the time in which it waits are
//! in one tree.

use super::calls::{Call, Calls, Code};
use super::flatten::frame;
use stackglass_profile::{AwaitKind, AwaitLocation};
use std::sync::Arc;

/// A frame of a task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum TaskFrame {
    /// Without an address.
    Await(AwaitLocation),
    /// Code.
    Code(Code),
}

/// Functions between the runtime's and that of the task.
const RUNTIME: [&str; 9] = [
    "stackglass::task::Instrumented::",
    "stackglass_host::task::Task::",
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
pub(crate) fn stack(codes: &[Code], name: &str, is_blocking: bool, names: &Calls) -> Option<Vec<TaskFrame>> {
    let calls: Vec<&Arc<[Call]>> = codes.iter().map(|code| names.get(code)).collect::<Option<_>>()?;
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
#[cfg(feature = "launch")]
pub(crate) fn of_function(codes: &[Code], name: &str, names: &Calls) -> Option<Vec<TaskFrame>> {
    let calls: Vec<&Arc<[Call]>> = codes.iter().map(|code| names.get(code)).collect::<Option<_>>()?;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls at each address, innermost first, and the stack: `#N` for the address with a number.
    fn text(addresses: &[&[&str]], name: &str, is_blocking: bool) -> String {
        let mut names = Calls::default();
        let codes: Vec<Code> =
            (0..addresses.len() as u64).map(|offset| Code { module: None, offset }).collect();
        assert!(addresses.is_empty() || stack(&codes, name, is_blocking, &names).is_none());
        let call = |name: &&str| Call { function: (*name).into(), file: "f.rs".into(), line: 7 };
        codes
            .iter()
            .zip(addresses)
            .for_each(|(code, calls)| drop(names.insert(*code, calls.iter().map(call).collect())));
        let frame = |frame: TaskFrame| match frame {
            TaskFrame::Code(code) => format!("#{}", code.offset),
            TaskFrame::Await(frame) => frame.function.to_string(),
        };
        let stack = stack(&codes, name, is_blocking, &names).expect("all have names");
        stack.into_iter().map(frame).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_stack_begins_at_the_function_of_the_task() {
        let poll = "tokio::runtime::task::raw::poll";
        // As a function of its own, and inlined into the function that polls.
        assert_eq!(
            text(&[&["work"], &["app::go"], &["std::panic::catch_unwind"], &[poll]], "app::go", false),
            "#0 #1"
        );
        assert_eq!(
            text(
                &[&["work"], &["inner", "app::go", "tokio::runtime::task::core::Core::poll", poll]],
                "app::go",
                false
            ),
            "#0 inner app::go"
        );
        // Recursion: the outermost call is that of the task.
        assert_eq!(text(&[&["app::go"], &["app::go"], &[poll]], "app::go", false), "#0 #1");
        // A future that is no coroutine, and a function on a thread of its own.
        assert_eq!(text(&[&["app::Hand::poll"], &[poll]], "app::Hand", false), "#0 app::Hand");
        assert_eq!(text(&[&["work"], &["app::f", poll]], "app::main::{closure#0}", true), "#0 app::f");
        // The runtime itself.
        assert_eq!(
            text(&[&["tokio::runtime::task::state::State::set", poll]], "app::go", false),
            "#0 app::go"
        );
    }
}
