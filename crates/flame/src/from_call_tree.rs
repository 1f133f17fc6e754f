//! Conversion of a call tree to boxes: their spans and status bits.
//!
//! The rules are those of FlameGraphs.jl, including surprising ones. A pruned frame takes no space, so that later siblings
//! move left. A hidden foreign frame keeps its space, and its callees are drawn directly below its caller.

use crate::frame_options::FrameOptions;
use crate::{FrameId, Graph, GraphBuilder, Span, Status};
use stackglass_profile::Frame;
use stackglass_report::{CallTree, Source};

/// A step of the walk.
enum Step {
    /// A node of the tree begins at this position.
    Take { call: u32, start: i64, outermost: bool },
    /// Only the status bits of a hidden, pruned node count.
    Bits(u32),
    /// The open box ends.
    Close,
}

/// The graph of a tree; `None` if the tree has only a root.
pub(crate) fn graph(tree: &CallTree<'_>, options: &FrameOptions, source: Source<'_>) -> Option<Graph> {
    if tree.is_empty() {
        return None;
    }
    let mut walk = Walk { tree, options, builder: GraphBuilder::default(), info: vec![None; tree.frames()] };
    walk.builder.reserve(tree.len());
    let mut steps = Vec::new();
    let mut calls = tree.children(0);
    let all = calls.iter().map(|call| tree.count(*call)).sum();
    let root = walk.builder.frame(&Frame::unknown(0));
    walk.builder.open(root, options.status(&Frame::unknown(0)), Span::of_len(1, all));
    walk.push(&mut calls, 1, true, &mut steps);
    while let Some(step) = steps.pop() {
        match step {
            Step::Close => walk.builder.close(),
            Step::Bits(call) => walk.bits(call, &mut calls, &mut steps),
            Step::Take { call, start, outermost } => {
                walk.take(call, start, outermost, &mut calls, &mut steps)
            }
        }
    }
    let mut builder = walk.builder;
    let files: Vec<_> = builder.files().collect();
    for file in files {
        if let Some(short) = source.short_path(&file) {
            builder.short_path(file, short.clone());
        }
    }
    builder.finish()
}

struct Walk<'a> {
    tree: &'a CallTree<'a>,
    options: &'a FrameOptions,
    builder: GraphBuilder,
    /// By frame number. Trees have many more nodes than frames.
    info: Vec<Option<FrameInfo>>,
}

#[derive(Clone, Copy)]
struct FrameInfo {
    frame: FrameId,
    status: Status,
    pruned: bool,
    hidden: bool,
}

impl Walk<'_> {
    fn info(&mut self, call: u32) -> FrameInfo {
        let number = self.tree.frame_number(call) as usize;
        match self.info[number] {
            Some(info) => info,
            None => self.find(call, number),
        }
    }

    #[cold]
    fn find(&mut self, call: u32, number: usize) -> FrameInfo {
        // Only the root has no frame, and it is never visited.
        let Some(frame) = self.tree.frame(call) else {
            let (frame, status) = (FrameId(0), Status::NONE);
            return FrameInfo { frame, status, pruned: false, hidden: false };
        };
        let info = FrameInfo {
            frame: self.builder.frame(frame),
            status: self.options.status(frame),
            pruned: self.options.prunes(frame),
            hidden: frame.foreign && !self.options.foreign,
        };
        self.info[number] = Some(info);
        info
    }

    /// The status bits of a node: by its name, and by how it was called. An `outermost` function, called by start-up code,
    /// is not dispatched, although it is called through a pointer.
    fn status(&self, call: u32, info: &FrameInfo, outermost: bool) -> Status {
        let dispatched = self.tree.dispatched(call) && !outermost && !self.options.quirks.julia_only;
        info.status | if dispatched { Status::DISPATCH } else { Status::NONE }
    }

    /// Adds the status bits of a hidden call to the box around it. No call leads to the root, which stands for all samples.
    fn mark(&mut self, status: Status) {
        let root = self.builder.depth() <= 1 && !self.options.quirks.julia_only;
        self.builder.mark(if root { status.without(Status::DISPATCH) } else { status });
    }

    /// Plans the callees side by side from `start` on. Empties the list.
    fn push(&mut self, calls: &mut Vec<u32>, start: i64, outermost: bool, steps: &mut Vec<Step>) {
        let first = steps.len();
        let mut start = start;
        for call in calls.drain(..) {
            let info = self.info(call);
            match (info.pruned, info.hidden) {
                (false, _) => {
                    steps.push(Step::Take { call, start, outermost });
                    start = start.saturating_add_unsigned(self.tree.count(call));
                }
                (true, true) => steps.push(Step::Bits(call)),
                (true, false) => {}
            }
        }
        steps[first..].reverse();
    }

    fn take(&mut self, call: u32, start: i64, outermost: bool, calls: &mut Vec<u32>, steps: &mut Vec<Step>) {
        let info = self.info(call);
        let mut status = self.status(call, &info, outermost);
        let starts = outermost && !self.options.quirks.julia_only && self.tree.starts(call);
        if starts {
            status |= Status::RUNTIME;
        }
        match (info.hidden, starts) {
            (false, _) => {
                self.builder.open(info.frame, status, Span::of_len(start, self.tree.count(call)));
                steps.push(Step::Close);
            }
            (true, false) => self.mark(status),
            // How a thread reaches its function says nothing about the box around it.
            (true, true) => {}
        }
        self.tree.add_children(call, calls);
        self.push(calls, start, starts, steps);
    }

    fn bits(&mut self, call: u32, calls: &mut Vec<u32>, steps: &mut Vec<Step>) {
        let info = self.info(call);
        self.mark(self.status(call, &info, false));
        self.tree.add_children(call, calls);
        for call in calls.drain(..) {
            if self.info(call).hidden {
                steps.push(Step::Bits(call));
            }
        }
    }
}
