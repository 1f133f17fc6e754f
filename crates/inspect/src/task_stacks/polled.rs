//! The stack of a thread that polls a task, as the stack of the task: from the task's own function on.
//!
//! The frames around it are those of the runtime, and those between its `async` functions only pass polls on. Without them, the time
//! in which a task runs and the time in which it waits are in one tree.

use super::calls::{Call, Calls, Code};
use super::flatten::frame;
use super::passed_on;
use stackglass_profile::runtimes::tokio;
use stackglass_profile::{AwaitKind, AwaitLocation};
use std::ops::Range;
use std::sync::Arc;

/// A frame of a task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TaskFrame {
    /// Without an address.
    Await(AwaitLocation),
    /// Code.
    Code(Code),
}

/// Our own wrapper of futures.
#[cfg(feature = "task-sampler")]
const WRAPPER: &str = "stackglass::task::Instrumented";
/// Functions between the runtime's and that of the task.
const RUNTIME: [&str; 9] = [
    "stackglass::task::Instrumented::",
    "stackglass_host::task::Task::",
    tokio::RUNTIME,
    tokio::LOOM,
    "std::panicking::",
    "std::panic::",
    "core::panic::unwind_safe::",
    "core::ops::function::FnOnce::",
    "__rust_try",
];

/// The stack of a task with a name, innermost first. `codes`: from the innermost address to that of the function that polls. `None`
/// if some of them have no names yet.
pub fn stack(codes: &[Code], name: &str, is_blocking: bool, names: &Calls) -> Option<Vec<TaskFrame>> {
    let calls: Vec<&Arc<[Call]>> = codes.iter().map(|code| names.get(code)).collect::<Option<_>>()?;
    if let Some(end) = outermost_of(&calls, |call| *call.function == *name) {
        return Some(Frames::up_to(codes, &calls, end).written());
    }
    // The task's function is no coroutine, or was inlined without a trace.
    let is_runtime = |call: &Call| RUNTIME.iter().any(|path| call.function.starts_with(path));
    let outermost = (0..codes.len()).rev().find_map(|at| {
        let last = calls[at].iter().rposition(|call| !is_runtime(call))?;
        Some((at, last))
    });
    let root = || TaskFrame::Await(AwaitLocation { kind: AwaitKind::Polled, ..frame(name) });
    let (mut stack, is_whole) = match outermost {
        Some(end) => {
            let mut frames = Frames::up_to(codes, &calls, end);
            let is_whole = !is_blocking && frames.leave_out_outermost(name);
            (frames.written(), is_whole)
        }
        // The runtime itself runs.
        None => (codes.iter().copied().map(TaskFrame::Code).collect(), false),
    };
    // A type that only has another future is no frame of await stacks.
    if !is_blocking && (!is_whole || passed_on::is_combination(name)) {
        stack.push(root());
    }
    Some(stack)
}

/// The stack up to the outermost call of the function with this name. `None` if there is none, or no names.
#[cfg(feature = "task-sampler")]
pub(crate) fn of_function(codes: &[Code], name: &str, names: &Calls) -> Option<Vec<TaskFrame>> {
    let calls: Vec<&Arc<[Call]>> = codes.iter().map(|code| names.get(code)).collect::<Option<_>>()?;
    let end = outermost_of(&calls, |call| *call.function == *name);
    end.map(|end| Frames::up_to(codes, &calls, end).written())
}

/// The stack of a named task that the thread polls: from its own function on, or from its wrapper's poll. `None` if neither is there,
/// or no names.
#[cfg(feature = "task-sampler")]
pub(crate) fn of_named(codes: &[Code], name: &str, names: &Calls) -> Option<Vec<TaskFrame>> {
    let calls: Vec<&Arc<[Call]>> = codes.iter().map(|code| names.get(code)).collect::<Option<_>>()?;
    if let Some(end) = outermost_of(&calls, |call| *call.function == *name) {
        return Some(Frames::up_to(codes, &calls, end).written());
    }
    // Without the call of the wrapper itself.
    let (at, last) = outermost_of(&calls, |call| call.function.starts_with(WRAPPER))?;
    let mut frames = Frames::up_to(codes, &calls, (at, last));
    frames.frames.pop();
    let mut stack = frames.written();
    stack.push(TaskFrame::Await(AwaitLocation { kind: AwaitKind::Polled, ..frame(name) }));
    Some(stack)
}

/// The outermost call of a function: the index of its address, and of the call there.
fn outermost_of(calls: &[&Arc<[Call]>], is_it: impl Fn(&Call) -> bool) -> Option<(usize, usize)> {
    let at = calls.iter().rposition(|calls| calls.iter().any(&is_it))?;
    Some((at, calls[at].iter().rposition(&is_it)?))
}

/// The calls on a stack.
struct Frames<'c> {
    codes: &'c [Code],
    /// Innermost first.
    frames: Vec<StackFrame<'c>>,
}

/// A call on the stack of a thread.
struct StackFrame<'c> {
    /// The index of its address.
    code: usize,
    /// `None` if it has no name.
    call: Option<&'c Call>,
    /// It is the outermost one at its address.
    is_last: bool,
    is_left_out: bool,
}

impl StackFrame<'_> {
    fn is_body(&self) -> bool {
        self.call.is_some_and(|call| call.is_body)
    }
}

impl<'c> Frames<'c> {
    /// All calls up to one.
    fn up_to(codes: &'c [Code], calls: &[&'c Arc<[Call]>], (at, last): (usize, usize)) -> Frames<'c> {
        let mut frames = Vec::new();
        for (code, of_code) in calls[..=at].iter().enumerate() {
            let end = if code == at { last + 1 } else { of_code.len() };
            let frame = |(number, call)| StackFrame {
                code,
                call,
                is_last: number + 1 >= of_code.len(),
                is_left_out: false,
            };
            frames.extend(of_code[..end].iter().map(Some).enumerate().map(frame));
            frames.extend(of_code.is_empty().then(|| frame((0, None))));
        }
        Frames { codes, frames }
    }

    /// Leaves out frames that only pass a poll on to `outer`, if all of them do. Returns whether they do.
    fn leave_out(&mut self, range: Range<usize>, outer: &str) -> bool {
        let calls: Option<Vec<&Call>> = self.frames[range.clone()].iter().map(|frame| frame.call).collect();
        let is_passed = calls.is_some_and(|calls| passed_on::are_passed_on(calls, outer));
        self.frames[range].iter_mut().for_each(|frame| frame.is_left_out |= is_passed);
        is_passed
    }

    /// Leaves out what is around the outermost body of a coroutine. Returns whether there is nothing else.
    fn leave_out_outermost(&mut self, name: &str) -> bool {
        let body = self.frames.iter().rposition(StackFrame::is_body);
        body.is_some_and(|body| self.leave_out(body + 1..self.frames.len(), name))
    }

    /// The frames of the task, without those between two bodies of coroutines that only pass the poll on. Bodies have no
    /// address, as while they wait: so reports have them once.
    fn written(mut self) -> Vec<TaskFrame> {
        let bodies = self.frames.iter().enumerate().filter(|(_, frame)| frame.is_body());
        let bodies: Vec<usize> = bodies.map(|(number, _)| number).collect();
        for pair in bodies.windows(2) {
            if let Some(outer) = self.frames[pair[1]].call {
                self.leave_out(pair[0] + 1..pair[1], &outer.function);
            }
        }
        let mut written = Vec::with_capacity(self.frames.len());
        for of_code in self.frames.chunk_by(|frame, next| frame.code == next.code) {
            let has_all = of_code.last().is_some_and(|last| last.is_last);
            if has_all && of_code.iter().all(|frame| !frame.is_left_out && !frame.is_body()) {
                written.push(TaskFrame::Code(self.codes[of_code[0].code]));
                continue;
            }
            // Part of the calls at an address, or a body: without the address.
            let shown = of_code.iter().filter(|frame| !frame.is_left_out);
            written.extend(shown.filter_map(|frame| Some(TaskFrame::Await(polled(frame.call?)))));
        }
        written
    }
}

/// A call as a frame without an address.
fn polled(call: &Call) -> AwaitLocation {
    AwaitLocation {
        kind: AwaitKind::Polled,
        function: call.function.clone(),
        file: call.file.clone(),
        line: call.line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `async app::go` is the body of an `async` function, `lib tower::call` a function of a library.
    fn call(name: &str) -> Call {
        let (kind, function) = name.split_once(' ').filter(|_| !name.contains("::{")).unwrap_or(("", name));
        let (is_body, function) = match name.strip_prefix("async ") {
            Some(function) => (true, function),
            None => (false, function),
        };
        let file = if kind == "lib" { "/root/.cargo/registry/src/x/lib.rs" } else { "f.rs" };
        Call { function: function.into(), file: file.into(), line: 7, is_body }
    }

    /// Calls at each address, innermost first, and the stack: `#N` for the address with a number.
    fn text(addresses: &[&[&str]], name: &str, is_blocking: bool) -> String {
        let mut names = Calls::default();
        let codes: Vec<Code> =
            (0..addresses.len() as u64).map(|offset| Code { module: None, offset }).collect();
        assert!(addresses.is_empty() || stack(&codes, name, is_blocking, &names).is_none());
        codes.iter().zip(addresses).for_each(|(code, calls)| {
            drop(names.insert(*code, calls.iter().map(|name| call(name)).collect()))
        });
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

    #[test]
    fn between_async_functions_there_is_nothing() {
        let poll = "tokio::runtime::task::raw::poll";
        // `join!` of two functions, one of them inlined; what the innermost one calls stays.
        let addresses: &[&[&str]] = &[
            &["work", "app::burn"],
            &["async app::fetch", "lib tokio::future::maybe_done::MaybeDone::poll"],
            &["app::both::{closure}", "core::future::poll_fn::PollFn::poll", "async app::both"],
            &["std::panic::catch_unwind", poll],
        ];
        assert_eq!(text(addresses, "app::both", false), "#0 app::fetch app::both");
        // What blocks the worker stays.
        let addresses: &[&[&str]] = &[
            &["async app::fetch"],
            &["lib futures_executor::local_pool::block_on", "app::helper"],
            &["async app::both"],
            &[poll],
        ];
        assert_eq!(text(addresses, "app::both", false), "app::fetch #1 app::both");
        // A task of another type that has the function: alone, or with others.
        let addresses: &[&[&str]] =
            &[&["work"], &["async app::fetch", "lib tracing::instrument::Instrumented::poll"], &[poll]];
        assert_eq!(text(addresses, "tracing::instrument::Instrumented", false), "#0 app::fetch");
        let timeout = "tokio::time::timeout::Timeout";
        assert_eq!(text(addresses, timeout, false), format!("#0 app::fetch {timeout}"));
    }
}
