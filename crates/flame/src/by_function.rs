//! Merges the lines of a function: still pictures have one box for a function, as the page has.

use crate::layout::{WeightedBox, lay_out};
use crate::{FrameId, Graph, GraphBuilder, captions};
use foldhash::HashMap;
use stackglass_profile::Frame;
use stackglass_report::kinds::{self, Class};
use stackglass_report::library_code::is_library_code;
use std::borrow::Cow;

/// The end of the name of a function whose calls by itself are folded.
const RECURSIVE: &str = " ↻";

/// The frame of a function as it was before its name got a mark: rules know it by that name.
pub(crate) fn unmarked(frame: &Frame) -> Cow<'_, Frame> {
    match frame.func.strip_suffix(RECURSIVE) {
        Some(func) => Cow::Owned(Frame { func: func.into(), ..frame.clone() }),
        None => Cow::Borrowed(frame),
    }
}

/// What was merged into a box.
struct Merge {
    /// The box that called it.
    above: u32,
    /// Its function.
    key: u32,
    /// The width of its widest part.
    widest: u64,
    several_lines: bool,
    recursive: bool,
}

/// The nearest of a box and those that called it, without the root, for which this is true.
fn ancestor(merges: &[Merge], mut at: u32, is_it: impl Fn(usize) -> bool) -> Option<u32> {
    while at > 0 {
        if is_it(at as usize) {
            return Some(at);
        }
        at = merges[at as usize].above;
    }
    None
}

impl Graph {
    /// The same samples with one box for a function where its lines have several side by side. A merged box of several lines
    /// has no line, and the place in the source of its widest part.
    ///
    /// ```
    /// use stackglass_flame::{GraphBuilder, Span, Status};
    /// use stackglass_profile::Frame;
    ///
    /// let mut builder = GraphBuilder::default();
    /// let root = builder.frame(&Frame::unknown(0));
    /// builder.open(root, Status::NONE, Span::new(1, 9));
    /// for (line, span) in [(4, Span::new(1, 3)), (8, Span::new(4, 9))] {
    ///     let frame = builder.frame(&Frame { func: "work".into(), line, ..Frame::unknown(0) });
    ///     builder.open_at(1, frame, Status::NONE, span);
    /// }
    /// let merged = builder.finish().unwrap().by_function();
    /// assert_eq!((merged.nodes().len(), merged.nodes()[1].span), (2, Span::new(1, 9)));
    /// assert_eq!(merged.frame(&merged.nodes()[1]).line, 0);
    /// ```
    pub fn by_function(&self) -> Graph {
        self.merged(false)
    }

    /// As [`Graph::by_function`], with recursion folded as in reports: a call of a function that is on the stack already is part
    /// of the box there, which is marked by `↻`. So each sample counts once in a function, and only on the way to its end.
    ///
    /// Library code and code without names are not folded: neither tells that a function has called itself. Drop glue of one type is.
    pub fn by_function_without_recursion(&self) -> Graph {
        self.merged(true)
    }

    /// Whether a box has the mark of [`Graph::by_function_without_recursion`].
    pub fn has_folded_recursion(&self) -> bool {
        self.frames().iter().any(|frame| frame.func.ends_with(RECURSIVE))
    }

    fn merged(&self, folds: bool) -> Graph {
        let keys = self.function_keys();
        let (nodes, parents, own) = (self.nodes(), self.parents(), self.own());
        let mut builder = GraphBuilder::with_frames_of(self);
        let mut boxes: Vec<WeightedBox> = Vec::new();
        let mut merges: Vec<Merge> = Vec::new();
        let mut known: HashMap<(u32, u32), u32> = HashMap::default();
        let mut box_of: Vec<u32> = Vec::with_capacity(nodes.len());
        for (number, node) in nodes.iter().enumerate() {
            let new = boxes.len() as u32;
            let above = box_of.get(parents[number] as usize).copied().unwrap_or(0);
            let key = keys[node.frame.0 as usize];
            let called_itself = match folds && number > 0 && self.may_be_folded(node.frame) {
                true => ancestor(&merges, above, |at| {
                    merges[at].key == key && self.is_instance(boxes[at].frame, node.frame)
                }),
                false => None,
            };
            let at = match (number, called_itself) {
                (0, _) => 0,
                (_, Some(at)) => at,
                _ => *known.entry((above, key)).or_insert(new),
            };
            box_of.push(at);
            // With folded recursion, what a box calls may lie outside of it.
            let weight = if folds { own[number] } else { node.span.len() };
            let width = node.span.len();
            if at == new {
                if number > 0 {
                    boxes[above as usize].children.push(new);
                }
                let (frame, status) = (node.frame, node.status);
                boxes.push(WeightedBox { frame, status, weight, children: Vec::new() });
                merges.push(Merge { above, key, widest: width, several_lines: false, recursive: false });
                continue;
            }
            let (of, merge) = (&mut boxes[at as usize], &mut merges[at as usize]);
            merge.several_lines |= self.line(of.frame) != self.line(node.frame);
            merge.recursive |= called_itself.is_some();
            of.status |= node.status;
            of.weight = of.weight.saturating_add(weight);
            if width > merge.widest {
                (merge.widest, of.frame) = (width, node.frame);
            }
        }
        if folds {
            for at in (1..boxes.len()).rev() {
                let (weight, above) = (boxes[at].weight, merges[at].above as usize);
                boxes[above].weight = boxes[above].weight.saturating_add(weight);
            }
        }
        for (of, merge) in
            boxes.iter_mut().zip(merges).filter(|(_, merge)| merge.several_lines || merge.recursive)
        {
            let mut frame = self.frames()[of.frame.0 as usize].clone();
            if merge.several_lines {
                frame.line = 0;
            }
            if merge.recursive {
                frame.func = format!("{}{RECURSIVE}", frame.func).into();
            }
            of.frame = builder.frame(&frame);
        }
        lay_out(builder, &boxes).unwrap_or_default()
    }

    /// Whether calls of a function by itself tell nothing but that.
    fn may_be_folded(&self, frame: FrameId) -> bool {
        let frame = &self.frames()[frame.0 as usize];
        // Drop glue is code of one type, if the type is known.
        let is_drop_glue =
            || !frame.foreign && frame.spec.is_some() && frame.func.starts_with("core::ptr::drop_");
        let is_library = || kinds::class(frame) != Class::Own || is_library_code(frame);
        !frame.func.is_empty() && (!is_library() || is_drop_glue())
    }

    /// Whether two frames of one function belong to the same instance of it, if it is generic.
    fn is_instance(&self, one: FrameId, two: FrameId) -> bool {
        let spec = |frame: FrameId| self.frames()[frame.0 as usize].spec.as_ref();
        spec(one) == spec(two)
    }

    /// The same boxes with one frame for a function, which has a line only if the function has one line. The inverted graph of
    /// such boxes has one box for a function.
    pub fn with_functions(&self) -> Graph {
        let keys = self.function_keys();
        let mut builder = GraphBuilder::with_frames_of(self);
        let mut lines: HashMap<u32, (FrameId, bool)> = HashMap::default();
        for (number, key) in (0..).map(FrameId).zip(&keys) {
            let (first, several) = lines.entry(*key).or_insert((number, false));
            *several |= self.line(*first) != self.line(number);
        }
        for (frame, several) in lines.values_mut().filter(|(_, several)| *several) {
            (*frame, *several) = (builder.frame(&without_line(self, *frame)), false);
        }
        for node in self.nodes() {
            let (frame, _) = lines[&keys[node.frame.0 as usize]];
            builder.open_at(node.depth as usize, frame, node.status, node.span);
        }
        builder.finish().unwrap_or_default()
    }

    fn line(&self, frame: FrameId) -> i64 {
        self.frames()[frame.0 as usize].line
    }

    /// By frame: the number of its function.
    fn function_keys(&self) -> Vec<u32> {
        let mut numbers: HashMap<(String, &str, &str), u32> = HashMap::default();
        let frames = self.frames().iter().map(|frame| {
            let next = numbers.len() as u32;
            let key = (captions::name(frame).into_owned(), &*frame.file, &*frame.module);
            *numbers.entry(key).or_insert(next)
        });
        frames.collect()
    }
}

fn without_line(graph: &Graph, frame: FrameId) -> Frame {
    Frame { line: 0, ..graph.frames()[frame.0 as usize].clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Span, Status};

    /// Boxes by depth: name, line, first and last sample, bits.
    fn graph(boxes: &[(usize, &str, i64, i64, i64, u8)]) -> Graph {
        let mut builder = GraphBuilder::default();
        for (depth, name, line, from, to, status) in boxes {
            let frame = match *name {
                "" => Frame::unknown(0),
                name => Frame {
                    func: name.into(),
                    file: "/a.rs".into(),
                    line: *line,
                    foreign: false,
                    ..Frame::unknown(0)
                },
            };
            let frame = builder.frame(&frame);
            builder.open_at(*depth, frame, Status(*status), Span::new(*from, *to));
        }
        builder.finish().unwrap()
    }

    /// Depth, name, line, samples and bits of each box.
    fn told(graph: &Graph) -> Vec<(u32, &str, i64, u64, u8)> {
        let boxes = graph.nodes().iter().map(|node| (node, graph.frame(node)));
        boxes
            .map(|(node, frame)| (node.depth, &*frame.func, frame.line, node.span.len(), node.status.0))
            .collect()
    }

    fn lines() -> Graph {
        graph(&[
            (0, "", 0, 1, 100, 0),
            (1, "main", 3, 1, 100, 0),
            (2, "work", 10, 1, 20, 1),
            (3, "leaf", 5, 1, 20, 0),
            (2, "other", 1, 21, 30, 0),
            (2, "work", 20, 31, 90, 2),
            (3, "leaf", 5, 31, 60, 0),
        ])
    }

    #[test]
    fn lines_of_a_function_are_one_box() {
        assert_eq!(
            told(&lines().by_function()),
            [
                (0, "", -1, 100, 0),
                (1, "main", 3, 100, 0),
                (2, "work", 0, 80, 3),
                (3, "leaf", 5, 50, 0),
                (2, "other", 1, 10, 0),
            ]
        );
        let merged = lines().by_function();
        assert_eq!(merged.nodes()[3].span, Span::new(1, 50), "callees stand side by side");
        assert_eq!(merged.own().iter().sum::<u64>(), 100);
    }

    #[test]
    fn recursion_is_part_of_the_outer_box() {
        let graph = graph(&[
            (0, "", 0, 1, 100, 0),
            (1, "main", 3, 1, 100, 0),
            (2, "walk", 10, 1, 90, 1),
            (3, "step", 5, 1, 80, 0),
            (4, "walk", 11, 1, 70, 2),
            (5, "step", 5, 1, 30, 0),
            (5, "leaf", 7, 31, 50, 0),
            (3, "leaf", 7, 81, 85, 0),
        ]);
        let folded = graph.by_function_without_recursion();
        assert_eq!(
            told(&folded),
            [
                (0, "", -1, 100, 0),
                (1, "main", 3, 100, 0),
                (2, "walk ↻", 0, 90, 3),
                // 10 of the outer call, and 30 of the inner one: not the 70 of `walk` below it.
                (3, "step", 5, 40, 0),
                (3, "leaf", 7, 25, 0),
            ]
        );
        assert_eq!(folded.own().iter().sum::<u64>(), 100);
        assert!(folded.has_folded_recursion() && !graph.has_folded_recursion());
        assert_eq!(told(&lines().by_function_without_recursion()), told(&lines().by_function()));
    }

    #[test]
    fn a_mark_is_no_part_of_the_name() {
        let frame = |func: &str| Frame { func: func.into(), foreign: false, ..Frame::unknown(0) };
        for func in ["core::ptr::drop_in_place", "app::walk"] {
            let marked = frame(&format!("{func}{RECURSIVE}"));
            assert_eq!(unmarked(&marked).func, frame(func).func);
            assert_eq!(crate::status::of_name(&marked), crate::status::of_name(&frame(func)), "{func}");
        }
    }

    #[test]
    fn inverted_graphs_have_functions_once() {
        let inverted = lines().with_functions().inverted();
        let named = |depth: u32| -> Vec<_> {
            told(&inverted).into_iter().filter(|of| of.0 == depth).map(|of| (of.1, of.2, of.3)).collect()
        };
        assert_eq!(named(1), [("leaf", 5, 50), ("work", 0, 30), ("main", 3, 10), ("other", 1, 10)]);
        assert_eq!(named(2)[0], ("work", 0, 50));
    }
}
