//! Merges the lines of a function: still pictures have one box for a function, as the page has.

use crate::layout::{WeightedBox, lay_out};
use crate::{FrameId, Graph, GraphBuilder, captions};
use foldhash::HashMap;
use stackglass_profile::Frame;

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
        let keys = self.function_keys();
        let (nodes, parents) = (self.nodes(), self.parents());
        let mut builder = GraphBuilder::with_frames_of(self);
        let mut boxes: Vec<WeightedBox> = Vec::new();
        // By box: the weight of its widest part.
        let mut widest: Vec<u64> = Vec::new();
        let mut known: HashMap<(u32, u32), u32> = HashMap::default();
        let mut box_of: Vec<u32> = Vec::with_capacity(nodes.len());
        let mut several_lines = vec![false];
        for (number, node) in nodes.iter().enumerate() {
            let new = boxes.len() as u32;
            let above = box_of.get(parents[number] as usize).copied().unwrap_or(0);
            let at = if number == 0 {
                0
            } else {
                *known.entry((above, keys[node.frame.0 as usize])).or_insert(new)
            };
            let weight = node.span.len();
            box_of.push(at);
            if at == new {
                if number > 0 {
                    boxes[above as usize].children.push(new);
                    several_lines.push(false);
                }
                let (frame, status) = (node.frame, node.status);
                boxes.push(WeightedBox { frame, status, weight, children: Vec::new() });
                widest.push(weight);
                continue;
            }
            let (merged, widest) = (&mut boxes[at as usize], &mut widest[at as usize]);
            several_lines[at as usize] |= self.line(merged.frame) != self.line(node.frame);
            merged.status |= node.status;
            merged.weight = merged.weight.saturating_add(weight);
            if weight > *widest {
                (*widest, merged.frame) = (weight, node.frame);
            }
        }
        for (merged, _) in boxes.iter_mut().zip(several_lines).filter(|(_, several)| *several) {
            merged.frame = builder.frame(&without_line(self, merged.frame));
        }
        lay_out(builder, &boxes).unwrap_or_default()
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
    fn inverted_graphs_have_functions_once() {
        let inverted = lines().with_functions().inverted();
        let named = |depth: u32| -> Vec<_> {
            told(&inverted).into_iter().filter(|of| of.0 == depth).map(|of| (of.1, of.2, of.3)).collect()
        };
        assert_eq!(named(1), [("leaf", 5, 50), ("work", 0, 30), ("main", 3, 10), ("other", 1, 10)]);
        assert_eq!(named(2)[0], ("work", 0, 50));
    }
}
