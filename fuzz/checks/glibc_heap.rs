//! Memory of a process that uses glibc's malloc: for any contents, the walk of its heap ends, and blocks ascend without overlaps.

use super::made_up::{MadeUp, VERSIONS};
use super::memory::bounded;
use stackglass_heapgraph::blocks::glibc::live_blocks;
use stackglass_process_view::core_image::CoreImage;

/// Bytes for words and windows of memory, and for the data segment that is searched.
const MEMORY: usize = 32 << 20;

/// The first byte chooses a version of glibc. Each 11 bytes behind change a word of its memory: the mapping, the place in it,
/// and the word.
pub fn check(bytes: &[u8]) {
    let Some((version, changes)) = bytes.split_first() else { return };
    let mut made = MadeUp::new(VERSIONS[usize::from(*version) % VERSIONS.len()]);
    for change in changes.chunks_exact(11) {
        let count = made.memory.len();
        let (_, memory) = &mut made.memory[usize::from(change[0]) % count];
        let at = usize::from(u16::from_le_bytes([change[1], change[2]])) * 8 % memory.len();
        memory[at..at + 8].copy_from_slice(&change[3..]);
    }
    check_image(&made.image());
}

/// Walks the heap of a process.
pub fn check_image(image: &CoreImage) {
    bounded(MEMORY, || {
        let Ok(heap) = live_blocks(image) else { return };
        let blocks = &heap.blocks;
        let mut end = 0;
        for (address, size) in blocks.iter() {
            assert!(address >= end, "a block at {address:#x} begins before {end:#x}");
            end = address + size;
        }
        assert_eq!(blocks.sites.len(), blocks.len());
        let _ = (heap.report.remarks(), heap.report.is_complete());
    });
}
