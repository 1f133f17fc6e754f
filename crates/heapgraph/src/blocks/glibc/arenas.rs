//! Finds arenas by their structure: 127 bins whose first chunks point back, and a ring of arenas.

use stackglass_process_view::core_image::CoreImage;

use super::layout::{ARENAS, ArenaLayout, BINS, FLAGS, HEAP_MAX, PAGE};
use super::words::Words;

/// Largest data segment that is searched.
const LARGEST_SEGMENT: u64 = 64 << 20;
/// Most data that is searched.
const MOST_DATA: u64 = 1 << 30;
/// Most arenas of a ring. glibc makes eight for each CPU.
const MOST_ARENAS: usize = 1 << 16;
/// Most heaps of all arenas.
const MOST_HEAPS: usize = 1 << 20;
/// Bins that may look wrong, since a thread may be changing them.
const WRONG_BINS: u64 = 7;

/// A main arena: the program's, or that of another copy of the C library.
#[derive(Debug)]
pub(super) struct MainArena {
    pub address: u64,
    pub layout: &'static ArenaLayout,
    /// The data segment that contains it.
    pub segment: std::ops::Range<u64>,
    /// Addresses of the other arenas.
    pub others: Vec<u64>,
}

/// A heap of a thread arena: a piece of its memory.
#[derive(Debug)]
pub(super) struct Heap {
    pub start: u64,
    /// Bytes in use from the start on.
    pub size: u64,
    /// First chunk.
    pub first_chunk: u64,
    /// The top chunk, if it is in this heap.
    pub top: Option<u64>,
}

/// All main arenas.
pub(super) fn main_arenas(words: &mut Words<'_>) -> Vec<MainArena> {
    let image = words.image();
    // The linker puts main arenas into a file's data. A restored process may have lost the files of its mappings.
    let with_file = search(image, words, |inode| inode != 0);
    if with_file.is_empty() { search(image, words, |inode| inode == 0) } else { with_file }
}

fn search(image: &CoreImage, words: &mut Words<'_>, of_inode: impl Fn(u64) -> bool) -> Vec<MainArena> {
    let mut found: Vec<MainArena> = Vec::new();
    let mut bytes = Vec::new();
    let mut left = MOST_DATA;
    for mapping in &image.mappings {
        let size = mapping.range.end.saturating_sub(mapping.range.start);
        let is_data =
            mapping.writable && mapping.readable && !mapping.shared && !mapping.path.starts_with('[');
        if !is_data || !of_inode(mapping.inode) || size > LARGEST_SEGMENT.min(left) {
            continue;
        }
        left -= size;
        bytes.resize(size as usize, 0);
        let read = image.memory.read(mapping.range.start, &mut bytes).min(bytes.len());
        let segment = Segment { start: mapping.range.start, bytes: &bytes[..read] };
        let mut at = 0;
        while let Some(top) = segment.word(at) {
            // The address of the field `top`.
            let field = segment.start + at;
            at += 8;
            if top == 0 || top % 16 != 0 || !segment.has_bins(field, words) {
                continue;
            }
            if let Some((address, layout, others)) = ring(words, field) {
                found.push(MainArena { address, layout, segment: mapping.range.clone(), others });
                at += layout.size - layout.top;
            }
        }
    }
    found
}

/// A data segment in our memory.
struct Segment<'bytes> {
    start: u64,
    bytes: &'bytes [u8],
}

impl Segment<'_> {
    fn word(&self, at: u64) -> Option<u64> {
        let at = usize::try_from(at).ok()?;
        Some(u64::from_le_bytes(self.bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
    }

    /// Whether an arena with bins has its field `top` at this address: the first chunk of each bin points back to the bin.
    fn has_bins(&self, field: u64, words: &mut Words<'_>) -> bool {
        let mut wrong = 0;
        for bin in 0..BINS {
            let pair = field + 16 + 16 * bin;
            // A bin is linked like a chunk: the pair is where a chunk has its links.
            let head = pair - 16;
            let Some(forward) = self.word(pair - self.start) else { return false };
            let is_right = forward == head
                || forward % 16 == 0
                    && forward >= PAGE
                    && forward.checked_add(24).and_then(|back| words.get(back)) == Some(head);
            wrong += u64::from(!is_right);
            if wrong > WRONG_BINS {
                return false;
            }
        }
        true
    }
}

/// The arena whose field `top` is at `field`, and the others of its ring. Only one layout makes the ring close.
fn ring(words: &mut Words<'_>, field: u64) -> Option<(u64, &'static ArenaLayout, Vec<u64>)> {
    ARENAS.iter().find_map(|layout| {
        let address = field.checked_sub(layout.top)?;
        let mut others = Vec::new();
        let mut next = words.get(address + layout.next)?;
        while next != address {
            let top = words.get(next.checked_add(layout.top)?)?;
            if next % 8 != 0 || top % 16 != 0 || !words.is_writable(next) || others.len() >= MOST_ARENAS {
                return None;
            }
            others.push(next);
            next = words.get(next.checked_add(layout.next)?)?;
        }
        Some((address, layout, others))
    })
}

/// Heaps of a main arena's thread arenas.
#[derive(Default)]
pub(super) struct Heaps {
    /// Heaps by address.
    pub heaps: Vec<Heap>,
    /// Arenas whose heaps could not be followed to the first.
    pub broken: u64,
}

/// The heaps of thread arenas: from the heap of the top chunk along the links to the first.
pub(super) fn heaps(words: &mut Words<'_>, main: &MainArena, huge_page: u64) -> Heaps {
    let mut found = Heaps::default();
    // From 2.35 to 2.41, heaps are as large as four huge pages if these are configured.
    let sizes = [HEAP_MAX, huge_page.saturating_mul(4)];
    for &arena in &main.others {
        let layout = main.layout;
        let Some(top) = words.get(arena + layout.top) else { continue };
        let Some(largest) = sizes
            .into_iter()
            .filter(|size| size.is_power_of_two())
            .find(|size| words.get(top & !(size - 1)) == Some(arena))
        else {
            found.broken += 1;
            continue;
        };
        let mut start = top & !(largest - 1);
        let mut is_whole = false;
        for _ in 0..MOST_HEAPS {
            let Some((previous, size)) = heap_info(words, start, arena, largest) else { break };
            // The first heap contains the arena behind its description.
            let description = if arena.wrapping_sub(arena & !(largest - 1)) == 32 { 32 } else { 48 };
            let is_first = arena == start + description;
            let first_chunk = if is_first {
                // Its memory is aligned, and begins 16 bytes after the chunk.
                (arena + layout.size).next_multiple_of(16)
            } else {
                start + description
            };
            let top = (start..start + largest).contains(&top).then_some(top);
            found.heaps.push(Heap { start, size, first_chunk, top });
            if is_first || previous == 0 || found.heaps.len() >= MOST_HEAPS {
                is_whole = is_first;
                break;
            }
            start = previous;
        }
        found.broken += u64::from(!is_whole);
    }
    found.heaps.sort_unstable_by_key(|heap| heap.start);
    found.heaps.dedup_by_key(|heap| heap.start);
    found
}

/// The previous heap of the arena, and the size of this one.
fn heap_info(words: &mut Words<'_>, start: u64, arena: u64, largest: u64) -> Option<(u64, u64)> {
    let is_of_arena = start.is_multiple_of(largest) && words.get(start)? == arena;
    let previous = words.get(start + 8)?;
    let size = words.get(start + 16)?;
    (is_of_arena && previous != start && size <= largest && size >= PAGE).then_some((previous, size))
}

/// The main arena's top chunk; `None` if it has no memory yet.
pub(super) fn main_top(words: &mut Words<'_>, main: &MainArena) -> Option<u64> {
    let top = words.get(main.address + main.layout.top)?;
    let has_memory = top != main.address + main.layout.top && top & FLAGS == 0 && words.is_writable(top);
    has_memory.then_some(top)
}
