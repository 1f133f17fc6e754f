//! What owners say of their buffers: how many elements are initialized, and how many bytes are allocated ahead.
//!
//! Owners are found in variables, in blocks, among local variables, and among the words of stacks by their shape.

use super::input::Input;
use super::words::words;
use crate::blocks::BlockIndex;
use crate::blocks::lookup::Lookup;
use crate::references::{self, BlockType, Extent, Hold, Reference, References, Usage};
use crate::typing;
use crate::window::Window;
use foldhash::{HashMap, HashSet};
use stackglass_layouts::{Layouts, Local};
use stackglass_process_view::core_image::CoreImage;
use stackglass_process_view::locals;
use stackglass_profile::SmallNumbers;
use std::ops::Range;

/// Largest number of elements that is noted.
const MOST_ELEMENTS: u64 = u64::MAX - 1;

/// What owners say of their blocks, by block.
#[derive(Debug, Default)]
pub(super) struct Owned {
    /// Number of initialized elements plus one; 0 if the number is not known.
    lengths: SmallNumbers,
    /// Where the elements of a `VecDeque` begin, if not at the first.
    rotated: HashMap<u32, Extent>,
    /// Buffers that may have more elements than their owners know: a thread is filling them.
    filling: HashSet<u32>,
    /// Bytes that are allocated ahead.
    pub unused: SmallNumbers,
}

impl Owned {
    /// Notes what an owner says. Of several, the one with most elements counts.
    fn note(&mut self, block: BlockIndex, elements: u64, extent: Extent) {
        let index = block.0 as usize;
        let elements = elements.min(MOST_ELEMENTS) + 1;
        self.lengths.set(index, elements.max(self.lengths.get(index)));
        if extent.first != 0 {
            self.rotated.insert(block.0, extent);
        }
    }

    /// Notes how much of a buffer is not in use.
    fn note_unused(&mut self, input: &Input<'_>, index: usize, usage: Usage, contains: Option<BlockType>) {
        let unused = match contains {
            Some(BlockType::Table(id)) => {
                let bytes = |buckets| references::table_bytes(buckets, input.layouts.get(id).size);
                bytes(usage.capacity).saturating_sub(bytes(usage.used))
            }
            _ => {
                let element =
                    contains.and_then(|contains| element_size(input.layouts, contains)).unwrap_or(1);
                usage.capacity.saturating_sub(usage.used).saturating_mul(element)
            }
        };
        self.unused.set(index, unused.min(input.blocks.size(index)));
    }

    pub fn extent(&self, index: usize) -> Extent {
        if self.filling.contains(&(index as u32)) {
            return Extent::default();
        }
        if let Some(rotated) = self.rotated.get(&(index as u32)) {
            return *rotated;
        }
        Extent::from(self.lengths.get(index).checked_sub(1))
    }
}

/// What owners say of their blocks.
pub(super) fn owned(
    input: &Input<'_>,
    lookup: &Lookup,
    references: &mut References<'_>,
    [near, window]: [&mut Window<'_>; 2],
) -> Owned {
    let Input { blocks, image, roots, .. } = input;
    let mut owned = Owned {
        lengths: SmallNumbers::zeros(blocks.len()),
        unused: SmallNumbers::zeros(blocks.len()),
        ..Owned::default()
    };
    let mut note = |reference: Reference<'_>| {
        let (Some(elements), Hold::Owns) = (reference.elements, reference.hold) else { return };
        let Some(found) = lookup.find(blocks, reference.target).filter(|found| found.offset == 0) else {
            return;
        };
        owned.note(found.block, elements, reference.extent());
        if let Some(usage) = reference.usage {
            owned.note_unused(input, found.block.0 as usize, usage, reference.contains);
        }
    };
    for root in *roots {
        if let Some(type_id) = root.type_id {
            let bytes = near.read(root.range.start, root.range.end.saturating_sub(root.range.start));
            references.of_value(type_id, root.range.start, bytes, image, &mut note);
        }
    }
    for index in 0..blocks.len() {
        if let Some(contains) = input.contains(index).filter(|contains| references.has_lengths(*contains)) {
            let block = (blocks.addresses[index], blocks.size(index));
            references.of_block_in(window, contains, Extent::default(), block, image, &mut note);
        }
    }
    for root in roots.iter().filter(|root| root.kind.is_doubtful()) {
        let of_locals = note_locals(input, lookup, references, near, &root.locals, &mut owned);
        if root.may_be_filling {
            let found = root.registers.iter().filter_map(|(_, value)| lookup.find(blocks, *value));
            owned.filling.extend(found.map(|found| found.block.0));
        }
        near.pieces(root.range.clone(), &mut |address, bytes| {
            for (number, word) in words(bytes).enumerate() {
                let Some(found) = lookup.find(blocks, word) else { continue };
                if root.may_be_filling {
                    owned.filling.insert(found.block.0);
                }
                let index = found.block.0 as usize;
                let Some(content @ BlockType::Elements(_)) = input.contains(index) else { continue };
                let address = address + number as u64 * 8;
                if found.offset != 0 || of_locals.iter().any(|value| value.contains(&address)) {
                    continue;
                }
                let (words, at) = words_beside(image, root.range.clone(), address);
                let extent = references.extent_from_owner(content, blocks.size(index), &words, at, image);
                if let Some(extent) = extent
                    && let Some(elements) = extent.elements
                {
                    owned.note(found.block, elements, extent);
                }
            }
        });
    }
    owned
}

/// Notes what local variables say of the buffers that they own. A variable may be uninitialized or moved away, so its buffer must have
/// the elements and the size that it says. Returns where these variables lie.
fn note_locals(
    input: &Input<'_>,
    lookup: &Lookup,
    references: &mut References<'_>,
    window: &mut Window<'_>,
    locals: &[Local],
    owned: &mut Owned,
) -> Vec<Range<u64>> {
    let Input { blocks, image, layouts, .. } = input;
    let mut noted = Vec::new();
    for local in locals {
        let (address, bytes) =
            locals::value(&local.place, local.type_id, layouts, |address, size| window.read(address, size));
        let behind = address.saturating_add(bytes.len() as u64);
        let mut agrees = false;
        references.of_value(local.type_id, address, bytes, image, &mut |reference| {
            let (Some(elements), Some(usage), Hold::Owns) =
                (reference.elements, reference.usage, reference.hold)
            else {
                return;
            };
            let Some(found) = lookup.find(blocks, reference.target).filter(|found| found.offset == 0) else {
                return;
            };
            let index = found.block.0 as usize;
            let (Some(known), Some(claimed)) = (input.contains(index), reference.contains) else { return };
            let Some(size) = element_size(layouts, claimed) else { return };
            let bytes = usage.capacity.saturating_mul(size);
            let is_whole = bytes <= blocks.size(index) && blocks.size(index) - bytes < SLACK;
            if typing::agree(layouts, known, claimed) && (is_whole || matches!(claimed, BlockType::Table(_)))
            {
                owned.note(found.block, elements, reference.extent());
                owned.note_unused(input, index, usage, Some(claimed));
                agrees = true;
            }
        });
        if agrees && address != 0 {
            noted.push(address..behind);
        }
    }
    noted
}

/// An allocator may give so many bytes more than were asked for.
const SLACK: u64 = 32;

/// The size of the elements of a block in bytes.
pub(super) fn element_size(layouts: &Layouts, contains: BlockType) -> Option<u64> {
    match contains {
        BlockType::Elements(id)
        | BlockType::CountedElements(id)
        | BlockType::SharedElements(id)
        | BlockType::Table(id) => Some(layouts.get(id).size),
        BlockType::Bytes => Some(1),
        BlockType::One(_) => None,
    }
}

/// The words of a range at and beside an address, and the place of the one at this address.
fn words_beside(image: &CoreImage, range: Range<u64>, address: u64) -> (Vec<u64>, usize) {
    /// The largest owner of a buffer has four words.
    const BESIDE: u64 = 64;
    let before = (address - range.start).min(BESIDE);
    let mut bytes = vec![0; (before + (range.end - address).min(BESIDE)) as usize];
    let read = image.memory.read(address - before, &mut bytes);
    (words(&bytes[..read.min(bytes.len())]).collect(), (before / 8) as usize)
}
