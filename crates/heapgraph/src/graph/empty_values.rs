//! Values without a size in an `Rc` or `Arc`: their address is the end of the block.
//!
//! `Arc::into_raw` gives the address of the value, behind the counts: a `Waker` holds that. A block of a value without a size has
//! the counts only, so no byte of it has that address. If another block begins there, the address is that block's.

use super::counts;
use super::input::Input;
use crate::blocks::BlockIndex;
use crate::blocks::lookup::Found;
use crate::references::BlockType;
use foldhash::HashMap;
use std::ops::Range;

/// The blocks of such values.
#[derive(Default)]
pub(super) struct EmptyValues {
    /// By their ends.
    blocks: HashMap<u64, BlockIndex>,
    /// The ends of all.
    range: Range<u64>,
}

impl EmptyValues {
    pub fn new(input: &Input<'_>) -> EmptyValues {
        let is_empty = |site: &crate::site::Site| match site.contains {
            Some(BlockType::One(id)) => counts::counted_value(input.layouts, id)
                .is_some_and(|(offset, size)| size == 0 && offset == input.layouts.get(id).size),
            _ => false,
        };
        let sites: Vec<bool> = input.sites.iter().map(is_empty).collect();
        let mut values = EmptyValues::default();
        if !sites.contains(&true) {
            return values;
        }
        for index in (0..input.blocks.len()).filter(|index| sites[input.site(*index)]) {
            let Some(BlockType::One(id)) = input.contains(index) else { continue };
            let end = input.blocks.end(index);
            // A larger block holds the address.
            if input.blocks.size(index) == input.layouts.get(id).size {
                values.range.start = if values.blocks.is_empty() { end } else { values.range.start.min(end) };
                values.range.end = values.range.end.max(end.saturating_add(1));
                values.blocks.insert(end, BlockIndex(index as u32));
            }
        }
        values
    }

    /// The block of the value at an address that no block holds.
    #[inline]
    pub fn find(&self, input: &Input<'_>, address: u64) -> Option<Found> {
        if !self.range.contains(&address) {
            return None;
        }
        let block = *self.blocks.get(&address)?;
        Some(Found { block, offset: input.blocks.size(block.0 as usize) })
    }
}
