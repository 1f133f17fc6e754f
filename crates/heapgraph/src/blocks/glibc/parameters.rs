//! Malloc's parameters: where the main heap begins, and how many chunks have a mapping of their own.
//!
//! Their address is unknown. They are in the same data segment as the main arena, and numbers in them bound each other.

use super::arenas::MainArena;
use super::layout::{PAGE, PARAMETERS, ParameterLayout};
use super::words::Words;

/// What malloc says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Parameters {
    /// Chunks with a mapping of their own.
    pub mapped_chunks: u64,
    /// Bytes of their mappings.
    pub mapped_bytes: u64,
    /// First address of the main heap, 0 if there is none.
    pub first_break: u64,
    /// Size of huge pages if malloc uses them, else 0.
    pub huge_page: u64,
}

/// The parameters beside a main arena whose top chunk is at `top`.
pub(super) fn find(words: &mut Words<'_>, main: &MainArena, top: Option<u64>) -> Option<Parameters> {
    let mut field = main.segment.start + 128;
    while field + 40 <= main.segment.end {
        for layout in &PARAMETERS {
            if let Some(found) = at(words, field, layout, top) {
                return Some(found);
            }
        }
        field += 8;
    }
    None
}

/// The parameters, if the field `sbrk_base` is at `field`.
fn at(words: &mut Words<'_>, field: u64, layout: &ParameterLayout, top: Option<u64>) -> Option<Parameters> {
    let mapped_bytes = words.get(field - 16)?;
    let most_bytes = words.get(field - 8)?;
    if mapped_bytes > most_bytes || most_bytes > 1 << 47 || mapped_bytes % PAGE != 0 {
        return None;
    }
    let first_break = words.get(field)?;
    let is_break = words.is_writable(first_break) || first_break == 0 && top.is_none();
    let bins = words.get(field + 8)?;
    let cached_bytes = words.get(field + 16)?;
    let cached_chunks = words.get(field + 24)?;
    if !is_break || !(1..=64).contains(&bins) || cached_bytes > 8 << 20 || cached_chunks > 65535 {
        return None;
    }
    let [chunks, limit, most_chunks, is_fixed] =
        [0, 4, 8, 12].map(|at| words.number(field - layout.counts + at, 4).unwrap_or(u64::MAX));
    if chunks > most_chunks || most_chunks > limit || limit > i32::MAX as u64 || is_fixed > 1 {
        return None;
    }
    // A thread may have changed one of them already, and not yet the other.
    if chunks > mapped_bytes / PAGE + 64 {
        return None;
    }
    let arena_max = words.get(field - layout.arena_max)?;
    let arena_test = words.get(field - layout.arena_max - 8)?;
    if arena_max > 1 << 32 || arena_test == 0 || arena_test > 1 << 32 {
        return None;
    }
    let huge_page = layout.huge_page.map_or(Some(0), |at| words.get(field - at))?;
    let huge_page = if huge_page.is_power_of_two() { huge_page } else { 0 };
    Some(Parameters { mapped_chunks: chunks, mapped_bytes, first_break, huge_page })
}
