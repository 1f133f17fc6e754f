//! Packs graphs into few bytes: each distinct look of a box once, and one or two bytes for each number of a node.
//!
//! A node is four numbers, in pre-order: the number of levels to leave before it (0: it is a child of the previous node; 1:
//! a sibling), its look, the distance to the end of the previous sibling or the start of the parent (zigzag), and its
//! length. Numbers are LEB128: seven bits per byte, lowest first, with the eighth bit set if more follow.

use super::MOST_SCHEMES;
use crate::{Graph, Paint, Status, Swatch, captions};
use foldhash::HashMap;

/// The tables that all graphs of a page share.
pub(super) struct Packer {
    strings: Vec<String>,
    string_numbers: HashMap<String, i64>,
    frames: Vec<[i64; 6]>,
    frame_numbers: HashMap<[i64; 6], i64>,
    swatches: Vec<Swatch>,
    swatch_numbers: HashMap<Swatch, i64>,
    looks: Vec<Look>,
    look_numbers: HashMap<Look, u64>,
}

/// Frame, status bits, note (0: none), and a swatch for each colour scheme.
type Look = [i64; 3 + MOST_SCHEMES];

/// The table of strings begins with the empty one.
impl Default for Packer {
    fn default() -> Packer {
        let mut packer = Packer {
            strings: Vec::new(),
            string_numbers: HashMap::default(),
            frames: Vec::new(),
            frame_numbers: HashMap::default(),
            swatches: Vec::new(),
            swatch_numbers: HashMap::default(),
            looks: Vec::new(),
            look_numbers: HashMap::default(),
        };
        packer.string("");
        packer
    }
}

impl Packer {
    /// All strings.
    pub(super) fn strings(&self) -> &[String] {
        &self.strings
    }

    /// All colours in use.
    pub(super) fn swatches(&self) -> &[Swatch] {
        &self.swatches
    }

    /// By frame: name, full name, file, line, module (numbers of strings), and bits: 1 inlined, 2 foreign, 4 unknown.
    pub(super) fn frames(&self) -> &[[i64; 6]] {
        &self.frames
    }

    /// All distinct looks of boxes.
    pub(super) fn looks(&self) -> &[Look] {
        &self.looks
    }

    /// The numbers of swatches, which are added if necessary.
    pub(super) fn swatches_of(&mut self, swatches: &[Swatch]) -> Vec<i64> {
        swatches.iter().map(|swatch| self.swatch(swatch)).collect()
    }

    /// Packs a graph and adds its frames, names and looks to the tables.
    pub(super) fn pack(&mut self, graph: &Graph, paints: &[&Paint<'_>], with_notes: bool) -> Vec<u8> {
        let frames: Vec<i64> = graph.frames().iter().map(|frame| self.frame(graph, frame)).collect();
        // By scheme: the swatch of each node.
        let colors: Vec<(Vec<i64>, Vec<usize>)> = paints
            .iter()
            .map(|paint| {
                let painted = paint.paint(graph);
                let mut used = vec![false; painted.swatches.len()];
                painted.boxes.iter().for_each(|swatch| used[*swatch] = true);
                let in_use = painted.swatches.iter().zip(used);
                let numbers =
                    in_use.map(|(swatch, used)| if used { self.swatch(swatch) } else { 0 }).collect();
                (numbers, painted.boxes)
            })
            .collect();
        let mut bytes = Vec::with_capacity(graph.nodes().len() * 6);
        // By level: the start of the next node without a gap.
        let mut next: Vec<i64> = vec![graph.root().span.start()];
        let mut above = -1;
        for (number, node) in graph.nodes().iter().enumerate() {
            let depth = i64::from(node.depth);
            let note = paints.first().filter(|_| with_notes).and_then(|paint| paint.note(graph, node));
            let note = note.map_or(0, |note| self.string(&captions::sanitize(&note)));
            // A root that stands for everything is no call.
            let is_all = depth == 0 && graph.frame(node).is_unknown();
            let status = if is_all { Status::NONE } else { node.status };
            let mut look: Look = [0; 3 + MOST_SCHEMES];
            look[..3].copy_from_slice(&[frames[node.frame.0 as usize], i64::from(status.0), note]);
            for (part, (numbers, boxes)) in look[3..].iter_mut().zip(&colors) {
                *part = numbers[boxes[number]];
            }
            let looks = &mut self.looks;
            let look = *self.look_numbers.entry(look).or_insert_with(|| {
                looks.push(look);
                looks.len() as u64 - 1
            });
            next.truncate(node.depth as usize + 1);
            let (start, len) = (node.span.start(), node.span.len());
            let gap = start.saturating_sub(next[node.depth as usize]);
            self::number(&mut bytes, (above + 1 - depth) as u64);
            self::number(&mut bytes, look);
            self::number(&mut bytes, ((gap << 1) ^ (gap >> 63)) as u64);
            self::number(&mut bytes, len);
            next[node.depth as usize] = node.span.stop().saturating_add(1);
            next.push(start);
            above = depth;
        }
        bytes
    }

    fn frame(&mut self, graph: &Graph, frame: &stackglass_profile::Frame) -> i64 {
        let name = self.string(&captions::name(frame));
        let full = match &frame.spec {
            Some(spec) => self.string(&captions::sanitize(spec)),
            None => name,
        };
        let file = match &*frame.file {
            "" => 0,
            _ => self.string(&captions::file(graph, frame)),
        };
        let module = self.string(&captions::sanitize(&frame.module));
        let kind =
            i64::from(frame.inlined) | i64::from(frame.foreign) << 1 | i64::from(frame.is_unknown()) << 2;
        let parts = [name, full, file, frame.line, module, kind];
        *self.frame_numbers.entry(parts).or_insert_with(|| {
            self.frames.push(parts);
            self.frames.len() as i64 - 1
        })
    }

    fn swatch(&mut self, swatch: &Swatch) -> i64 {
        *self.swatch_numbers.entry(swatch.clone()).or_insert_with(|| {
            self.swatches.push(swatch.clone());
            self.swatches.len() as i64 - 1
        })
    }

    fn string(&mut self, string: &str) -> i64 {
        if let Some(number) = self.string_numbers.get(string) {
            return *number;
        }
        let number = self.strings.len() as i64;
        self.strings.push(string.to_owned());
        self.string_numbers.insert(string.to_owned(), number);
        number
    }
}

fn number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{GraphBuilder, Span};
    use stackglass_profile::Frame;

    /// Depth, look, start and length of each node, read as the page reads them.
    fn unpacked(bytes: &[u8]) -> Vec<(i64, u64, i64, u64)> {
        let mut at = bytes.iter();
        let mut number = || {
            let (mut value, mut shift) = (0, 0);
            for byte in at.by_ref() {
                value |= u64::from(byte & 0x7f) << shift;
                shift += 7;
                if byte & 0x80 == 0 {
                    return Some(value);
                }
            }
            None
        };
        let (mut nodes, mut next, mut depth) = (Vec::new(), vec![0; 100], -1);
        while let Some(left) = number() {
            depth += 1 - left as i64;
            let (look, zigzag, len) = (number().unwrap(), number().unwrap(), number().unwrap());
            let start = next[depth as usize] + ((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64));
            nodes.push((depth, look, start, len));
            next[depth as usize] = start + len as i64;
            next[depth as usize + 1] = start;
        }
        nodes
    }

    #[test]
    fn what_is_packed_comes_back() {
        let mut builder = GraphBuilder::default();
        let rust = |name: &str| Frame { func: name.into(), foreign: false, ..Frame::unknown(0) };
        let (root, a, b) = (Frame::unknown(0), rust("a"), rust("b"));
        let (root, a, b) = (builder.frame(&root), builder.frame(&a), builder.frame(&b));
        builder.open(root, Status::NONE, Span::new(5, 1000));
        builder.open(a, Status::NONE, Span::new(300, 999));
        builder.open(b, Status::DISPATCH, Span::new(300, 300));
        builder.close();
        builder.close();
        // Before its sibling, and one with nothing in it.
        builder.open(a, Status::NONE, Span::new(5, 90));
        builder.open(b, Status::NONE, Span::new(6, 5));
        let graph = builder.finish().unwrap();
        let mut packer = Packer::default();
        let packed = packer.pack(&graph, &[&Paint::default()], true);
        // Positions are told from the root's start on.
        assert_eq!(
            unpacked(&packed),
            [(0, 0, 0, 996), (1, 1, 295, 700), (2, 2, 295, 1), (1, 1, 0, 86), (2, 3, 1, 0)]
        );
        let names = |packer: &Packer| packer.strings().iter().filter(|name| **name == "a").count();
        packer.pack(&graph, &[&Paint::default()], true);
        assert_eq!((names(&packer), packer.frames().len()), (1, 3), "each name and frame once");
        assert_eq!(packer.looks().iter().map(|look| look[1]).collect::<Vec<_>>(), [0, 0, 1, 0]);
    }

    #[test]
    fn a_root_that_stands_for_everything_is_no_call() {
        let mut builder = GraphBuilder::default();
        let frame = builder.frame(&Frame::unknown(0));
        builder.open(frame, Status::DISPATCH, Span::new(1, 2));
        builder.open(frame, Status::DISPATCH, Span::new(1, 2));
        let mut packer = Packer::default();
        packer.pack(&builder.finish().unwrap(), &[&Paint::default()], true);
        assert_eq!(packer.looks().iter().map(|look| look[1]).collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn any_numbers() {
        let mut builder = GraphBuilder::default();
        let frame = builder.frame(&Frame { line: i64::MIN, ..Frame::unknown(0) });
        for (start, stop) in [(i64::MAX, i64::MAX), (i64::MIN, i64::MAX), (i64::MIN, i64::MIN), (0, 0)] {
            builder.open(frame, Status(255), Span::new(start, stop));
        }
        let packed = Packer::default().pack(&builder.finish().unwrap(), &[&Paint::default()], true);
        assert!(packed.len() < 4 * 40);
    }
}
