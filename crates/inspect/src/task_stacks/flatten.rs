//! From an await stack, which is a tree where a task waits for several futures at once, to stacks.
//!
//! Each branch of `join!` and lists of futures is a stack of its own, and the time of the task is divided evenly among the
//! branches: none is preferred, and no time is lost or counted twice.
//!
//! `select!` is one wait. If one of its branches alone is inside an `async` function of the program's own code, or else of any code,
//! the task waits for that, and the others, such as a signal to shut down, only cut it short. Otherwise the wait is that for the first of the branches.

use stackglass_profile::runtimes::tokio;
use stackglass_profile::task_dump::{AwaitFrame, AwaitPoint, DumpedTask, TaskState};
use stackglass_profile::{AwaitKind, AwaitLocation};
use std::sync::Arc;

/// Most stacks of one task; further branches share one stack.
const MOST: usize = 16;
/// Leaf of a task that was woken, and waits for a worker.
const READY: &str = "[ready]";

/// A stack of a task, and its share of the task's time.
#[derive(Clone, PartialEq, Debug)]
pub struct AwaitStack {
    /// Innermost first.
    pub frames: Vec<AwaitLocation>,
    /// 0 to 1.
    pub share: f64,
}

/// The stacks of a task that waits, as parts of its time.
#[derive(Clone)]
pub struct WaitStacks(pub Arc<[AwaitStack]>);

impl WaitStacks {
    /// Its stacks, each with its part of the task's time. The innermost frame is the first.
    pub fn stacks(&self) -> impl Iterator<Item = (&[AwaitLocation], f64)> {
        self.0.iter().map(|stack| (&stack.frames[..], stack.share))
    }
}

/// The stacks of a task that waits.
pub(crate) fn stacks(task: &DumpedTask) -> Vec<AwaitStack> {
    let mut found = Vec::new();
    // A combination of futures has no frame: the name of the task is one.
    let root = match &task.stack[..] {
        [_] => Vec::new(),
        _ => vec![frame(&task.name)],
    };
    // The branches to follow: frames outermost first, future, share.
    let mut open: Vec<(Vec<AwaitLocation>, &AwaitFrame, f64)> = Vec::new();
    branches(&root, &task.stack, 1.0, &mut open, &mut found);
    while let Some((mut path, future, share)) = open.pop() {
        // The stack of a thread has no such frame either.
        let is_passed =
            *future.function == *tokio::TIMEOUT && !future.children.is_empty() && !path.is_empty();
        if !is_passed {
            path.extend(frames_of(future));
        }
        match future.children.is_empty() {
            true => found.push(AwaitStack { frames: path, share }),
            false if future.is_race && future.children.len() > 1 => match only_branch(&future.children) {
                Some(only) => open.push((path, only, share)),
                None => {
                    path.push(frame(&format!("[first of {} futures]", future.children.len())));
                    found.push(AwaitStack { frames: path, share });
                }
            },
            false => branches(&path, &future.children, share, &mut open, &mut found),
        }
    }
    for stack in &mut found {
        if task.state == TaskState::Ready {
            stack.frames.push(AwaitLocation { kind: AwaitKind::Polled, ..frame(READY) });
        }
        stack.frames.reverse();
    }
    found
}

/// The one branch that is inside an `async` function of the program's own code, or else of any code.
fn only_branch(branches: &[AwaitFrame]) -> Option<&AwaitFrame> {
    let one = |is_own: fn(&str) -> bool| {
        let mut within = branches.iter().filter(move |branch| is_within_coroutine(branch, is_own));
        within.next().filter(|_| within.next().is_none())
    };
    one(is_own_file).or_else(|| one(|_| true))
}

/// Whether a source file is none of a registry, a checkout of Cargo, or the compiler.
fn is_own_file(file: &str) -> bool {
    !["/registry/src/", "/git/checkouts/", "/rustc/"].iter().any(|folder| file.contains(folder))
}

/// Whether a branch has come to an await of an `async` function whose file is one of these.
fn is_within_coroutine(future: &AwaitFrame, is_one: fn(&str) -> bool) -> bool {
    let mut open = vec![future];
    while let Some(next) = open.pop() {
        if let AwaitPoint::Await(place) = &next.point
            && is_one(place.as_ref().map_or("/rustc/", |(file, _)| file))
        {
            return true;
        }
        open.extend(&next.children);
    }
    false
}

/// Adds the branches below a path.
fn branches<'a>(
    path: &[AwaitLocation],
    futures: &'a [AwaitFrame],
    share: f64,
    open: &mut Vec<(Vec<AwaitLocation>, &'a AwaitFrame, f64)>,
    found: &mut Vec<AwaitStack>,
) {
    if futures.is_empty() {
        return found.push(AwaitStack { frames: path.to_vec(), share });
    }
    let room = MOST.saturating_sub(open.len() + found.len()).max(1);
    let followed = if futures.len() > room { room.saturating_sub(1) } else { futures.len() };
    let each = share / futures.len() as f64;
    for future in futures[..followed].iter().rev() {
        open.push((path.to_vec(), future, each));
    }
    let rest = futures.len() - followed;
    if rest > 0 {
        let mut frames = path.to_vec();
        frames.push(frame(&format!("[{rest} futures at once]")));
        found.push(AwaitStack { frames, share: each * rest as f64 });
    }
}

/// The frames of one future, outermost first.
fn frames_of(future: &AwaitFrame) -> Vec<AwaitLocation> {
    let function = (!future.function.is_empty()).then(|| frame(&future.function));
    let leaf = |text: &str| Some(frame(text));
    let (function, leaf) = match &future.point {
        AwaitPoint::Await(place) => (function.map(|function| at(function, place)), None),
        AwaitPoint::Leaf => (function, None),
        AwaitPoint::NotStarted => (function, leaf("[not started]")),
        AwaitPoint::Finished => (function, leaf("[finished]")),
        AwaitPoint::Lost(why) => (function, leaf(&format!("[{why}]"))),
    };
    function.into_iter().chain(leaf).collect()
}

fn at(frame: AwaitLocation, place: &Option<(Arc<str>, u32)>) -> AwaitLocation {
    match place {
        Some((file, line)) => AwaitLocation { file: file.clone(), line: *line, ..frame },
        None => frame,
    }
}

/// A frame without a place.
pub fn frame(function: &str) -> AwaitLocation {
    AwaitLocation { kind: AwaitKind::Waiting, function: function.into(), file: "".into(), line: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn future(function: &str, children: Vec<AwaitFrame>) -> AwaitFrame {
        let point = match children.is_empty() {
            true => AwaitPoint::Leaf,
            false => AwaitPoint::Await(Some(("main.rs".into(), 7))),
        };
        AwaitFrame { function: function.into(), point, children, is_race: false }
    }

    fn text(task: &DumpedTask) -> Vec<(String, f64)> {
        let text = |stack: AwaitStack| {
            let names: Vec<&str> = stack.frames.iter().map(|frame| &*frame.function).collect();
            (names.join(" < "), stack.share)
        };
        stacks(task).into_iter().map(text).collect()
    }

    #[test]
    fn branches_share_the_time_evenly() {
        let join = future("join", vec![future("a", Vec::new()), future("b", vec![future("c", Vec::new())])]);
        let mut task = DumpedTask { name: "main".into(), stack: vec![join.clone()], ..DumpedTask::default() };
        assert_eq!(text(&task), [("a < join".to_owned(), 0.5), ("c < b < join".to_owned(), 0.5)]);
        task.stack = vec![join, future("d", Vec::new())];
        let expected = [("a < join < main", 0.25), ("c < b < join < main", 0.25), ("d < main", 0.5)];
        assert_eq!(text(&task), expected.map(|(stack, share)| (stack.to_owned(), share)));
        task.stack.clear();
        task.state = TaskState::Ready;
        assert_eq!(text(&task), [("[ready] < main".to_owned(), 1.0)]);
    }

    #[test]
    fn a_select_is_one_wait() {
        let race = |children| AwaitFrame { is_race: true, ..future("serve", children) };
        let handler = || future("handle", vec![future("sleep", Vec::new())]);
        let leaf = |name| future(name, Vec::new());
        let of = |children| {
            let stack = vec![race(children)];
            text(&DumpedTask { name: "main".into(), stack, ..DumpedTask::default() })
        };
        let one = |stack: &str| vec![(stack.to_owned(), 1.0)];
        assert_eq!(of(vec![handler(), leaf("closed")]), one("sleep < handle < serve"));
        assert_eq!(
            of(vec![leaf("closed"), future("boxed", vec![handler()])]),
            one("sleep < handle < boxed < serve")
        );
        assert_eq!(of(vec![leaf("closed"), leaf("accept")]), one("[first of 2 futures] < serve"));
        assert_eq!(of(vec![handler(), handler(), leaf("closed")]), one("[first of 3 futures] < serve"));
        assert_eq!(of(vec![leaf("closed")]), one("closed < serve"));
    }

    #[test]
    fn many_branches_are_few_stacks_with_all_of_the_time() {
        let leaves = |count| (0..count).map(|_| future("leaf", Vec::new())).collect::<Vec<_>>();
        let nested = future("all", (0..100).map(|_| future("some", leaves(100))).collect());
        let task = DumpedTask { name: "main".into(), stack: vec![nested], ..DumpedTask::default() };
        let found = text(&task);
        assert!(found.len() <= 2 * MOST, "{}", found.len());
        assert!((found.iter().map(|(_, share)| share).sum::<f64>() - 1.0).abs() < 1e-9);
        assert!(found.iter().any(|(stack, _)| stack == "[85 futures at once] < all"), "{found:?}");
    }
}
