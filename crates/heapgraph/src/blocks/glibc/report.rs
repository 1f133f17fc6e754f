//! What was found of glibc's malloc, and in which words the user reads it.

use std::ops::Range;

use super::caches::Free;
use super::other_allocators::Allocator;
use super::parameters::Parameters;
use super::walk::Outcome;

/// A process has no heap of glibc's malloc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoGlibcHeap {
    /// The process.
    pub pid: u32,
    /// Allocators that it has instead, as far as its files tell.
    pub allocators: Vec<Allocator>,
}

impl std::error::Error for NoGlibcHeap {}

impl std::fmt::Display for NoGlibcHeap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "process {} has no blocks of glibc's malloc", self.pid)?;
        if self.allocators.is_empty() {
            write!(f, ": it uses an unknown allocator, or none")?;
        } else {
            write!(f, "; it contains {}", list(&self.allocators))?;
        }
        if self.allocators.iter().any(Allocator::is_musl) {
            return write!(f, ". Its blocks are known only if it contains the crate's allocator");
        }
        write!(
            f,
            ". Its blocks are known only if it runs under `stackglass record --allocs`, or contains the crate's allocator"
        )
    }
}

fn list(allocators: &[Allocator]) -> String {
    allocators.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Chunks with a mapping of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MappedChunks {
    /// Chunks that were found.
    pub chunks: u64,
    /// Bytes of their mappings.
    pub bytes: u64,
    /// Chunks and bytes that malloc counted itself, if its counters were found.
    pub counted: Option<(u64, u64)>,
    /// There was too much memory to look at all of it.
    pub is_cut: bool,
}

impl MappedChunks {
    /// Whether the chunks that were found are those that malloc counted; `None` if its counters were not found.
    pub fn agree(&self) -> Option<bool> {
        self.counted.map(|counted| counted == (self.chunks, self.bytes))
    }
}

/// What was found of glibc's malloc.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Arenas, the main one included.
    pub arenas: u64,
    /// Heaps of all arenas.
    pub heaps: u64,
    /// Further pieces of main heaps, behind memory that the program got by `sbrk` itself, or because `sbrk` failed.
    pub pieces: u64,
    /// Chunks with a mapping of their own.
    pub mapped: MappedChunks,
    /// Caches of threads.
    pub caches: u64,
    /// Free chunks in caches of threads.
    pub cached_chunks: u64,
    /// Free chunks in fast bins.
    pub fast_chunks: u64,
    /// Chunks that a thread was about to change.
    pub changing: u64,
    /// Threads whose registers are unknown: free chunks in their caches count as blocks.
    pub unknown_threads: u64,
    /// Arenas whose heaps could not all be found.
    pub broken_arenas: u64,
    /// Lists of free chunks that do not lead to chunks.
    pub broken_lists: u64,
    /// Free chunks of lists that were not met in any heap.
    pub strays: u64,
    /// The first parts of heaps that could not be followed.
    pub gaps: Vec<Range<u64>>,
    /// Number of all such parts.
    pub gap_count: u64,
    /// Bytes of all such parts.
    pub gap_bytes: u64,
    /// Other allocators in the process.
    pub other_allocators: Vec<Allocator>,
}

impl Report {
    pub(super) fn add_parameters(&mut self, parameters: Option<&Parameters>) {
        let Some(parameters) = parameters else { return };
        let (chunks, bytes) = self.mapped.counted.unwrap_or_default();
        self.mapped.counted =
            Some((chunks + parameters.mapped_chunks, bytes.saturating_add(parameters.mapped_bytes)));
    }

    pub(super) fn add_free(&mut self, free: &Free) {
        self.caches = free.caches;
        self.cached_chunks = free.cached;
        self.fast_chunks = free.fast;
        self.unknown_threads = free.unknown_threads;
        self.broken_lists = free.broken;
    }

    pub(super) fn add_outcome(&mut self, outcome: Outcome) {
        self.pieces += outcome.pieces;
        self.changing = outcome.changing;
        self.strays = outcome.strays;
        self.gaps = outcome.gaps;
        self.gap_count = outcome.gap_count;
        self.gap_bytes = outcome.gap_bytes;
    }

    /// Whether all of the heap was understood.
    pub fn is_complete(&self) -> bool {
        self.gap_count == 0
            && self.broken_arenas == 0
            && self.broken_lists == 0
            && self.unknown_threads == 0
            && !self.mapped.is_cut
            && self.mapped.agree() != Some(false)
    }

    /// What the user should know: one sentence each, nothing if all is well.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if let Some(first) = self.gaps.first() {
            remarks.push(format!(
                "{} of the heap, {} bytes, could not be followed, the first at {:#x}: malloc's data is damaged there, or a \
                 thread was changing it; blocks there are missing",
                counted(self.gap_count, "part", "parts"),
                self.gap_bytes,
                first.start
            ));
        }
        if self.broken_arenas > 0 {
            let arenas = counted(self.broken_arenas, "arena", "arenas");
            remarks.push(format!("not all heaps of {arenas} could be found: blocks there are missing"));
        }
        if self.broken_lists > 0 {
            let lists = counted(self.broken_lists, "list", "lists");
            remarks.push(format!("{lists} of free chunks could not be followed: some blocks may be free"));
        }
        if self.unknown_threads > 0 {
            let threads = counted(self.unknown_threads, "thread", "threads");
            remarks.push(format!(
                "{threads} could not be examined: memory that was freed there may count as blocks"
            ));
        }
        if let (Some(false), Some((chunks, bytes))) = (self.mapped.agree(), self.mapped.counted) {
            remarks.push(format!(
                "malloc counts {chunks} blocks with mappings of their own ({bytes} bytes), found were {} ({} bytes)",
                self.mapped.chunks, self.mapped.bytes
            ));
        }
        if self.mapped.is_cut {
            remarks.push(
                "the process has more than 256 GiB of writable memory: not all of it was searched for large blocks"
                    .to_owned(),
            );
        }
        if !self.other_allocators.is_empty() {
            remarks.push(format!(
                "the program also contains {}: blocks of other allocators are not found",
                list(&self.other_allocators)
            ));
        }
        remarks
    }
}

fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}
