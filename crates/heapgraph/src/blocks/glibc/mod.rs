//! The live blocks of a process that uses glibc's malloc, from malloc's own structures. No symbols are needed.
//!
//! The main arena is found by its structure (`arenas`), and with it all others and their heaps. `walk` goes through the
//! heaps chunk by chunk. Free chunks that look in use are in the threads' caches and in fast bins (`caches`). Large blocks
//! have a mapping of their own (`mapped`); malloc's parameters say how many (`parameters`).
//!
//! Sizes are usable sizes: malloc does not store how many bytes were asked for.

mod arenas;
mod caches;
mod layout;
mod mapped;
mod other_allocators;
mod parameters;
mod report;
mod walk;
mod words;

use std::ops::Range;

use super::Blocks;
use mapped::{MappedChunk, Search};
use stackglass_process_view::core_image::CoreImage;
use walk::{Region, Walk};
use words::Words;

pub use other_allocators::Allocator;
pub use report::{MappedChunks, NoGlibcHeap, Report};

/// Live blocks of glibc's malloc.
#[derive(Clone, Debug, Default)]
pub struct GlibcHeap {
    /// Blocks with their usable sizes. Their sites are unknown.
    pub blocks: Blocks,
    /// What was found, and what could not be followed.
    pub report: Report,
}

/// Finds the live blocks of glibc's malloc in a process.
///
/// # Errors
/// If the process has no heap of glibc's malloc, or nothing there but another allocator.
pub fn live_blocks(image: &CoreImage) -> Result<GlibcHeap, NoGlibcHeap> {
    let mut words = Words::new(image);
    let mains = arenas::main_arenas(&mut words);
    let others = other_allocators::find(image);
    if mains.is_empty() {
        return Err(NoGlibcHeap { pid: image.pid, allocators: others });
    }
    let mut report = Report { other_allocators: others, ..Report::default() };
    let memory = Memory::from_arenas(&mut words, &mains, &mut report);
    let mut found = mapped::Found::default();
    for search in [Search::Aligned, Search::EachPage] {
        found = mapped::find(&mut words, &memory.known, search, |words, range| {
            memory.tops.iter().find_map(|&top| walk::end_of_piece(words, &piece(&range, top)))
        });
        report.mapped.chunks = found.chunks.len() as u64;
        report.mapped.bytes = found.chunks.iter().map(|chunk| chunk.size).sum();
        report.mapped.is_cut = found.is_cut;
        if report.mapped.agree() != Some(false) {
            break;
        }
    }
    let free = caches::find(&mut words, &mains);

    let mut parts: Vec<Part> = memory.regions.into_iter().map(Part::Region).collect();
    parts.extend(found.chunks.iter().copied().map(Part::Mapped));
    for range in &found.pieces {
        let top = memory.tops.iter().copied().find(|top| range.contains(top));
        parts.push(Part::Region(Region { start: range.start, end: range.end, top, of_thread_arena: false }));
    }
    parts.sort_by_key(Part::start);
    parts.dedup_by_key(|part| part.start());

    let mut walk = Walk::new(&mut words, &free.chunks);
    for part in &parts {
        match part {
            Part::Region(region) => walk.walk(region),
            Part::Mapped(chunk) => walk.push(chunk.block, chunk.usable()),
        }
    }
    report.pieces += found.pieces.len() as u64;
    report.add_free(&free);
    let Walk { blocks, outcome, .. } = walk;
    if blocks.is_empty() && !report.other_allocators.is_empty() {
        return Err(NoGlibcHeap { pid: image.pid, allocators: report.other_allocators });
    }
    report.add_outcome(outcome);
    Ok(GlibcHeap { blocks, report })
}

/// The memory of all heaps of glibc's malloc, sorted, without blocks that have a mapping of their own, and without what the program got by
/// `sbrk` itself. Empty if there are none.
pub fn heaps(image: &CoreImage) -> Vec<Range<u64>> {
    let mut words = Words::new(image);
    let mains = arenas::main_arenas(&mut words);
    let memory = Memory::from_arenas(&mut words, &mains, &mut Report::default());
    let mut foreign = Vec::new();
    let mut walk = Walk::new(&mut words, &[]);
    for region in memory.regions.iter().filter(|region| !region.of_thread_arena) {
        walk.walk(region);
        foreign.append(&mut walk.outcome.foreign);
    }
    let mut heaps = Vec::new();
    for heap in memory.known {
        let mut start = heap.start;
        for part in foreign.iter().filter(|part| heap.contains(&part.start)) {
            heaps.push(start..part.start);
            start = part.end;
        }
        heaps.push(start..heap.end);
    }
    heaps.retain(|heap| heap.start < heap.end);
    heaps
}

/// A part of memory with blocks.
enum Part {
    Region(Region),
    Mapped(MappedChunk),
}

impl Part {
    fn start(&self) -> u64 {
        match self {
            Part::Region(region) => region.start,
            Part::Mapped(chunk) => chunk.start,
        }
    }
}

fn piece(range: &Range<u64>, top: u64) -> Region {
    Region {
        start: range.start,
        end: range.end,
        top: Some(top).filter(|top| range.contains(top)),
        of_thread_arena: false,
    }
}

/// Where the arenas have their memory.
#[derive(Default)]
struct Memory {
    /// Heaps.
    regions: Vec<Region>,
    /// Addresses of heaps, sorted.
    known: Vec<Range<u64>>,
    /// Top chunks of main arenas of which other pieces are to be searched.
    tops: Vec<u64>,
}

impl Memory {
    fn from_arenas(words: &mut Words<'_>, mains: &[arenas::MainArena], report: &mut Report) -> Memory {
        let mut memory = Memory::default();
        for main in mains {
            report.arenas += 1 + main.others.len() as u64;
            let top = arenas::main_top(words, main);
            let parameters = parameters::find(words, main, top);
            report.add_parameters(parameters.as_ref());
            let parameters = parameters.unwrap_or_default();
            if let Some(top) = top {
                memory.add_main_heap(words.image(), top, parameters.first_break);
                report.heaps += 1;
            }
            let found = arenas::heaps(words, main, parameters.huge_page);
            report.heaps += found.heaps.len() as u64;
            report.broken_arenas += found.broken;
            for heap in found.heaps {
                let end = heap.start + heap.size;
                memory.known.push(heap.start..end);
                memory.regions.push(Region {
                    start: heap.first_chunk,
                    end,
                    top: heap.top,
                    of_thread_arena: true,
                });
            }
        }
        memory.known.sort_by_key(|range| range.start);
        memory
    }

    fn add_main_heap(&mut self, image: &CoreImage, top: u64, first_break: u64) {
        let start = if first_break != 0 {
            first_break.next_multiple_of(16)
        } else {
            image.mapping(top).map_or(top, |mapping| mapping.range.start)
        };
        let run = writable_run(image, start);
        if run.contains(&top) && start <= top {
            self.known.push(start..run.end);
            self.regions.push(Region { start, end: run.end, top: Some(top), of_thread_arena: false });
            return;
        }
        if image.mapping(start).is_some_and(|mapping| mapping.path == "[heap]") {
            self.known.push(start..run.end);
            self.regions.push(Region { start, end: run.end, top: None, of_thread_arena: false });
        }
        self.tops.push(top);
    }
}

/// The memory without gaps that contains an address.
fn writable_run(image: &CoreImage, address: u64) -> Range<u64> {
    let at = image.mappings.partition_point(|mapping| mapping.range.end <= address);
    let mut end = address;
    for mapping in image.mappings.get(at..).unwrap_or_default() {
        if mapping.range.start > end || !mapping.writable {
            break;
        }
        end = mapping.range.end;
    }
    address..end
}
