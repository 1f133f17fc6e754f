//! Roots in memory that is mapped and belongs to no module, stack or heap: memory of other allocators, the loader, interpreters; pages
//! of files that the program has written; shared memory.
//!
//! Freed and stale memory must not be a root. So the heaps of all allocators are left out, and memory below the stack pointers of
//! threads. The C library keeps the stacks of ended threads for new ones: these are left out, too.

use crate::blocks::Blocks;
use crate::root::{Root, RootKind};
use stackglass_process_view::core_image::{CoreImage, Mapping, WrittenPart};
use stackglass_process_view::stacks::RED_ZONE;
use stackglass_profile::heap_graph::UNREAD_MEMORY;
use std::ops::Range;

/// Other memory.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct OtherMemory {
    /// What may have addresses. Mappings with memory that could not be read have a root without words, too.
    pub roots: Vec<Root>,
    /// Bytes that could not be read.
    pub unread: u64,
}

/// Memory outside of heaps, blocks, and the `known` addresses of modules and threads, which the program may have written.
///
/// `heaps` are those of the C library. Other mappings with blocks are taken for heaps as well, except those that hold only blocks
/// with a mapping of their own: the kernel joins these with their neighbours.
pub fn other_memory(
    image: &CoreImage,
    blocks: &Blocks,
    heaps: &[Range<u64>],
    known: &[Range<u64>],
) -> OtherMemory {
    let mut other = OtherMemory::default();
    for mapping in &image.mappings {
        let Range { start, end } = mapping.range;
        let is_known =
            |ranges: &[Range<u64>]| ranges.iter().any(|range| range.start <= start && end <= range.end);
        // `[vdso]` and its data are the kernel's. The program may have a part of `[heap]`, but not that of another allocator.
        let is_special = ["[stack", "[v"].iter().any(|name| mapping.path.starts_with(name))
            || mapping.path == "[heap]" && !heaps.iter().any(|heap| heap.start < end && start < heap.end);
        let is_plain = mapping.inode == 0 && !mapping.shared;
        if is_special || is_known(known) || is_plain && is_foreign_heap(image, blocks, heaps, mapping) {
            continue;
        }
        let written = image.memory.written(mapping);
        let owner = owner(mapping);
        if written.unread > 0 {
            other.roots.push(Root::new(RootKind::Other, owner, UNREAD_MEMORY, 0..0));
            other.unread = other.unread.saturating_add(written.unread);
        }
        if written.parts.is_empty() {
            continue;
        }
        let unused = if is_plain { unused_stacks(image, mapping) } else { Vec::new() };
        let mut taken: Vec<Range<u64>> = heaps
            .iter()
            .chain(known)
            .chain(&unused)
            .filter(|range| range.start < end && start < range.end)
            .cloned()
            .collect();
        taken.sort_by_key(|range| range.start);
        let name = format!("mapping of {} KiB", (end - start) >> 10);
        for WrittenPart { range, has_other_writers } in written.parts {
            let mut rest = Vec::new();
            // The C library's blocks of `[heap]` lie in its heaps.
            subtract(range, &taken, &mut |range| match &*mapping.path {
                "[heap]" => rest.push(range),
                _ => add_between_blocks(blocks, range, &mut rest),
            });
            other.roots.extend(
                rest.into_iter().map(|range| Root {
                    has_other_writers,
                    ..Root::new(RootKind::Other, owner, &name, range)
                }),
            );
        }
    }
    other
}

/// What a mapping is called that has no name, or one of the kernel's own making.
fn owner(mapping: &Mapping) -> &str {
    match &*mapping.path {
        "" => "anonymous memory",
        "/dev/zero (deleted)" => "shared memory",
        path => path,
    }
}

/// Whether a mapping has blocks that do not come from the C library.
fn is_foreign_heap(image: &CoreImage, blocks: &Blocks, heaps: &[Range<u64>], mapping: &Mapping) -> bool {
    let Range { start, end } = mapping.range;
    let first = blocks.addresses.partition_point(|address| *address < start);
    let last = blocks.addresses.partition_point(|address| *address < end);
    (first..last).any(|index| {
        let address = blocks.addresses[index];
        !heaps.iter().any(|heap| heap.contains(&address)) && !has_own_mapping(image, address)
    })
}

/// Whether the word before a block is that of a chunk with a mapping of its own (glibc: `IS_MMAPPED`).
fn has_own_mapping(image: &CoreImage, address: u64) -> bool {
    const IS_MMAPPED: u64 = 2;
    const FLAGS: u64 = 7;
    let Some(size) = address.checked_sub(8).and_then(|at| image.word(at)) else { return false };
    size & FLAGS == IS_MMAPPED && size & !FLAGS & 0xfff == 0
}

/// Parts of a mapping that are stacks, but not in use.
///
/// The C library puts the structure of a thread at the upper end of its stack.
fn unused_stacks(image: &CoreImage, mapping: &Mapping) -> Vec<Range<u64>> {
    let Range { start, end } = mapping.range;
    let mut unused = Vec::new();
    let mut from = start;
    let registers = image.threads.iter().filter_map(|thread| thread.registers);
    let mut ends: Vec<(u64, u64)> = registers.map(|thread| (thread.fs_base(), thread.rsp())).collect();
    ends.sort_unstable();
    for (structure, stack_pointer) in ends {
        if !(start..end).contains(&structure) {
            continue;
        }
        let top = match (from..structure).contains(&stack_pointer) {
            true => stack_pointer.saturating_sub(RED_ZONE),
            // A coroutine, or a signal on a stack of its own: where this stack ends is not known.
            false => from,
        };
        unused.push(from..top.max(from));
        from = structure;
    }
    if unused.is_empty()
        && let Some(structure) = cached_structure(image, mapping)
    {
        // The next thread also gets the vector of its thread-local variables (`dtv`), which is a block.
        unused.extend([start..structure + DTV, structure + DTV + 8..end]);
    }
    unused
}

/// Where the structure of a thread has the pointer to its vector (glibc: `tcbhead_t`).
const DTV: u64 = 8;

/// The structure of the thread, if a mapping is the stack of one that has ended, with a guard below it. It points to itself twice
/// (glibc: `tcbhead_t`).
fn cached_structure(image: &CoreImage, mapping: &Mapping) -> Option<u64> {
    const MOST_ABOVE: u64 = 0x3000;
    const ALIGNMENT: u64 = 64;
    const SELF: u64 = 16;
    let Range { start, end } = mapping.range;
    let has_guard = image.mapping(start.saturating_sub(1)).is_some_and(|below| !below.readable);
    let are_known = image.threads.iter().all(|thread| thread.registers.is_some());
    if !has_guard || !are_known {
        return None;
    }
    let lowest = end.saturating_sub(MOST_ABOVE).max(start).next_multiple_of(ALIGNMENT);
    (lowest..end.saturating_sub(SELF))
        .step_by(ALIGNMENT as usize)
        .find(|at| image.word(*at) == Some(*at) && image.word(at + SELF) == Some(*at))
}

/// Calls `each` with the parts of a range that are in none of the sorted ranges.
fn subtract(range: Range<u64>, taken: &[Range<u64>], each: &mut dyn FnMut(Range<u64>)) {
    let mut at = range.start;
    for other in taken {
        if other.start > at && at < range.end {
            each(at..other.start.min(range.end));
        }
        at = at.max(other.end);
    }
    if at < range.end {
        each(at..range.end);
    }
}

/// Adds the whole pages of a range that no block touches. Blocks have a head before them.
fn add_between_blocks(blocks: &Blocks, range: Range<u64>, rest: &mut Vec<Range<u64>>) {
    const PAGE: u64 = 4096;
    let first = blocks.addresses.partition_point(|address| *address < range.start).saturating_sub(1);
    let mut at = range.start;
    for index in first..blocks.len() {
        let start = blocks.addresses[index];
        if start >= range.end {
            break;
        }
        let pages = at..start.saturating_sub(1) & !(PAGE - 1);
        if pages.start < pages.end {
            rest.push(pages);
        }
        at = at.max(blocks.end(index).saturating_add(PAGE - 1) & !(PAGE - 1));
    }
    if at < range.end {
        rest.push(at..range.end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::SiteId;

    #[test]
    fn memory_between_heaps_and_blocks() {
        let mut blocks = Blocks::default();
        // A block with a mapping of its own, merged with its neighbours, and one that ends in the middle of a page.
        blocks.push(0x3010, 0x1ff0, SiteId(0));
        blocks.push(0x8010, 100, SiteId(0));
        let mut rest = Vec::new();
        subtract(0x1000..0xb000, &[0..0x2000, 0xa000..0xf000], &mut |range| {
            add_between_blocks(&blocks, range, &mut rest);
        });
        assert_eq!(rest, [0x2000..0x3000, 0x5000..0x8000, 0x9000..0xa000]);
    }
}
