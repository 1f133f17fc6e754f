//! From the native stack at the clone of a waker to the futures in it.
//!
//! The body of an `async` function is a function itself: named `{async_fn#0}`, or like a closure. It counts if what calls it is
//! such a body, too, or a function that polls. So closures inside of library functions do not count. The future that the
//! innermost body awaits is the leaf: the outermost function named `poll` inside of that body.

use super::stack::AskedStack;
use foldhash::HashMap;
use stackglass_profile::task_dump::{AwaitFrame, AwaitPoint};
use stackglass_profile::{Frame, LocationId, Recording};
use std::sync::Arc;

/// Where the function that polls a task is, of the crate `stackglass`.
const ROOT: &str = "stackglass::task::";
/// Deepest await stack.
const DEEPEST: usize = 400;

/// Frames by address.
pub(super) struct Names<'a> {
    recording: &'a Recording,
    locations: &'a HashMap<u64, LocationId>,
}

impl<'a> Names<'a> {
    pub fn new(recording: &'a Recording, locations: &'a HashMap<u64, LocationId>) -> Names<'a> {
        Names { recording, locations }
    }

    /// One await stack from all stacks of a task.
    pub fn await_stack(&self, stacks: &[AskedStack]) -> Vec<AwaitFrame> {
        // A future that wakes itself does not clone the waker.
        let only_wakes = stacks.iter().all(|stack| stack.is_wake);
        let mut tree = Vec::new();
        for stack in stacks.iter().filter(|stack| only_wakes || !stack.is_wake) {
            insert(&mut tree, self.futures(stack));
        }
        tree
    }

    /// The futures in a stack, outermost first.
    fn futures(&self, stack: &AskedStack) -> Vec<AwaitFrame> {
        let of = |address: &u64| self.locations.get(address).copied();
        let mut frames: Vec<&Frame> = Vec::new();
        for location in stack.frames.iter().rev().filter_map(of) {
            frames.extend(self.recording.symbols.frames_of(location).rev());
        }
        // What is around the function that polls the task is in the same native frame at most.
        let start = frames.iter().position(|frame| is_root(frame)).map_or(0, |at| at + 1);
        await_frames(&frames[start..])
    }
}

fn is_root(frame: &Frame) -> bool {
    frame.func.starts_with(ROOT) && last_part(&frame.func) == "poll"
}

/// The futures among native frames, outermost first.
fn await_frames(frames: &[&Frame]) -> Vec<AwaitFrame> {
    let mut found: Vec<AwaitFrame> = Vec::new();
    // The caller polls, or is the body of a future.
    let mut is_polled = true;
    let mut last: Option<(usize, &Frame)> = None;
    for (index, frame) in frames.iter().enumerate() {
        let is_body = is_polled && is_body(&frame.func);
        if is_body {
            let outer = last.map(|(_, outer)| outer);
            if outer.is_some_and(|outer| is_part_of(frame, outer)) {
                // `join!` and `select!` are closures in the body that awaits them.
            } else if found.len() < DEEPEST {
                found.push(of_body(frame));
            }
            last = Some((index, frame));
        }
        is_polled = is_body || polls(&frame.func) || is_polled && is_shim(frame);
    }
    let inside = last.map_or(0, |(index, _)| index + 1);
    if let Some(leaf) = leaf(&frames[inside..]) {
        found.push(leaf);
    }
    found
}

/// Whether this may be the body of a future.
fn is_body(function: &str) -> bool {
    let last = last_part(function);
    last.starts_with("{async_") || last.starts_with("{closure") || last.starts_with("{{closure")
}

fn last_part(function: &str) -> &str {
    function.rsplit("::").next().unwrap_or(function)
}

/// Whether a function polls futures or streams: `poll`, `poll_next`, `try_poll`.
fn polls(function: &str) -> bool {
    let last = last_part(function);
    last.starts_with("poll") || last.starts_with("try_poll")
}

/// Calls through a vtable or a closure's trait may pass by a function of the standard library without a body.
fn is_shim(frame: &Frame) -> bool {
    matches!(last_part(&frame.func), "call" | "call_mut" | "call_once") && frame.krate.as_ref() == "core"
}

/// Whether a frame is a closure in the body around it, at the same line.
fn is_part_of(inner: &Frame, outer: &Frame) -> bool {
    if inner.line != outer.line || inner.file != outer.file {
        return false;
    }
    if inner.func.strip_prefix(&*outer.func).is_some_and(|rest| rest.starts_with("::")) {
        return true;
    }
    // In line tables alone, inlined functions have the last part of their name only, but that tells bodies from closures.
    let is_closure = last_part(&inner.func).starts_with("{closure");
    let is_nested = inner.func.ends_with("::{closure}::{closure}");
    last_part(&outer.func).starts_with("{async_") && is_closure && (inner.inlined || is_nested)
}

fn of_body(frame: &Frame) -> AwaitFrame {
    let line = u32::try_from(frame.line).ok().filter(|line| *line > 0 && !frame.file.is_empty());
    let point = AwaitPoint::Await(line.map(|line| (frame.file.clone(), line)));
    AwaitFrame { function: name(&frame.func), point, children: Vec::new(), is_race: false }
}

/// The function of a body: `app::serve` of `app::serve::{closure}`.
fn name(function: &str) -> Arc<str> {
    let mut name = function;
    while let Some((rest, last)) = name.rsplit_once("::") {
        // Line tables alone do not name the function.
        if last == "{closure}" || last == "{{closure}}" {
            name = rest;
        } else {
            break;
        }
    }
    match name.rsplit_once("::") {
        Some((rest, last)) if last.starts_with("{async_") => {
            let kind = last.trim_matches(['{', '}']).split('#').next().unwrap_or(last).replace('_', " ");
            format!("{rest}::{{{kind}}}").into()
        }
        _ => name.into(),
    }
}

/// The future that is awaited innermost.
fn leaf(frames: &[&Frame]) -> Option<AwaitFrame> {
    let is_std = |frame: &&&Frame| matches!(&*frame.krate, "core" | "alloc" | "std");
    let mut own = frames.iter().filter(|frame| !is_std(frame) && !frame.func.is_empty());
    let polls = own.clone().find(|frame| last_part(&frame.func) == "poll");
    let frame = polls.or_else(|| own.find(|frame| !is_ours(frame)))?;
    let function = match frame.func.strip_suffix("::poll") {
        Some(future) => future.into(),
        None => frame.func.clone(),
    };
    Some(AwaitFrame { function, point: AwaitPoint::Leaf, children: Vec::new(), is_race: false })
}

/// Whether a frame is one of the tracing itself.
fn is_ours(frame: &Frame) -> bool {
    frame.func.starts_with("stackglass_host::")
}

/// Adds a stack to a tree of stacks.
fn insert(tree: &mut Vec<AwaitFrame>, stack: Vec<AwaitFrame>) {
    let mut now = tree;
    for frame in stack {
        let same = |known: &AwaitFrame| known.function == frame.function && known.point == frame.point;
        let at = match now.iter().position(same) {
            Some(at) => at,
            None => {
                now.push(frame);
                now.len() - 1
            }
        };
        now = &mut now[at].children;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(func: &str, file: &str, line: i64) -> Frame {
        let krate = func.split("::").next().unwrap_or_default().into();
        Frame { func: func.into(), file: file.into(), line, krate, ..Frame::unknown(0) }
    }

    fn stack(frames: &[Frame]) -> Vec<AwaitFrame> {
        await_frames(&frames.iter().collect::<Vec<_>>())
    }

    fn text(frames: &[AwaitFrame]) -> String {
        let point = |point: &AwaitPoint| match point {
            AwaitPoint::Await(Some((_, line))) => format!(":{line}"),
            AwaitPoint::Leaf => "!".to_owned(),
            other => format!("{other:?}"),
        };
        let frames: Vec<String> =
            frames.iter().map(|frame| format!("{}{}", frame.function, point(&frame.point))).collect();
        frames.join(" > ")
    }

    #[test]
    fn bodies_and_the_leaf_are_told_from_other_closures() {
        let found = stack(&[
            frame("app::serve::{closure}", "app.rs", 10),
            frame("core::pin::Pin::poll", "pin.rs", 1),
            frame("app::{async_fn#0}", "app.rs", 20),
            frame("tokio::time::sleep::Sleep::poll", "sleep.rs", 5),
            frame("std::panic::catch_unwind", "panic.rs", 5),
            frame("core::panic::AssertUnwindSafe::call_once", "panic.rs", 5),
            frame("tokio::runtime::context::{closure}", "context.rs", 5),
            frame("core::task::wake::Waker::clone", "wake.rs", 5),
            frame("stackglass_host::task::asked::trace::clone", "trace.rs", 5),
        ]);
        assert_eq!(text(&found), "app::serve:10 > app::{async fn}:20 > tokio::time::sleep::Sleep!");
    }

    #[test]
    fn a_macro_is_one_frame_and_recursion_is_several() {
        let found = stack(&[
            frame("app::both::{closure}", "app.rs", 10),
            frame("core::future::poll_fn::PollFn::poll", "poll_fn.rs", 1),
            frame("app::both::{closure}::{closure}", "app.rs", 10),
            frame("app::deep::{closure}", "app.rs", 20),
            frame("alloc::boxed::Box::poll", "boxed.rs", 1),
            frame("app::deep::{closure}", "app.rs", 20),
        ]);
        assert_eq!(text(&found), "app::both:10 > app::deep:20 > app::deep:20");
        let poll = frame("core::future::poll_fn::PollFn::poll", "poll_fn.rs", 1);
        let inlined = Frame { inlined: true, ..frame("app::{closure}", "app.rs", 10) };
        let found = stack(&[frame("app::{async_fn}", "app.rs", 10), poll.clone(), inlined]);
        assert_eq!(text(&found), "app::{async fn}:10");
        let found =
            stack(&[frame("app::{async_fn}", "app.rs", 10), poll, frame("app::f::{closure}", "app.rs", 10)]);
        assert_eq!(text(&found), "app::{async fn}:10 > app::f:10");
    }

    #[test]
    fn stacks_with_equal_beginnings_branch() {
        let mut tree = Vec::new();
        let both = frame("app::both::{closure}", "app.rs", 10);
        let poll = frame("core::pin::Pin::poll", "pin.rs", 1);
        for line in [20, 30, 30] {
            let inner = frame("app::one::{closure}", "app.rs", line);
            insert(&mut tree, stack(&[both.clone(), poll.clone(), inner]));
        }
        assert_eq!((tree.len(), tree[0].children.len()), (1, 2));
    }
}
