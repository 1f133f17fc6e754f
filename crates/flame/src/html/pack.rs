//! A graph as few bytes: what its boxes look like once each, and a byte or two for each number of a node.
//!
//! A node is four numbers, in pre-order: levels left before it (0: it lies in the node before; 1: beside it), its
//! look, the distance from where it would start if nothing were free (zigzag), its length. Numbers have seven bits
//! a byte, lowest first, the eighth bit saying that more follow.

use crate::{Graph, Paint, shown};
use foldhash::fast::RandomState;
use std::collections::HashMap;

/// What all graphs of a page share.
pub(super) struct Packer {
    strings: Vec<String>,
    string_numbers: HashMap<String, i64, RandomState>,
    frames: Vec<[i64; 6]>,
    frame_numbers: HashMap<[i64; 6], i64, RandomState>,
}

/// One graph.
pub(super) struct Packed {
    /// Frame, status bits and swatch.
    pub(super) looks: Vec<[i64; 3]>,
    pub(super) bytes: Vec<u8>,
}

/// The first string is empty.
impl Default for Packer {
    fn default() -> Packer {
        let mut packer = Packer {
            strings: Vec::new(),
            string_numbers: HashMap::default(),
            frames: Vec::new(),
            frame_numbers: HashMap::default(),
        };
        packer.string("");
        packer
    }
}

impl Packer {
    /// All names.
    pub(super) fn strings(&self) -> &[String] {
        &self.strings
    }

    /// Of each frame: name, name in full, file, line, module (strings by number), and 1 inlined, 2 foreign,
    /// 4 nothing is known.
    pub(super) fn frames(&self) -> &[[i64; 6]] {
        &self.frames
    }

    /// A graph, its frames and names added to those that are there.
    pub(super) fn pack(&mut self, graph: &Graph, paint: &Paint<'_>) -> Packed {
        let frames: Vec<i64> = graph.frames().iter().map(|frame| self.frame(graph, frame)).collect();
        let mut looks: Vec<[i64; 3]> = Vec::new();
        let mut look_numbers: HashMap<[i64; 3], u64, RandomState> = HashMap::default();
        let mut bytes = Vec::with_capacity(graph.nodes().len() * 6);
        // Where the next node of each level would start.
        let mut next: Vec<i64> = vec![graph.root().span.start()];
        let mut above = -1;
        for node in graph.nodes() {
            let depth = i64::from(node.depth);
            let look =
                [frames[node.frame.0 as usize], i64::from(node.status.0), paint.of(graph, node) as i64];
            let look = *look_numbers.entry(look).or_insert_with(|| {
                looks.push(look);
                looks.len() as u64 - 1
            });
            next.truncate(node.depth as usize + 1);
            let (start, len) = (node.span.start(), node.span.len());
            let gap = start.saturating_sub(next[node.depth as usize]);
            number(&mut bytes, (above + 1 - depth) as u64);
            number(&mut bytes, look);
            number(&mut bytes, ((gap << 1) ^ (gap >> 63)) as u64);
            number(&mut bytes, len);
            next[node.depth as usize] = node.span.stop().saturating_add(1);
            next.push(start);
            above = depth;
        }
        Packed { looks, bytes }
    }

    fn frame(&mut self, graph: &Graph, frame: &stackglass_profile::Frame) -> i64 {
        let name = self.string(&shown::name(frame));
        let full = match &frame.spec {
            Some(spec) => self.string(&shown::harmless(spec)),
            None => name,
        };
        let file = match &*frame.file {
            "" => 0,
            _ => self.string(&shown::file(graph, frame)),
        };
        let module = self.string(&shown::harmless(&frame.module));
        let kind =
            i64::from(frame.inlined) | i64::from(frame.foreign) << 1 | i64::from(frame.is_unknown()) << 2;
        let parts = [name, full, file, frame.line, module, kind];
        *self.frame_numbers.entry(parts).or_insert_with(|| {
            self.frames.push(parts);
            self.frames.len() as i64 - 1
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
