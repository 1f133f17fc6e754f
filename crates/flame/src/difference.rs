//! Comparison of two graphs: which boxes grew or shrank beyond the noise.
//!
//! Boxes are the same if the names on their paths from the root are the same. Lines are ignored, since they move when
//! programs change. Colours differ in lightness as well as in hue, for readers with red-green colour blindness.

use crate::layout::{WeightedBox, lay_out};
use crate::paint::{Painted, Swatch};
use crate::{Graph, GraphBuilder, Node, NodeId, Paint};
use foldhash::HashMap;

/// A change of more than this many standard errors is beyond the noise.
const BEYOND: f64 = 3.0;

/// Number of shades for each direction, and the share of all samples that the darkest one stands for.
const SHADES: usize = 4;
const DARKEST: f64 = 0.1;

const WITHIN: Swatches =
    ("within the noise", [[235, 235, 232], [225, 225, 221]], [[58, 58, 60], [68, 68, 70]]);
const MORE: Swatches = ("more than before", [[255, 214, 170], [214, 84, 24]], [[110, 66, 20], [214, 96, 36]]);
const LESS: Swatches =
    ("less than before", [[196, 220, 255], [40, 100, 200]], [[28, 54, 96], [64, 124, 214]]);
type Swatches = (&'static str, [[u8; 3]; 2], [[u8; 3]; 2]);

/// The change of a box.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Change {
    /// Samples before, scaled to the second graph.
    pub before: f64,
    /// Samples after.
    pub after: f64,
    /// Standard error of the difference.
    pub error: f64,
}

impl Change {
    /// The difference in samples.
    pub fn difference(&self) -> f64 {
        self.after - self.before
    }

    /// Whether the difference is beyond the noise.
    pub fn is_beyond_noise(&self) -> bool {
        self.difference().abs() > BEYOND * self.error
    }
}

/// The changes from one graph to another.
#[derive(Debug)]
pub struct Difference<'a> {
    before: &'a Graph,
    after: &'a Graph,
    union: Graph,
    /// By node, for each of these graphs.
    changes: [Vec<Change>; 3],
}

impl<'a> Difference<'a> {
    /// Compares two graphs. `factor` is the number of samples after that one sample before corresponds to: 1 for the same
    /// duration and delay. `spread` is how many times more equal runs differ than by chance.
    pub fn new(before: &'a Graph, after: &'a Graph, factor: f64, spread: f64) -> Difference<'a> {
        let mut paths = Paths::default();
        let of_before = paths.add(before, 0);
        let of_after = paths.add(after, 1);
        let of_union = paths.weigh(factor);
        let changes = [&of_before, &of_after, &of_union].map(|paths_of| {
            let change = |path: &u32| {
                let [before, after] = paths.samples[*path as usize];
                let before = before * factor;
                let error = (after + before * factor).max(1.0).sqrt() * spread;
                Change { before, after, error }
            };
            paths_of.iter().map(change).collect()
        });
        let union = lay_out(paths.builder, &paths.boxes).unwrap_or_default();
        Difference { before, after, union, changes }
    }

    /// The boxes of both graphs. Their widths are the samples before, scaled, and after together, so that what is gone is shown
    /// as well as what is new.
    pub fn union(&self) -> &Graph {
        &self.union
    }

    /// The changes of the nodes of one of the two graphs or of their union; empty for other graphs.
    pub fn changes(&self, graph: &Graph) -> &[Change] {
        let is = |other: &&Graph| std::ptr::eq(other.nodes(), graph.nodes());
        let which = [self.before, self.after, &self.union].iter().position(is);
        which.map_or(&[], |which| &self.changes[which])
    }

    /// Colours for these graphs, and a note for each box.
    pub fn paint(&'a self) -> Paint<'a> {
        let note = |graph: &Graph, node: &Node| {
            let change = self.changes(graph).get(graph.number_of(node)? as usize)?;
            let percent = match change.before > 0.0 {
                true => format!("{:+.1} %", change.difference() / change.before * 100.0),
                false => "new".to_owned(),
            };
            let what = if change.is_beyond_noise() { "beyond the noise" } else { "within the noise" };
            Some(format!(
                "before {:.0}, now {:.0}: {:+.0} ± {:.0} ({percent}), {what}",
                change.before,
                change.after,
                change.difference(),
                change.error
            ))
        };
        Paint::whole(|graph| self.painted(graph)).notes(note).without_shares()
    }

    fn painted(&self, graph: &Graph) -> Painted {
        let swatches = [WITHIN, LESS, MORE].into_iter().flat_map(|(meaning, light, dark)| {
            (0..SHADES).map(move |shade| Swatch {
                light: mix(light, shade),
                dark: mix(dark, shade),
                meaning: meaning.to_owned(),
            })
        });
        let changes = self.changes(graph);
        let all = changes.first().map_or(0.0, |root| root.before.max(root.after)).max(1.0);
        let choose = |number: usize| match changes.get(number) {
            Some(change) if change.is_beyond_noise() => {
                let share = change.difference().abs() / all / DARKEST;
                let shade = ((share * SHADES as f64) as usize).min(SHADES - 1);
                SHADES * if change.difference() > 0.0 { 2 } else { 1 } + shade
            }
            _ => 0,
        };
        Painted { swatches: swatches.collect(), boxes: (0..graph.nodes().len()).map(choose).collect() }
    }
}

fn mix([from, to]: [[u8; 3]; 2], shade: usize) -> [u8; 3] {
    std::array::from_fn(|i| {
        let (from, to) = (usize::from(from[i]), usize::from(to[i]));
        ((from * (SHADES - 1 - shade) + to * shade) / (SHADES - 1)) as u8
    })
}

/// Paths from the root, by names.
#[derive(Default)]
struct Paths<'a> {
    known: HashMap<(u32, &'a str, &'a str), u32>,
    /// By path: samples before and after.
    samples: Vec<[f64; 2]>,
    /// By path: its box in the union.
    boxes: Vec<WeightedBox>,
    /// The frames of these boxes.
    builder: GraphBuilder,
}

impl<'a> Paths<'a> {
    /// The path of each node. Adds its samples to the path.
    fn add(&mut self, graph: &'a Graph, side: usize) -> Vec<u32> {
        if self.samples.is_empty() {
            self.push(graph.root(), graph);
        }
        let mut paths: Vec<u32> = Vec::with_capacity(graph.nodes().len());
        for (number, parent) in (0 as NodeId..).zip(graph.parents()) {
            let node = &graph.nodes()[number as usize];
            let frame = graph.frame(node);
            let next = self.samples.len() as u32;
            let path = match paths.get(parent as usize) {
                Some(above) if number > 0 => {
                    // The program may have been renamed, so modules matter only for frames without names.
                    let module = if frame.func.is_empty() { &*frame.module } else { "" };
                    *self.known.entry((*above, &frame.func, module)).or_insert(next)
                }
                _ => 0,
            };
            if path == next {
                let above = paths.get(parent as usize).copied().unwrap_or(0);
                self.boxes[above as usize].children.push(next);
                self.push(node, graph);
            }
            self.boxes[path as usize].status |= node.status;
            self.samples[path as usize][side] += node.span.len() as f64;
            paths.push(path);
        }
        paths
    }

    fn push(&mut self, node: &Node, graph: &Graph) {
        let frame = self.builder.frame(graph.frame(node));
        self.boxes.push(WeightedBox { frame, status: node.status, weight: 0, children: Vec::new() });
        self.samples.push([0.0; 2]);
    }

    /// Gives the boxes their weights, leaves out those without, and returns their paths in the order of the union's nodes.
    fn weigh(&mut self, factor: f64) -> Vec<u32> {
        // Rounded down, so that callees together are no wider than their caller.
        for (of, [before, after]) in self.boxes.iter_mut().zip(&self.samples) {
            of.weight = (before * factor) as u64 + *after as u64;
        }
        let mut order = Vec::with_capacity(self.boxes.len());
        let mut open = vec![0];
        while let Some(path) = open.pop() {
            let mut children = std::mem::take(&mut self.boxes[path as usize].children);
            children.retain(|child| self.boxes[*child as usize].weight > 0);
            open.extend(children.iter().rev());
            self.boxes[path as usize].children = children;
            order.push(path);
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{GraphBuilder, Span, Status};
    use stackglass_profile::Frame;

    fn graph(boxes: &[(usize, &str, u64)]) -> Graph {
        let mut builder = GraphBuilder::default();
        for (depth, name, len) in boxes {
            let frame = builder.frame(&Frame { func: (*name).into(), ..Frame::unknown(0) });
            builder.open_at(*depth, frame, Status::NONE, Span::of_len(1, *len));
        }
        builder.finish().unwrap()
    }

    #[test]
    fn boxes_are_matched_by_their_way() {
        let before = graph(&[(0, "", 1000), (1, "a", 500), (2, "x", 400), (1, "b", 300), (1, "gone", 100)]);
        let after =
            graph(&[(0, "", 1000), (1, "a", 510), (2, "x", 100), (1, "b", 200), (2, "x", 90), (1, "b", 110)]);
        let difference = Difference::new(&before, &after, 1.0, 1.0);
        let now = difference.changes(&after);
        assert_eq!((now[2].before, now[2].after, now[2].is_beyond_noise()), (400.0, 100.0, true));
        assert!(!now[1].is_beyond_noise(), "10 of 500 is nothing");
        assert_eq!((now[4].before, now[4].after), (0.0, 90.0), "under another caller it is another box");
        assert_eq!(now[3], now[5], "two boxes of one way are one");
        assert_eq!(now[3].after, 310.0);
        let then = difference.changes(&before);
        assert_eq!((then[4].before, then[4].after), (100.0, 0.0));
        assert!(difference.changes(&after.clone()).is_empty());
        let union = difference.union();
        let boxes = union.nodes().iter().zip(difference.changes(union));
        let boxes: Vec<_> = boxes
            .map(|(node, change)| {
                (node.depth, &*union.frame(node).func, node.span.len(), change.before, change.after)
            })
            .collect();
        assert_eq!(
            boxes,
            [
                (0, "", 2000, 1000.0, 1000.0),
                (1, "a", 1010, 500.0, 510.0),
                (2, "x", 500, 400.0, 100.0),
                (1, "b", 610, 300.0, 310.0),
                (2, "x", 90, 0.0, 90.0),
                (1, "gone", 100, 100.0, 0.0),
            ]
        );
        let scaled = Difference::new(&before, &after, 0.5, 1.0);
        assert_eq!(scaled.union().root().span.len(), 1500);
        let painted = difference.paint().paint(&after);
        assert_eq!(painted.swatches[painted.boxes[2]].meaning, "less than before");
        assert_eq!(painted.swatches[painted.boxes[1]].meaning, "within the noise");
        let note = difference.paint().note(&after, &after.nodes()[2]).unwrap();
        assert!(note.starts_with("before 400, now 100: -300 ± 22 (-75.0 %), beyond"), "{note}");
    }

    #[test]
    fn a_program_of_another_name_is_the_same_program() {
        let of = |module: &str, func: &str| {
            let mut builder = GraphBuilder::default();
            for func in ["", func] {
                let frame = Frame { func: func.into(), module: module.into(), ..Frame::unknown(0) };
                let frame = builder.frame(&frame);
                builder.open(frame, Status::NONE, Span::of_len(1, 1000));
            }
            builder.finish().unwrap()
        };
        let changed = |before: &Graph, after: &Graph| {
            let difference = Difference::new(before, after, 1.0, 1.0);
            difference.changes(after)[1].is_beyond_noise()
        };
        assert!(!changed(&of("app-1", "main"), &of("app-2", "main")));
        assert!(changed(&of("libz.so.1", ""), &of("libssl.so.3", "")), "without names only modules tell");
    }
}
