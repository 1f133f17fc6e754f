//! Free chunks that look like chunks in use: those in the threads' caches and in fast bins.
//!
//! A thread's cache is found from its thread-local storage. The C library keeps two pointers there, close to each other: the
//! thread's arena, whose address is known, and the cache.

use foldhash::{HashMap, HashSet};

use super::arenas::MainArena;
use super::layout::{CACHES, CacheLayout, FLAGS, HEAD, SMALLEST};
use super::words::Words;

/// How far below the thread pointer thread-local storage is searched, step by step.
const REACHES: [u64; 3] = [4 << 10, 64 << 10, 4 << 20];
/// Largest distance between the pointers to the arena and to the cache.
const NEAR: u64 = 128;
/// Most chunks that are followed in a list of a thread's cache.
const LONGEST_LIST: u64 = 1 << 16;

/// What was found in caches and fast bins.
#[derive(Debug, Default)]
pub(super) struct Free {
    /// Chunks that are no blocks of the program, sorted: free ones, and the caches themselves.
    pub chunks: Vec<u64>,
    /// Caches that were found.
    pub caches: u64,
    /// Chunks in caches.
    pub cached: u64,
    /// Chunks in fast bins.
    pub fast: u64,
    /// Threads whose registers are unknown, so that their caches are not found.
    pub unknown_threads: u64,
    /// Lists that lead to something else than a chunk.
    pub broken: u64,
}

/// A thread's cache at an address.
#[derive(Clone, Copy)]
struct Cache {
    address: u64,
    layout: &'static CacheLayout,
}

/// Finds all of them.
pub(super) fn find(words: &mut Words<'_>, mains: &[MainArena]) -> Free {
    let mut free = Free::default();
    let caches = caches(words, mains, &mut free);
    let mangled = are_mangled(words, mains, &caches);
    for cache in &caches {
        free.caches += 1;
        free.chunks.push(cache.address - HEAD);
        for bin in 0..cache.layout.bins {
            add_list(words, *cache, bin, mangled, &mut free);
        }
    }
    for main in mains {
        for arena in std::iter::once(main.address).chain(main.others.iter().copied()) {
            let (first, count) = main.layout.fast_bins;
            for bin in 0..count {
                let chunk = words.get(arena + first + 8 * bin).unwrap_or(0);
                add_fast_bin(words, chunk, mangled, &mut free);
            }
        }
    }
    free.chunks.sort_unstable();
    free.chunks.dedup();
    free
}

/// The threads' caches.
fn caches(words: &mut Words<'_>, mains: &[MainArena], free: &mut Free) -> Vec<Cache> {
    let image = words.image();
    let mut thread_pointers = Vec::new();
    for thread in &image.threads {
        match &thread.registers {
            Some(registers) => thread_pointers.push(registers.fs_base()),
            None => free.unknown_threads += 1,
        }
    }
    let arenas: HashSet<u64> =
        mains.iter().flat_map(|main| main.others.iter().copied().chain([main.address])).collect();
    let mut found: HashMap<u64, Cache> = HashMap::default();
    // Each copy of the C library has its own place in thread-local storage.
    for arena_at in places_of_arenas(words, &thread_pointers, &arenas, mains.len()) {
        // The place of the cache near that of the arena, and how many threads and lists speak for it.
        let mut votes: HashMap<u64, u64> = HashMap::default();
        for &pointer in &thread_pointers {
            for at in near(arena_at) {
                let sound = pointer.checked_sub(at).and_then(|place| cache_at(words, place));
                if let Some((_, lists)) = sound {
                    *votes.entry(at).or_default() += 1 + lists;
                }
            }
        }
        let Some((&place, _)) = votes.iter().max_by_key(|(at, votes)| (**votes, u64::MAX - **at)) else {
            continue;
        };
        for &pointer in &thread_pointers {
            if let Some((cache, _)) = pointer.checked_sub(place).and_then(|place| cache_at(words, place)) {
                found.insert(cache.address, cache);
            }
        }
    }
    found.into_values().collect()
}

fn near(arena_at: u64) -> impl Iterator<Item = u64> {
    (arena_at.saturating_sub(NEAR)..=arena_at + NEAR).step_by(8).filter(move |at| *at != arena_at && *at > 0)
}

/// How far below their thread pointers threads keep the pointers to their arenas; the place with most threads first.
fn places_of_arenas(
    words: &mut Words<'_>,
    thread_pointers: &[u64],
    arenas: &HashSet<u64>,
    most: usize,
) -> Vec<u64> {
    let image = words.image();
    for reach in REACHES {
        let mut threads_by_place: HashMap<u64, u64> = HashMap::default();
        for &pointer in thread_pointers {
            if pointer % 8 != 0 {
                continue;
            }
            let lowest =
                image.mapping(pointer.saturating_sub(8)).map_or(pointer, |mapping| mapping.range.start);
            let mut bytes = vec![0; reach.min(pointer - lowest.min(pointer)) as usize];
            let start = pointer - bytes.len() as u64;
            let read = image.memory.read(start, &mut bytes);
            for (number, word) in bytes[..read.min(bytes.len())].chunks_exact(8).enumerate() {
                if arenas.contains(&u64::from_le_bytes(word.try_into().unwrap_or_default())) {
                    *threads_by_place.entry(pointer - start - number as u64 * 8).or_default() += 1;
                }
            }
        }
        if !threads_by_place.is_empty() {
            let mut places: Vec<(u64, u64)> = threads_by_place.into_iter().collect();
            places.sort_unstable_by_key(|(place, threads)| (u64::MAX - threads, *place));
            return places.into_iter().map(|(place, _)| place).take(most + 3).collect();
        }
    }
    Vec::new()
}

/// The cache to which the word at `place` points, and how many lists with chunks it has.
fn cache_at(words: &mut Words<'_>, place: u64) -> Option<(Cache, u64)> {
    let address = words.get(place)?;
    if address % 16 != 0 || address < HEAD || !words.is_writable(address) {
        return None;
    }
    let head = words.get(address - 8)? & !FLAGS;
    let layout = CACHES.iter().find(|layout| head == layout.chunk || head == layout.chunk + 16)?;
    let cache = Cache { address, layout };
    let mut filled = 0;
    let mut empty_counter = None;
    for bin in 0..layout.bins {
        let counter = words.number(address + bin * layout.counter, layout.counter)?;
        let first = words.get(address + layout.lists() + 8 * bin)?;
        if first == 0 {
            // A chunk may be on its way into or out of the list.
            let is_sound = if layout.counts_chunks {
                counter <= 1
            } else {
                counter.abs_diff(*empty_counter.get_or_insert(counter)) <= 1
            };
            if !is_sound {
                return None;
            }
            continue;
        }
        let size = first.checked_sub(8).and_then(|head| words.get(head))? & !FLAGS;
        let fits = if bin < layout.small_bins {
            size == (bin + 2) * 16
        } else {
            size > (layout.small_bins + 1) * 16
        };
        if first % 16 != 0 || !fits {
            return None;
        }
        filled += 1;
    }
    Some((cache, filled))
}

/// Whether links are mangled with their address (from 2.32). Lists of which the end is known decide.
fn are_mangled(words: &mut Words<'_>, mains: &[MainArena], caches: &[Cache]) -> bool {
    let mut plain = 0;
    let mut mangled = 0;
    let mut vote = |words: &mut Words<'_>, link: u64| {
        let Some(word) = words.get(link) else { return };
        let leads_to_chunk =
            |words: &mut Words<'_>, to: u64| to == 0 || to.is_multiple_of(16) && words.is_writable(to);
        let is_plain = leads_to_chunk(words, word);
        let is_mangled = leads_to_chunk(words, word ^ (link >> 12));
        plain += u64::from(is_plain && !is_mangled);
        mangled += u64::from(is_mangled && !is_plain);
    };
    for cache in caches {
        if let Some(known) = cache.layout.mangled {
            return known;
        }
        for bin in 0..cache.layout.bins {
            let first = words.get(cache.address + cache.layout.lists() + 8 * bin).unwrap_or(0);
            if first != 0 {
                vote(words, first);
            }
        }
    }
    for main in mains {
        let (first, count) = main.layout.fast_bins;
        if count == 0 {
            return true;
        }
        for bin in 0..count {
            let chunk = words.get(main.address + first + 8 * bin).unwrap_or(0);
            if chunk != 0 {
                vote(words, chunk.saturating_add(HEAD));
            }
        }
    }
    mangled >= plain
}

/// Where a link leads that is stored at `place`.
fn follow(words: &mut Words<'_>, place: u64, mangled: bool) -> Option<u64> {
    let word = words.get(place)?;
    Some(if mangled { word ^ (place >> 12) } else { word })
}

fn add_list(words: &mut Words<'_>, cache: Cache, bin: u64, mangled: bool, free: &mut Free) {
    let layout = cache.layout;
    let mut memory = words.get(cache.address + layout.lists() + 8 * bin).unwrap_or(0);
    for _ in 0..LONGEST_LIST {
        if memory == 0 {
            return;
        }
        let size = memory.checked_sub(8).and_then(|head| words.get(head)).unwrap_or(0) & !FLAGS;
        let fits = if bin < layout.small_bins { size == (bin + 2) * 16 } else { size >= SMALLEST };
        let next = follow(words, memory, mangled);
        let (true, true, Some(next)) = (memory.is_multiple_of(16), fits, next) else { break };
        free.chunks.push(memory - HEAD);
        free.cached += 1;
        memory = next;
    }
    free.broken += 1;
}

/// Adds the chunks of a fast bin. A list that runs in a circle ends where it is noticed (Brent's rule).
fn add_fast_bin(words: &mut Words<'_>, first: u64, mangled: bool, free: &mut Free) {
    let mut chunk = first;
    let (mut kept, mut steps, mut limit) = (0, 0_u64, 1_u64);
    while chunk != 0 {
        let size = chunk.checked_add(8).and_then(|head| words.get(head)).unwrap_or(0) & !FLAGS;
        let next = chunk.checked_add(HEAD).and_then(|link| follow(words, link, mangled));
        let (true, true, true, Some(next)) =
            (chunk.is_multiple_of(16), size >= SMALLEST, chunk != kept, next)
        else {
            free.broken += 1;
            return;
        };
        free.chunks.push(chunk);
        free.fast += 1;
        steps += 1;
        if steps == limit {
            (kept, steps, limit) = (chunk, 0, limit * 2);
        }
        chunk = next;
    }
}
