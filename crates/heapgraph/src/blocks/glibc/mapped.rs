//! Chunks with a mapping of their own: a page that begins with a head that says so, and a size of whole pages.
//!
//! Such mappings may be merged by the kernel, with each other and with others, so each page is looked at that holds data.

use std::ops::Range;

use stackglass_process_view::core_image::{CoreImage, Mapping};

use super::layout::{FLAGS, HEAD, MAPPED, PAGE, SMALLEST};
use super::words::Words;

/// Pages of which the kernel is asked at once.
const BATCH: u64 = 4096;
/// Most pages of one core image that are looked at: 256 GiB. Programs reserve far more than they use.
const MOST_PAGES: u64 = 1 << 26;

/// Most pages before an aligned block that are searched one by one.
const MOST_ALIGNED: u64 = 1 << 14;

/// A chunk with a mapping of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MappedChunk {
    /// Begin of the mapping.
    pub start: u64,
    /// Size of the mapping.
    pub size: u64,
    /// The program's address.
    pub block: u64,
}

impl MappedChunk {
    /// Usable bytes.
    pub fn usable(&self) -> u64 {
        self.start + self.size - self.block
    }
}

/// Where aligned blocks are searched in a mapping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Search {
    /// At the aligned addresses of the mapping.
    Aligned,
    /// At each page, too, since `realloc` may have moved the mapping. Slow, so only done if malloc counts other blocks.
    EachPage,
}

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub chunks: Vec<MappedChunk>,
    /// Pieces of main heaps.
    pub pieces: Vec<Range<u64>>,
    /// Not all pages were looked at.
    pub is_cut: bool,
}

/// Finds chunks outside of the ranges `known`, which are sorted. `end_of_piece` returns the end of the piece of a main heap
/// that begins where a range begins, and `None` if there is none.
pub(super) fn find(
    words: &mut Words<'_>,
    known: &[Range<u64>],
    search: Search,
    mut end_of_piece: impl FnMut(&mut Words<'_>, Range<u64>) -> Option<u64>,
) -> Found {
    let image = words.image();
    let mut found = Found::default();
    let mut left = MOST_PAGES;
    let mut resident = vec![false; BATCH as usize];
    for run in runs(image) {
        let mut at = run.start.next_multiple_of(PAGE);
        while at < run.end {
            if let Some(range) =
                known.get(known.partition_point(|range| range.end <= at)).filter(|range| range.contains(&at))
            {
                at = range.end.next_multiple_of(PAGE);
                continue;
            }
            let next_known = known
                .get(known.partition_point(|range| range.start <= at))
                .map_or(run.end, |range| range.start);
            let pages = ((run.end.min(next_known) - at).div_ceil(PAGE)).min(BATCH).min(left);
            if pages == 0 {
                found.is_cut = true;
                return found;
            }
            left -= pages;
            let resident = &mut resident[..pages as usize];
            image.memory.resident(at, resident);
            let start = at;
            at += pages * PAGE;
            let mut number = 0;
            while number < pages {
                let page = start + number * PAGE;
                number += 1;
                if !resident[number as usize - 1] {
                    continue;
                }
                let behind = if let Some(chunk) = mapped_chunk(words, page, run.end, search) {
                    found.chunks.push(chunk);
                    chunk.start + chunk.size
                } else if let Some(end) = end_of_piece(words, page..run.end) {
                    found.pieces.push(page..end);
                    end
                } else {
                    continue;
                };
                number = (behind - start).div_ceil(PAGE);
                at = at.max(behind.next_multiple_of(PAGE));
            }
        }
    }
    found
}

/// Anonymous memory without gaps.
fn runs(image: &CoreImage) -> Vec<Range<u64>> {
    let mut runs: Vec<Range<u64>> = Vec::new();
    for mapping in image.mappings.iter().filter(|mapping| is_anonymous(mapping)) {
        match runs.last_mut() {
            Some(run) if run.end == mapping.range.start => run.end = run.end.max(mapping.range.end),
            _ => runs.push(mapping.range.clone()),
        }
    }
    runs.retain(|run| run.start < run.end && run.end <= 1 << 47);
    runs
}

fn is_anonymous(mapping: &Mapping) -> bool {
    let has_no_file = mapping.inode == 0 || mapping.path.starts_with("/anon_hugepage");
    let has_other_use = mapping.path.starts_with('[') && !mapping.path.starts_with("[anon");
    mapping.readable && mapping.writable && !mapping.shared && has_no_file && !has_other_use
}

fn mapped_chunk(words: &mut Words<'_>, page: u64, end: u64, search: Search) -> Option<MappedChunk> {
    let mut first = [0; 16];
    if words.image().memory.read(page, &mut first) < 16 {
        return None;
    }
    let before = u64::from_le_bytes(first[..8].try_into().ok()?);
    let head = u64::from_le_bytes(first[8..].try_into().ok()?);
    let size = head & !FLAGS;
    if before != 0 || head & FLAGS != MAPPED || size < PAGE || !size.is_multiple_of(PAGE) {
        return None;
    }
    let plain = MappedChunk { start: page, size, block: page + HEAD };
    aligned_chunk(words, page, size, end, search).or(Some(plain).filter(|_| size <= end - page))
}

/// The chunk that `memalign` made of a mapping. It moves the head to where the program's memory is aligned, and leaves the
/// first head as it was. The moved head says its distance, and the new size.
fn aligned_chunk(
    words: &mut Words<'_>,
    page: u64,
    size: u64,
    end: u64,
    search: Search,
) -> Option<MappedChunk> {
    let within_page = (6..=12).map(|bits| (1_u64 << bits) - HEAD);
    // Where memory is aligned to more than a page, it still begins a page.
    let pages = match search {
        Search::Aligned => Vec::new(),
        Search::EachPage => (2..=(size / PAGE).min(MOST_ALIGNED)).collect(),
    };
    let beyond = (13..48)
        .map(|bits| 1_u64 << bits)
        .take_while(|alignment| *alignment < size)
        .filter_map(|alignment| {
            Some((page + HEAD + SMALLEST).checked_next_multiple_of(alignment)? - HEAD - page)
        })
        .chain(pages.into_iter().map(|number| number * PAGE - HEAD));
    within_page.chain(beyond).find_map(|distance| {
        let moved = page.checked_add(distance)?;
        let head = words.get(moved + 8)?;
        let whole = (head & !FLAGS).checked_add(distance)?;
        // `realloc` may have changed the size since.
        let is_sound =
            words.get(moved)? == distance && head & FLAGS == MAPPED && whole % PAGE == 0 && whole >= PAGE;
        (is_sound && page.checked_add(whole)? <= end).then(|| MappedChunk {
            start: page,
            size: whole,
            block: moved + HEAD,
        })
    })
}
