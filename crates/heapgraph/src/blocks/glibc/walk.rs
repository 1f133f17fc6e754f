//! Walks heaps chunk by chunk. A chunk is in use if the next one says so, and it is not in a cache or fast bin.
//!
//! Where a chunk cannot be followed, the walk goes on at the next address from which chunks follow each other again: memory
//! that the program got by `sbrk` itself, a chunk that a thread was about to split, or damage.

use crate::blocks::{Blocks, SiteId};
use stackglass_process_view::core_image::CoreImage;

use super::layout::{BEFORE_IN_USE, FLAGS, HEAD, MAPPED, SMALLEST, THREAD_ARENA};
use super::words::Words;

/// Bytes that are read at once.
const WINDOW: usize = 1 << 20;
/// Chunks that must follow each other for the walk to go on behind a gap.
const CONVINCING: u64 = 24;
/// Most addresses at which the walk tries to go on, in one core image: 1 GiB of memory.
const MOST_TRIES: u64 = 1 << 26;
/// Bytes of the two chunks that mark the end of a piece.
const FENCES: u64 = 32;
/// Gaps of which the addresses are kept.
const KEPT_GAPS: usize = 16;

/// A heap, or a piece of the main heap.
#[derive(Debug)]
pub(super) struct Region {
    /// First chunk.
    pub start: u64,
    /// End of the memory.
    pub end: u64,
    /// The top chunk, where the walk ends. `None`: the walk ends at a chunk that is too small to be one.
    pub top: Option<u64>,
    /// Whether it belongs to a thread arena.
    pub of_thread_arena: bool,
}

/// What the walk met.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Parts that could not be followed: the first few of them.
    pub gaps: Vec<std::ops::Range<u64>>,
    /// Number of these parts.
    pub gap_count: u64,
    /// Bytes in them.
    pub gap_bytes: u64,
    /// Pieces of the main heap behind memory of others.
    pub pieces: u64,
    /// This memory of others, and that behind the top chunk.
    pub foreign: Vec<std::ops::Range<u64>>,
    /// Chunks that a thread was about to change.
    pub changing: u64,
    /// Free chunks by caches and fast bins that the walk did not meet.
    pub strays: u64,
}

pub(super) struct Walk<'image, 'words> {
    words: &'words mut Words<'image>,
    image: &'image CoreImage,
    window: Vec<u8>,
    window_start: u64,
    window_size: usize,
    /// Chunks that look in use and are not, sorted, and how many of them the walk has passed.
    free: &'words [u64],
    passed: usize,
    tries: u64,
    pub blocks: Blocks,
    pub outcome: Outcome,
}

/// What follows a chunk.
enum Step {
    /// The next chunk, its head, and whether this one is in use.
    To { next: u64, head: u64, in_use: bool },
    /// The top chunk begins within this one, which is being split.
    Changing,
    /// This chunk marks the end of a piece.
    Fence,
    /// It is no chunk.
    Broken,
}

impl<'image, 'words> Walk<'image, 'words> {
    pub fn new(words: &'words mut Words<'image>, free: &'words [u64]) -> Self {
        let image = words.image();
        Self {
            words,
            image,
            window: vec![0; WINDOW],
            window_start: 0,
            window_size: 0,
            free,
            passed: 0,
            tries: 0,
            blocks: Blocks::default(),
            outcome: Outcome::default(),
        }
    }

    /// Adds a block.
    pub fn push(&mut self, address: u64, size: u64) {
        if address.checked_add(size).is_some() && self.blocks.len() < u32::MAX as usize {
            self.blocks.push(address, size, SiteId(0));
        }
    }

    /// Adds the blocks of a region. Regions are walked by address.
    pub fn walk(&mut self, region: &Region) {
        self.window_size = 0;
        let mut chunk = region.start;
        let mut before = chunk;
        let Some(mut head) = self.head(chunk, region.end) else {
            self.add_gap(chunk..region.end);
            return;
        };
        while Some(chunk) != region.top {
            let is_fence = match self.step(chunk, head, region) {
                Step::To { next, head: next_head, in_use } => {
                    if in_use && !self.is_free(chunk) {
                        self.push(chunk + HEAD, next - chunk - 8);
                    }
                    (before, chunk, head) = (chunk, next, next_head);
                    continue;
                }
                Step::Changing => {
                    self.outcome.changing += 1;
                    return;
                }
                Step::Fence if region.of_thread_arena && region.top.is_none() => return,
                Step::Fence => true,
                Step::Broken => false,
            };
            // Behind memory of others, chunks should follow each other up to the end.
            let by_end = if is_fence { self.resume(chunk + 16, region, MOST_TRIES) } else { None };
            let Some((next, next_head)) = by_end.or_else(|| self.resume(chunk + 16, region, CONVINCING))
            else {
                let is_end = is_fence && region.top.is_none_or(|top| top < chunk);
                if !is_end {
                    self.add_gap(chunk..region.top.filter(|top| *top > chunk).unwrap_or(region.end));
                }
                return;
            };
            if is_fence {
                self.outcome.pieces += 1;
                self.outcome.foreign.push(chunk + FENCES..next);
            } else if self.is_split(before, chunk, next, next_head) {
                self.outcome.changing += 1;
            } else {
                self.add_gap(chunk..next);
            }
            (before, chunk, head) = (next, next, next_head);
        }
        if let Some(end) = chunk.checked_add(head & !FLAGS).filter(|end| *end < region.end) {
            self.outcome.foreign.push(end..region.end);
        }
    }

    /// The head of a chunk.
    fn head(&mut self, chunk: u64, end: u64) -> Option<u64> {
        if chunk < self.window_start || chunk - self.window_start + HEAD > self.window_size as u64 {
            let size = usize::try_from(end.saturating_sub(chunk)).unwrap_or(WINDOW).min(WINDOW);
            self.window_start = chunk;
            self.window_size = self.image.memory.read(chunk, &mut self.window[..size]).min(size);
            if self.window_size < HEAD as usize {
                return None;
            }
        }
        let at = (chunk - self.window_start) as usize + 8;
        Some(u64::from_le_bytes(self.window[at..at + 8].try_into().ok()?))
    }

    fn step(&mut self, chunk: u64, head: u64, region: &Region) -> Step {
        let size = head & !FLAGS;
        if size == 16 || size == 0 && region.of_thread_arena && head == BEFORE_IN_USE {
            return Step::Fence;
        }
        if size < SMALLEST || !size.is_multiple_of(16) || head & MAPPED != 0 {
            return Step::Broken;
        }
        let Some(next) = chunk.checked_add(size) else { return Step::Broken };
        if region.top.is_some_and(|top| chunk < top && top < next) {
            return Step::Changing;
        }
        if next.checked_add(HEAD).is_none_or(|end| end > region.end) {
            return Step::Broken;
        }
        let Some(next_head) = self.head(next, region.end) else { return Step::Broken };
        // A heap may end in a chunk of 32 bytes that is none: it has no bit of a thread arena.
        let in_use = next_head & BEFORE_IN_USE != 0 && (head & THREAD_ARENA != 0) == region.of_thread_arena;
        Step::To { next, head: next_head, in_use }
    }

    /// Whether a thread has given the chunk `before` its new size, and has not yet written the head of the rest, from `rest` to
    /// `next`. glibc writes the two heads in this order (`_int_malloc`, `_int_realloc`).
    fn is_split(&mut self, before: u64, rest: u64, next: u64, next_head: u64) -> bool {
        if next_head & BEFORE_IN_USE == 0 {
            // The chunk was free, or `realloc` joins the free one behind it: the old size is still at the end.
            let free = self.words.get(next).and_then(|size| next.checked_sub(size));
            return free.is_some_and(|free| (before..rest).contains(&free));
        }
        // `realloc` makes a chunk smaller, and is about to free the rest.
        let mut registers = self.image.threads.iter().filter_map(|thread| thread.registers);
        registers.any(|registers| registers.0.contains(&rest))
    }

    /// Whether the chunk is in a cache or fast bin. Chunks are asked for by address.
    fn is_free(&mut self, chunk: u64) -> bool {
        while let Some(&free) = self.free.get(self.passed) {
            if free > chunk {
                break;
            }
            self.passed += 1;
            if free == chunk {
                return true;
            }
            self.outcome.strays += 1;
        }
        false
    }

    fn add_gap(&mut self, gap: std::ops::Range<u64>) {
        self.outcome.gap_count += 1;
        self.outcome.gap_bytes = self.outcome.gap_bytes.saturating_add(gap.end.saturating_sub(gap.start));
        if self.outcome.gaps.len() < KEPT_GAPS {
            self.outcome.gaps.push(gap);
        }
    }

    /// The next address from which `most` chunks follow each other, or all up to the end, and the head there.
    fn resume(&mut self, from: u64, region: &Region, most: u64) -> Option<(u64, u64)> {
        let last = region.top.filter(|top| *top >= from).unwrap_or(region.end.saturating_sub(SMALLEST));
        let mut chunk = from;
        while chunk <= last {
            if self.tries >= MOST_TRIES {
                return None;
            }
            self.tries += 1;
            let head = self.head(chunk, region.end)?;
            if Some(chunk) == region.top
                || chain(self.words, chunk, head, region, most, &mut self.tries).is_some()
            {
                return Some((chunk, head));
            }
            chunk += 16;
        }
        None
    }
}

/// The end of the piece of a main heap that begins at the start of the region.
pub(super) fn end_of_piece(words: &mut Words<'_>, region: &Region) -> Option<u64> {
    let head = words.get(region.start + 8)?;
    if head & FLAGS != BEFORE_IN_USE {
        return None;
    }
    let last = chain(words, region.start, head, region, MOST_TRIES, &mut 0)?;
    let size = words.get(last + 8)? & !FLAGS;
    let is_end = size == 16 || Some(last) == region.top;
    is_end.then(|| last.saturating_add(size.max(SMALLEST)).min(region.end))
}

/// The last of `most` chunks that follow each other, or the top chunk or fence that ends the piece.
fn chain(
    words: &mut Words<'_>,
    chunk: u64,
    head: u64,
    region: &Region,
    most: u64,
    tries: &mut u64,
) -> Option<u64> {
    let (mut chunk, mut head) = (chunk, head);
    for number in 0..most {
        *tries += 1;
        let size = head & !FLAGS;
        if Some(chunk) == region.top || size == 16 && number > 0 {
            return Some(chunk);
        }
        let next = chunk.checked_add(size)?;
        let is_chunk = size >= SMALLEST && size.is_multiple_of(16) && head & MAPPED == 0;
        let crosses_top = region.top.is_some_and(|top| chunk < top && top < next);
        if !is_chunk || crosses_top || next.checked_add(HEAD)? > region.end {
            return None;
        }
        let next_head = words.get(next + 8)?;
        if *tries > MOST_TRIES {
            return None;
        }
        let is_sound = if next_head & BEFORE_IN_USE != 0 {
            (head & THREAD_ARENA != 0) == region.of_thread_arena
        } else {
            // A free chunk's size is repeated at its end, and no free chunk follows a free one.
            words.get(next)? == size && head & BEFORE_IN_USE != 0
        };
        if !is_sound {
            return None;
        }
        (chunk, head) = (next, next_head);
    }
    Some(chunk)
}
