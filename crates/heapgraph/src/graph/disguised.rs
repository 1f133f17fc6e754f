//! Addresses that no aligned word has: blocks to which they lead are in doubt, not lost.
//!
//! - At other places than multiples of 8: in structs without padding, and in bytes that are filled by `memcpy`. Buffers of bytes may also
//!   have aligned ones.
//! - In the upper 48 bits of a word, with a tag of 16 bits below.
//!
//! Such bytes are often something else, and every byte is looked at. So this is done only if there are blocks to which nothing leads,
//! and only for their addresses. It ends when no such block is left.

use super::edges::{Edges, WEAK};
use super::input::Input;
use super::owned::element_size;
use super::words::words;
use crate::blocks::lookup::Lookup;
use crate::blocks::{BlockIndex, Blocks};
use crate::window::Window;
use foldhash::HashMap;
use std::ops::Range;

const WORD: usize = 8;
/// Bits of a tag below an address.
const TAG_BITS: u32 = 16;
/// With a tag, an address leads to the begin of a block.
const MOST_OFFSET: u64 = 16;

/// A weak edge that is found this way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Disguised {
    pub to: BlockIndex,
    /// Bytes from the start of the root or block.
    pub at: u64,
}

/// The weak edges to those of the unreached blocks to which no other edge leads, by the root or block where they begin.
pub(super) fn find(
    edges: &Edges,
    input: &Input<'_>,
    unreached: &[BlockIndex],
) -> HashMap<usize, Vec<Disguised>> {
    let mut found = HashMap::default();
    let Some(mut lost) = Lost::new(edges, input, unreached) else { return found };
    let mut window = Window::new(input.image);
    let mut near = Window::near(input.image);
    let roots = input.roots.len();
    let blocks = (0..input.blocks.len()).filter(|block| lost.states[*block] == State::Held);
    // The last is looked at first. The C library's data has addresses of freed memory.
    let mut pending: Vec<usize> = blocks.rev().map(|block| roots + block).collect();
    pending.extend((0..roots).rev().filter(|place| input.roots[*place].interior));
    while let Some(place) = pending.pop().filter(|_| lost.left > 0) {
        let (range, window, text) = match place.checked_sub(roots) {
            None => (input.roots[place].range.clone(), &mut near, 0),
            Some(block) => {
                let range = input.blocks.addresses[block]..input.blocks.end(block);
                let has_bytes =
                    input.contains(block).and_then(|contains| element_size(input.layouts, contains))
                        == Some(1);
                // Behind those in use, there may be what an earlier block had.
                let text = edges.owned.extent(block).elements.unwrap_or(u64::MAX);
                (range, &mut window, if has_bytes { text } else { 0 })
            }
        };
        scan(&mut lost, edges, window, range, text, &mut |edge| {
            found.entry(place).or_insert_with(Vec::new).push(edge);
        });
        pending.append(&mut lost.pending);
    }
    found
}

/// Looks at the bytes of a root or block. The first `text` of them are elements of one byte.
fn scan(
    lost: &mut Lost<'_>,
    edges: &Edges,
    window: &mut Window<'_>,
    range: Range<u64>,
    text: u64,
    add: &mut dyn FnMut(Disguised),
) {
    // The last bytes of one piece and the first of the next.
    let mut between: Vec<u8> = Vec::with_capacity(2 * WORD);
    let mut end = range.start;
    window.pieces(range.clone(), &mut |address, bytes| {
        if end == address && !between.is_empty() {
            let kept = between.len() as u64;
            between.extend(bytes.iter().take(WORD - 1));
            let from = (address - kept) - range.start;
            lost.each_unaligned(edges, &between, from, add);
        }
        let from = address - range.start;
        lost.each_unaligned(edges, bytes, from, add);
        let (upper, most) = lost.upper;
        each_group(bytes, upper, most, 32 + TAG_BITS, &mut |number, word| {
            lost.note(edges, word >> TAG_BITS, MOST_OFFSET, from + number as u64 * WORD as u64, add);
        });
        let text = usize::try_from(text.saturating_sub(from)).unwrap_or(usize::MAX).min(bytes.len());
        each_group(&bytes[..text], upper, most, 32, &mut |number, word| {
            lost.note(edges, word, u64::MAX, from + number as u64 * WORD as u64, add);
        });
        end = address + bytes.len() as u64;
        if end < range.end {
            between.clear();
            between.extend(&bytes[bytes.len().saturating_sub(WORD - 1)..]);
        }
    });
}

/// Calls `each` with number and value of all words of groups with a word whose 32 bits from `shift` on are at least `upper`, and at most
/// so much more.
fn each_group(bytes: &[u8], upper: u32, most: u32, shift: u32, each: &mut dyn FnMut(usize, u64)) {
    const GROUP: usize = 64;
    for (group, bytes) in bytes.chunks(GROUP * WORD).enumerate() {
        // Without branches, so that several words are compared at once.
        let has_any = words(bytes)
            .fold(false, |any, word| any | (((word >> shift) as u32).wrapping_sub(upper) <= most));
        if has_any {
            words(bytes).enumerate().for_each(|(number, word)| each(group * GROUP + number, word));
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Roots reach it, or it is in doubt.
    Held,
    /// Nothing leads to it.
    Lost,
}

/// Blocks to which nothing leads.
struct Lost<'a> {
    input: &'a Input<'a>,
    states: Vec<State>,
    left: usize,
    /// These blocks at first, and their numbers in all.
    blocks: Blocks,
    numbers: Vec<BlockIndex>,
    lookup: Lookup,
    /// The addresses of them all.
    range: Range<u64>,
    /// The upper 32 bits of these addresses: the least, and how much more the others have.
    upper: (u32, u32),
    /// Places of blocks that are no longer lost, whose bytes were not looked at.
    pending: Vec<usize>,
}

impl<'a> Lost<'a> {
    /// `None` if there are none.
    fn new(edges: &Edges, input: &'a Input<'a>, unreached: &[BlockIndex]) -> Option<Lost<'a>> {
        let mut lost = Lost {
            input,
            states: vec![State::Held; input.blocks.len()],
            left: unreached.len(),
            blocks: Blocks::default(),
            numbers: Vec::new(),
            lookup: Lookup::default(),
            range: 0..0,
            upper: (0, 0),
            pending: Vec::new(),
        };
        unreached.iter().for_each(|block| lost.states[block.0 as usize] = State::Lost);
        let roots = input.roots.len();
        for place in 0..roots + input.blocks.len() {
            if place.checked_sub(roots).is_none_or(|block| lost.states[block] == State::Held) {
                let weak = edges.of(place).filter(|edge| edges.kinds[*edge] & WEAK != 0);
                weak.for_each(|edge| lost.find_again(edges, edges.targets[edge]));
            }
        }
        // They are among those that are held.
        lost.pending.clear();
        for block in unreached.iter().filter(|block| lost.states[block.0 as usize] == State::Lost) {
            let index = block.0 as usize;
            lost.blocks.push(
                input.blocks.addresses[index],
                input.blocks.size(index),
                input.blocks.sites[index],
            );
            lost.numbers.push(*block);
        }
        lost.lookup = Lookup::new(&lost.blocks);
        let last = lost.blocks.len().checked_sub(1)?;
        lost.range = lost.blocks.addresses[0]..lost.blocks.end(last);
        let upper = |address: u64| (address >> 32) as u32;
        lost.upper = (upper(lost.range.start), upper(lost.range.end) - upper(lost.range.start));
        Some(lost)
    }

    /// A block and all to which it leads are no longer lost.
    fn find_again(&mut self, edges: &Edges, block: BlockIndex) {
        let roots = self.input.roots.len();
        let mut leads_to = vec![block];
        while let Some(block) = leads_to.pop() {
            let state = &mut self.states[block.0 as usize];
            if *state == State::Held {
                continue;
            }
            *state = State::Held;
            self.left -= 1;
            let place = roots + block.0 as usize;
            self.pending.push(place);
            leads_to.extend(edges.of(place).map(|edge| edges.targets[edge]));
        }
    }

    /// Looks at all addresses that do not begin at a multiple of 8. `from` is where the bytes lie in their root or block.
    fn each_unaligned(&mut self, edges: &Edges, bytes: &[u8], from: u64, add: &mut dyn FnMut(Disguised)) {
        let (upper, most) = self.upper;
        for skipped in (0..WORD).filter(|skipped| !(from + *skipped as u64).is_multiple_of(WORD as u64)) {
            let at = from + skipped as u64;
            each_group(bytes.get(skipped..).unwrap_or_default(), upper, most, 32, &mut |number, value| {
                self.note(edges, value, u64::MAX, at + (number * WORD) as u64, add);
            });
        }
    }

    /// If a value is an address in a lost block, at most so many bytes behind its start, the block is no longer lost.
    fn note(&mut self, edges: &Edges, value: u64, most_offset: u64, at: u64, add: &mut dyn FnMut(Disguised)) {
        if !self.range.contains(&value) {
            return;
        }
        let found = self.lookup.find(&self.blocks, value).filter(|found| found.offset < most_offset);
        let Some(to) = found.map(|found| self.numbers[found.block.0 as usize]) else { return };
        if self.states[to.0 as usize] == State::Lost {
            self.find_again(edges, to);
            add(Disguised { to, at });
        }
    }
}
