//! Finds blocks that look like tasks: multiples of 128 with the vtable of a task.
//!
//! Freed blocks and copies on stacks look the same. So this only finds the way to the runtimes, and functions of
//! `spawn_blocking`, which are in no list.

use super::cells::Cells;
use stackglass_process_view::core_image::CoreImage;

/// Alignment of `Cell` on x86-64 (`runtime/task/core.rs`).
const ALIGNMENT: u64 = 128;
/// Bytes that are read at once.
const CHUNK: u64 = 1 << 20;
const PAGE: u64 = 4096;
/// Most blocks.
const MOST: usize = 1 << 22;

/// The addresses of such blocks.
pub(super) fn cells(image: &CoreImage, cells: &Cells<'_>) -> Vec<u64> {
    let Some(offset) = cells.headers.vtable_offset().filter(|_| !cells.is_empty()) else { return Vec::new() };
    blocks(image, offset, &|word| cells.is_vtable(word))
}

/// The addresses of blocks that have the address of a vtable at an offset.
pub(super) fn blocks(image: &CoreImage, offset: u64, is_vtable: &dyn Fn(u64) -> bool) -> Vec<u64> {
    let is_heap = |path: &str| path.is_empty() || path == "[heap]" || path.starts_with("[anon");
    let heaps = image
        .mappings
        .iter()
        .filter(|mapping| mapping.readable && mapping.writable && !mapping.shared && is_heap(&mapping.path));
    let mut found = Vec::new();
    let mut bytes = vec![0; CHUNK as usize];
    let mut resident = vec![true; (CHUNK / PAGE) as usize];
    // Mappings begin at a page, which is a multiple of the alignment.
    for mapping in heaps {
        let mut at = mapping.range.start;
        while at < mapping.range.end && found.len() < MOST {
            let size = (mapping.range.end - at).min(CHUNK);
            let pages = &mut resident[..size.div_ceil(PAGE) as usize];
            image.memory.resident(at, pages);
            // Pages that were never written are left out: to read them takes as long.
            let mut from = at;
            for run in pages.chunk_by(|page, next| page == next) {
                let end = (from + run.len() as u64 * PAGE).min(at + size);
                if run[0] {
                    let read = image.memory.read(from, &mut bytes[..(end - from) as usize]);
                    for place in (offset as usize..read.saturating_sub(7)).step_by(ALIGNMENT as usize) {
                        let word = u64::from_le_bytes(bytes[place..place + 8].try_into().unwrap_or_default());
                        if word != 0 && is_vtable(word) {
                            found.push(from + place as u64 - offset);
                        }
                    }
                }
                from = end;
            }
            at += size;
        }
    }
    found
}
