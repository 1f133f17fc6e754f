//! A block has one owner, or as many as its reference count says. That tells whether a word on a stack, or in a block of unknown
//! layout, can be an owner.
//!
//! The `strong` count of an `Rc` or `Arc` is the number of its owners; a `Box` or a buffer has one. If values of known types in blocks
//! and variables account for all of them, such a word is no owner: it is left over, or borrows from one of those. It would hide that
//! nothing reaches the owner.

use super::edges::{Edges, OWNS, UNKNOWN, WEAK};
use super::input::Input;
use crate::blocks::BlockIndex;
use crate::references::BlockType;
use crate::root::RootKind;
use foldhash::HashMap;
use stackglass_layouts::{Field, Layouts, Shape, TypeId};

/// The types with counts. A `dyn` value has one of them as well.
const COUNTED: [&str; 3] = ["alloc::rc::RcInner<", "alloc::rc::RcBox<", "alloc::sync::ArcInner<"];

/// Makes words of stacks, registers and blocks of unknown layout weak if their targets have enough other owners.
pub(super) fn apply(edges: &mut Edges, input: &Input<'_>) {
    let doubtful = doubtful(edges, input);
    let mut owners: HashMap<u32, u64> = doubtful.iter().map(|edge| (edges.targets[*edge].0, 0)).collect();
    if owners.is_empty() {
        return;
    }
    for place in 0..input.roots.len() + input.blocks.len() {
        if input.roots.get(place).is_some_and(|root| root.kind.is_doubtful()) {
            continue;
        }
        for edge in edges.of(place) {
            let is_owner = edges.kinds[edge] & (OWNS | WEAK) == OWNS;
            if let Some(count) = owners.get_mut(&edges.targets[edge].0).filter(|_| is_owner) {
                *count += 1;
            }
        }
    }
    let strong: HashMap<u32, bool> = owners
        .into_iter()
        .map(|(block, owners)| {
            (block, strong_count(input, BlockIndex(block)).is_some_and(|n| 0 < n && n <= owners))
        })
        .collect();
    for edge in doubtful {
        if strong.get(&edges.targets[edge].0) == Some(&true) {
            edges.kinds[edge] |= WEAK;
        }
    }
}

/// The edges of stacks and registers, and of blocks of unknown layout to blocks of known types. Only these have known owners.
fn doubtful(edges: &Edges, input: &Input<'_>) -> Vec<usize> {
    let roots = input.roots.iter().enumerate().filter(|(_, root)| RootKind::is_doubtful(root.kind));
    let of_roots = roots.flat_map(|(place, _)| edges.of(place));
    let blocks = edges.of_blocks(input.roots.len());
    let of_blocks = blocks.filter(|edge| {
        edges.kinds[*edge] & (UNKNOWN | WEAK) == UNKNOWN
            && input.contains(edges.targets[*edge].0 as usize).is_some()
    });
    of_roots.chain(of_blocks).collect()
}

fn strong_offset(input: &Input<'_>, block: BlockIndex) -> Option<u64> {
    match input.contains(block.0 as usize)? {
        BlockType::One(id) => strong_in(input, id),
        BlockType::CountedElements(_) | BlockType::SharedElements(_) => Some(0),
        _ => None,
    }
}

fn strong_in(input: &Input<'_>, id: TypeId) -> Option<u64> {
    let fields = counted_fields(input.layouts, id)?;
    fields.iter().find(|field| &*field.name == "strong").map(|field| field.offset)
}

/// The fields of a type with counts.
fn counted_fields(layouts: &Layouts, id: TypeId) -> Option<&[Field]> {
    let layout = layouts.get(id);
    let Shape::Struct(fields) = &layout.shape else { return None };
    COUNTED.iter().find(|prefix| layout.name.starts_with(**prefix))?;
    Some(fields)
}

/// Offset and size of the value in a type with counts.
pub(super) fn counted_value(layouts: &Layouts, id: TypeId) -> Option<(u64, u64)> {
    let fields = counted_fields(layouts, id)?;
    let value = fields.iter().find(|field| ["value", "data"].contains(&&*field.name))?;
    Some((value.offset, layouts.get(value.type_id).size))
}

/// Number of owners of a block; `None` if it cannot be read.
fn strong_count(input: &Input<'_>, block: BlockIndex) -> Option<u64> {
    let Some(offset) = strong_offset(input, block) else { return Some(1) };
    input.image.word(input.blocks.addresses[block.0 as usize] + offset)
}
