//! Whether a type fits into a block of a requested size, or of a usable size, as glibc's malloc rounds sizes.

use crate::references::{BlockType, Extent};
use stackglass_layouts::{Layout, Layouts, Shape, TypeId};

/// Blocks from this size on may have mappings of their own, which are whole pages.
const MAPPED: u64 = 64 << 10;
const PAGE: u64 = 4096;

/// How exactly sizes must agree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Exactness {
    /// As malloc rounds sizes.
    Exact,
    /// The block may have 16 bytes more, because the rest of a chunk was too small for a chunk.
    Rest,
    /// The size is the requested one.
    Asked,
}

/// Bytes that can be used if so many are asked for (`request2size` of glibc).
fn usable(bytes: u64) -> u64 {
    bytes.saturating_add(8).next_multiple_of(16).max(32) - 8
}

/// Whether a block of this size may have been requested with so many bytes.
pub(super) fn is_size_of(bytes: u64, block: u64, exactness: Exactness) -> bool {
    if bytes == 0 || bytes > block || bytes > 1 << 47 {
        return false;
    }
    if exactness == Exactness::Asked {
        return bytes == block;
    }
    let usable = usable(bytes);
    let is_mapped = block >= MAPPED && block - bytes < PAGE + 32;
    block == usable || is_mapped || exactness == Exactness::Rest && block == usable + 16
}

/// Whether the type of a value fits into a block, or the elements that its owner says.
pub(super) fn fits(
    layouts: &Layouts,
    contains: BlockType,
    extent: Extent,
    block: u64,
    exactness: Exactness,
) -> bool {
    let size = |id: TypeId| layouts.get(id).size;
    let elements = |id: TypeId, before: u64| {
        let bytes = |count: u64| count.checked_mul(size(id)).and_then(|bytes| bytes.checked_add(before));
        let is = |count: u64| bytes(count).is_some_and(|bytes| is_size_of(bytes, block, exactness));
        size(id) > 0
            && match (extent.capacity, extent.elements) {
                (Some(capacity), _) => is(capacity),
                (None, Some(count)) => is(count),
                (None, None) => before + size(id) <= block,
            }
    };
    match contains {
        BlockType::One(id) => {
            let layout = layouts.get(id);
            is_size_of(layout.size, block, exactness)
                || layout.size > 0 && layout.size <= block && is_extended(layouts, layout)
        }
        BlockType::Elements(id) => elements(id, 0),
        BlockType::CountedElements(id) | BlockType::SharedElements(id) => elements(id, 16),
        BlockType::Table(id) => extent.elements.is_some_and(|buckets| {
            let slots = buckets.checked_mul(size(id)).and_then(|slots| slots.checked_next_multiple_of(16));
            let bytes = slots.and_then(|slots| slots.checked_add(buckets)?.checked_add(16));
            buckets.is_power_of_two() && bytes.is_some_and(|bytes| is_size_of(bytes, block, exactness))
        }),
        BlockType::Bytes => match (extent.capacity, extent.elements) {
            (Some(capacity), _) => {
                is_size_of(capacity, block, exactness) || is_size_of(capacity + 1, block, exactness)
            }
            (None, Some(count)) => {
                is_size_of(count, block, exactness) || is_size_of(count.saturating_add(1), block, exactness)
            }
            (None, None) => true,
        },
    }
}

/// Whether a struct ends in an array without a bound.
fn is_extended(layouts: &Layouts, layout: &Layout) -> bool {
    let Shape::Struct(fields) = &layout.shape else { return false };
    fields.last().is_some_and(|field| {
        let last = layouts.get(field.type_id);
        // Rust's arrays have names in brackets.
        matches!(last.shape, Shape::Array { count: 0, .. }) && !last.name.starts_with('[')
    })
}

/// Whether values of `outer` begin with a value of `inner`.
pub(super) fn begins_with(layouts: &Layouts, outer: TypeId, inner: TypeId) -> bool {
    let mut id = outer;
    for _ in 0..32 {
        if id == inner {
            return true;
        }
        let first = match &layouts.get(id).shape {
            Shape::Struct(fields) => {
                let first =
                    fields.iter().find(|field| field.offset == 0 && layouts.get(field.type_id).size > 0);
                first.map(|field| field.type_id)
            }
            Shape::Array { element, .. } => Some(*element),
            _ => None,
        };
        let Some(first) = first else { return false };
        id = first;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_as_malloc_does() {
        // Asked for, usable: as `malloc_usable_size` says.
        for (asked, usable_size) in
            [(1, 24), (24, 24), (25, 40), (40, 40), (41, 56), (1000, 1000), (1001, 1016)]
        {
            assert_eq!(usable(asked), usable_size, "{asked}");
            assert!(is_size_of(asked, usable_size, Exactness::Exact));
            assert!(!is_size_of(asked, usable_size + 16, Exactness::Exact));
            assert!(is_size_of(asked, usable_size + 16, Exactness::Rest));
            assert!(!is_size_of(asked, usable_size + 32, Exactness::Rest));
            assert!(is_size_of(asked, asked, Exactness::Asked));
            assert!(!is_size_of(asked, asked + 1, Exactness::Asked));
        }
        // A mapping of its own: 1 MiB and the head are 257 pages.
        assert!(is_size_of(1 << 20, 257 * 4096 - 16, Exactness::Exact));
        assert!(!is_size_of(1 << 20, 259 * 4096 - 16, Exactness::Exact));
    }
}
