//! Flame graphs of allocation records: which code allocated how much of which type.
//!
//! Source: FlameGraphs.jl, `flamegraph(results::Profile.Allocs.AllocResults)`. Foreign frames are dropped before equal
//! frames are merged, so that their callers merge. Graphs of time do the opposite.

use crate::flamegraph::Flamegraph;
use crate::layout::{WeightedBox, lay_out};
use crate::{FlamegraphResult, GraphBuilder, Status, Warning};
use foldhash::HashMap;
use stackglass_profile::Frame;
use std::str::FromStr;

/// One allocation.
#[derive(Clone, Copy, Debug)]
pub struct AllocationRecord<'a> {
    /// The stack, innermost frame first.
    pub stack: &'a [Frame],
    /// Size in bytes.
    pub size: u64,
    /// The allocated type.
    pub type_name: &'a str,
}

/// What the width of a box means.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Weight {
    /// Bytes allocated.
    #[default]
    Bytes,
    /// Number of allocations.
    Count,
}

/// An unknown [`Weight`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{given}` is not a weight of allocations: use bytes or count")]
pub struct UnknownWeight {
    /// The given word.
    pub given: String,
}

impl FromStr for Weight {
    type Err = UnknownWeight;

    fn from_str(word: &str) -> Result<Weight, UnknownWeight> {
        match word {
            "bytes" => Ok(Weight::Bytes),
            "count" => Ok(Weight::Count),
            _ => Err(UnknownWeight { given: word.to_owned() }),
        }
    }
}

/// The options of a graph of allocations: `c`, `prune`, `norepl` and `filter` of a [`Flamegraph`], and a [`Weight`].
#[derive(Debug, Default)]
pub struct AllocationGraph {
    options: Flamegraph,
    weight: Weight,
}

/// A box under construction.
struct Box {
    frame: Frame,
    status: Status,
    weight: u64,
    children: Vec<u32>,
}

impl AllocationGraph {
    /// Options with this weight.
    pub fn new(options: Flamegraph, weight: Weight) -> AllocationGraph {
        AllocationGraph { options, weight }
    }

    /// Builds the graph.
    pub fn graph<'a>(&self, records: impl IntoIterator<Item = AllocationRecord<'a>>) -> FlamegraphResult {
        let boxes = self.boxes(records);
        if boxes[0].weight == 0 {
            return FlamegraphResult { graph: None, warning: Some(Warning::Empty) };
        }
        let mut builder = GraphBuilder::default();
        let counted = |entry: &Box| {
            let mut children = entry.children.clone();
            children.sort_by(|a, b| order(&boxes[*a as usize].frame).cmp(&order(&boxes[*b as usize].frame)));
            let (frame, status, weight) = (builder.frame(&entry.frame), entry.status, entry.weight);
            WeightedBox { frame, status, weight, children }
        };
        let counted: Vec<WeightedBox> = boxes.iter().map(counted).collect();
        match lay_out(builder, &counted) {
            Some(graph) => self.options.trimmed(graph),
            None => FlamegraphResult { graph: None, warning: Some(Warning::Empty) },
        }
    }

    fn boxes<'a>(&self, records: impl IntoIterator<Item = AllocationRecord<'a>>) -> Vec<Box> {
        let mut boxes = vec![Box::from_frame(Frame {
            func: "root".into(),
            line: 0,
            foreign: false,
            ..Frame::unknown(0)
        })];
        let mut known: HashMap<(usize, Frame), usize> = HashMap::default();
        for record in records {
            let weight = match self.weight {
                Weight::Bytes => record.size,
                Weight::Count => 1,
            };
            let mut at = 0;
            boxes[0].add(weight);
            let mut pruned = false;
            for frame in record.stack.iter().rev() {
                let status = self.options.frames().status(frame);
                // FlameGraphs.jl checks `C` first here: a hidden frame is never pruned.
                if frame.foreign && !self.options.frames().foreign {
                    boxes[at].status |= status;
                    continue;
                }
                if self.options.frames().prunes(frame) {
                    pruned = true;
                    break;
                }
                at = child(&mut boxes, &mut known, at, frame);
                boxes[at].status |= status;
                boxes[at].add(weight);
            }
            if !pruned {
                let func = type_name(record.type_name).into();
                let leaf = Frame { func, line: 0, foreign: false, ..Frame::unknown(0) };
                let leaf = child(&mut boxes, &mut known, at, &leaf);
                boxes[leaf].add(weight);
            }
        }
        boxes
    }
}

impl Box {
    fn from_frame(frame: Frame) -> Box {
        Box { frame, status: Status::NONE, weight: 0, children: Vec::new() }
    }

    fn add(&mut self, weight: u64) {
        self.weight = self.weight.saturating_add(weight);
    }
}

/// The child with this frame. The first one seen decides whether it is inlined.
fn child(
    boxes: &mut Vec<Box>,
    known: &mut HashMap<(usize, Frame), usize>,
    of: usize,
    frame: &Frame,
) -> usize {
    let key = Frame { inlined: false, ..frame.clone() };
    *known.entry((of, key)).or_insert_with(|| {
        boxes.push(Box::from_frame(frame.clone()));
        let new = boxes.len() - 1;
        boxes[of].children.push(new as u32);
        new
    })
}

/// Sort key: file, function, line; the unknown frame last.
fn order(frame: &Frame) -> (bool, &[u8], &[u8], i64) {
    (frame.is_unknown(), frame.file.as_bytes(), frame.func.as_bytes(), frame.line)
}

/// Maximum length of a type name, and the number of characters kept at each end of a longer one.
const LONGEST: usize = 120;
const HEAD: usize = 59;
const TAIL: usize = 60;

/// A type name as shown in boxes.
fn type_name(name: &str) -> String {
    let name = name.replace("Profile.Allocs.", "");
    let len = name.chars().count();
    if len <= LONGEST {
        return name;
    }
    let head: String = name.chars().take(HEAD).collect();
    let tail: String = name.chars().skip(len - TAIL).collect();
    format!("{head}…{tail}")
}
