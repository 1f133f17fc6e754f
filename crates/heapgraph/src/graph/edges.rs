//! The edges of all roots and blocks.
//!
//! A value of a known type has the pointers that its layout tells. An owning pointer must lead to the first byte of a block of
//! the right size. Words that are no pointers by layout, and pointers that do not fit, give *weak* edges: they are shown, but
//! hold nothing. Memory of unknown type is scanned: each aligned word that is an address in a block is an edge.

use super::names::Names;
use super::small_numbers::SmallNumbers;
use super::{Input, Root};
use crate::blocks::BlockIndex;
use crate::blocks::lookup::Lookup;
use crate::image::Image;
use crate::locals;
use crate::references::{self, BlockType, EdgeName, Extent, Hold, Pointers, Reference, References};
use crate::typing;
use foldhash::{HashMap, HashSet};
use stackglass_profile::heap_graph::EdgeKind;
use stackglass_symbols::layouts::Local;

/// Bytes that are read at once.
const WINDOW: usize = 1 << 20;
/// Pages that are looked at together, to skip memory that was never written.
const EMPTY_PAGES: usize = 16 << 10;
/// Largest number of elements that is noted.
const MOST_ELEMENTS: u64 = u32::MAX as u64 - 1;

/// The edges of roots and blocks, grouped by where they begin: first the roots, then the blocks.
#[derive(Debug, Default)]
pub(super) struct Edges {
    /// Of each root and block: the number of its first edge; one more than roots and blocks.
    pub first: Vec<u32>,
    /// Target of each edge.
    pub targets: Vec<BlockIndex>,
    /// Kind of each edge, with [`WEAK`].
    pub kinds: Vec<u8>,
    /// Number in `names`, or the index of an element.
    pub labels: Vec<u32>,
    /// Texts.
    pub names: Names,
    /// What owners tell of their blocks.
    pub owned: Owned,
}

/// What owners tell of their blocks, by block.
#[derive(Debug, Default)]
pub(super) struct Owned {
    /// Initialized elements, and one more; 0 if their number is not known.
    lengths: SmallNumbers,
    /// Where the elements of a `VecDeque` begin, if not at the first.
    rotated: HashMap<u32, Extent>,
    /// Buffers that may have more elements than their owners know: a thread is filling them.
    filling: HashSet<u32>,
    /// Bytes that are allocated ahead.
    pub unused: SmallNumbers,
    /// Blocks with text.
    pub texts: HashMap<u32, Text>,
}

/// Where a text lies in its block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Text {
    pub start: u64,
    /// Bytes. Of several owners, that with most of them counts.
    pub length: u64,
}

impl Owned {
    /// Notes what an owner says. Of several, the one with most elements counts.
    fn note(&mut self, block: BlockIndex, elements: u64, extent: Extent) {
        let index = block.0 as usize;
        let elements = elements.min(MOST_ELEMENTS) as u32 + 1;
        self.lengths.set(index, elements.max(self.lengths.get(index)));
        if extent.first != 0 {
            self.rotated.insert(block.0, extent);
        }
    }

    fn extent(&self, index: usize) -> Extent {
        if self.filling.contains(&(index as u32)) {
            return Extent::default();
        }
        if let Some(rotated) = self.rotated.get(&(index as u32)) {
            return *rotated;
        }
        Extent::from(self.lengths.get(index).checked_sub(1).map(u64::from))
    }
}

/// In the kind of an edge that holds nothing.
pub(super) const WEAK: u8 = 0x80;
/// In the kind of an edge from an owner.
pub(super) const OWNS: u8 = 0x40;

impl Edges {
    /// The edges of a root or block, as a range of numbers.
    pub fn of(&self, place: usize) -> std::ops::Range<usize> {
        self.first[place] as usize..self.first[place + 1] as usize
    }

    fn push(&mut self, to: BlockIndex, kind: EdgeKind, label: u32, weak: bool) {
        self.push_marked(to, kind as u8 | if weak { WEAK } else { 0 }, label);
    }

    fn push_marked(&mut self, to: BlockIndex, kind: u8, label: u32) {
        self.targets.push(to);
        self.kinds.push(kind);
        self.labels.push(label);
    }
}

/// Finds all edges.
pub(super) fn find(input: &Input<'_>, lookup: &Lookup) -> Edges {
    let mut references = References::new(input.layouts);
    let mut window = Window::new(input.image);
    for (module, bias) in input.biases.iter().enumerate() {
        references.load_module(module, *bias);
    }
    let owned = owned(input, lookup, &mut references, &mut window);
    let mut search = Search {
        input,
        lookup,
        seen: Seen::new(input.blocks.len()),
        own: None,
        interior: true,
        edges: Edges { owned, ..Edges::default() },
        label: String::new(),
    };
    for root in input.roots {
        search.begin();
        search.interior = root.interior;
        search.root(root, &mut references, &mut window);
    }
    search.interior = true;
    for index in 0..input.blocks.len() {
        search.begin();
        search.block(index, &mut references, &mut window);
    }
    search.edges.first.push(search.edges.targets.len() as u32);
    search.edges
}

/// What owners tell of their blocks.
fn owned(
    input: &Input<'_>,
    lookup: &Lookup,
    references: &mut References<'_>,
    window: &mut Window<'_>,
) -> Owned {
    let Input { blocks, image, roots, layouts, .. } = input;
    let mut owned = Owned {
        lengths: SmallNumbers::zeros(blocks.len()),
        unused: SmallNumbers::zeros(blocks.len()),
        ..Owned::default()
    };
    let mut note = |reference: Reference<'_>| {
        let has_text = reference.text && input.with_texts;
        let tells = reference.hold == Hold::Owns || has_text;
        let Some(elements) = reference.elements.filter(|_| tells) else { return };
        let Some(found) = lookup.find(blocks, reference.target).filter(|found| found.offset == 0) else {
            return;
        };
        let size = blocks.sizes[found.block.0 as usize];
        let start = reference.contains.map_or(0, references::start_of_text);
        if has_text && elements <= size.saturating_sub(start) {
            let text = owned.texts.entry(found.block.0).or_insert(Text { start, length: 0 });
            text.length = text.length.max(elements);
        }
        if reference.hold != Hold::Owns {
            return;
        }
        owned.note(found.block, elements, reference.extent());
        let index = found.block.0 as usize;
        if let Some(usage) = reference.usage {
            let element = match reference.contains {
                Some(
                    BlockType::Elements(id)
                    | BlockType::CountedElements(id)
                    | BlockType::SharedElements(id)
                    | BlockType::Table(id),
                ) => layouts.get(id).size,
                _ => 1,
            };
            let unused = usage.capacity.saturating_sub(usage.used).saturating_mul(element);
            let unused = unused.min(blocks.sizes[index]).min(u64::from(u32::MAX)) as u32;
            owned.unused.set(index, unused);
        }
    };
    for root in *roots {
        if let Some(type_id) = root.type_id {
            let bytes = window.read(root.range.start, root.range.end.saturating_sub(root.range.start));
            references.of_value(type_id, root.range.start, bytes, image, &mut note);
        }
    }
    for index in 0..blocks.len() {
        if let Some(contains) = input.contains(index).filter(|contains| references.has_lengths(*contains)) {
            let bytes = window.read(blocks.addresses[index], blocks.sizes[index]);
            references.of_block(contains, None, blocks.addresses[index], bytes, image, &mut note);
        }
    }
    for root in roots.iter().filter(|root| root.kind.is_doubtful()) {
        let bytes = window.read(root.range.start, root.range.end.saturating_sub(root.range.start));
        if root.may_be_filling {
            let values = words(bytes).chain(root.registers.iter().map(|(_, value)| *value));
            let found = values.filter_map(|word| lookup.find(blocks, word));
            owned.filling.extend(found.map(|found| found.block.0));
        }
        let words: Vec<u64> = words(bytes).collect();
        for (at, word) in words.iter().enumerate() {
            let Some(found) = lookup.find(blocks, *word).filter(|found| found.offset == 0) else { continue };
            let index = found.block.0 as usize;
            let Some(content @ BlockType::Elements(_)) = input.contains(index) else { continue };
            let extent = references.extent_beside(content, blocks.sizes[index], &words, at, image);
            if let Some(extent) = extent
                && let Some(elements) = extent.elements
            {
                owned.note(found.block, elements, extent);
            }
        }
    }
    owned
}

/// A set of blocks: one bit for each.
struct Seen(Vec<u64>);

impl Seen {
    fn new(blocks: usize) -> Seen {
        Seen(vec![0; blocks.div_ceil(64)])
    }

    /// Adds a block; `false` if it was there.
    fn insert(&mut self, block: BlockIndex) -> bool {
        let (word, bit) = (&mut self.0[block.0 as usize / 64], 1 << (block.0 % 64));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    fn remove(&mut self, block: BlockIndex) {
        self.0[block.0 as usize / 64] &= !(1 << (block.0 % 64));
    }
}

struct Search<'a> {
    input: &'a Input<'a>,
    lookup: &'a Lookup,
    /// The blocks to which the root or block leads whose edges are being found, and that block itself.
    seen: Seen,
    /// That block.
    own: Option<BlockIndex>,
    /// Pointers into the middle of blocks count.
    interior: bool,
    edges: Edges,
    label: String,
}

impl Search<'_> {
    fn begin(&mut self) {
        let first = self.edges.first.last().map_or(0, |first| *first as usize);
        self.edges.targets[first..].iter().chain(&self.own.take()).for_each(|block| self.seen.remove(*block));
        self.edges.first.push(self.edges.targets.len() as u32);
    }

    /// A block does not lead to itself by a word that may be no pointer.
    fn see_itself(&mut self, block: BlockIndex) {
        self.seen.insert(block);
        self.own = Some(block);
    }

    fn root(&mut self, root: &Root, references: &mut References<'_>, window: &mut Window<'_>) {
        for (name, value) in &root.registers {
            if let Some(found) = self.lookup.find(self.input.blocks, *value) {
                let label = self.edges.names.intern(name);
                self.edges.push(found.block, EdgeKind::Property, label, false);
            }
        }
        self.locals(&root.locals, references, window);
        if root.range.is_empty() {
            return;
        }
        let mut address = root.range.start;
        if let Some(type_id) = root.type_id {
            let bytes = window.read(address, root.range.end - address);
            references
                .of_value(type_id, address, bytes, self.input.image, &mut |reference| self.follow(reference));
            return match references.pointers(BlockType::One(type_id)) {
                Pointers::Unknown => self.words(bytes, 0),
                _ => self.doubtful_words(bytes),
            };
        }
        while address < root.range.end {
            let left = root.range.end - address;
            if left > WINDOW as u64
                && let Some(empty) = window.empty_pages(address, left)
            {
                address += empty;
                continue;
            }
            let bytes = window.read(address, left.min(WINDOW as u64));
            if bytes.is_empty() {
                // A page that cannot be read.
                address = (address | 4095) + 1;
                continue;
            }
            self.words(bytes, (address - root.range.start) / 8);
            address += bytes.len() as u64;
        }
    }

    /// Adds the edges of local variables that agree with what their targets contain, owners first. The words of the others are
    /// looked at later.
    fn locals(&mut self, locals: &[Local], references: &mut References<'_>, window: &mut Window<'_>) {
        let Input { image, layouts, blocks, .. } = self.input;
        let mut found = Vec::new();
        for local in locals {
            let (address, bytes) = locals::value(&local.place, local.type_id, layouts, |address, size| {
                window.read(address, size)
            });
            references.of_value(local.type_id, address, bytes, image, &mut |reference| {
                let Some(target) = self.lookup.find(blocks, reference.target) else { return };
                let name = match reference.name {
                    EdgeName::Field("") => local.name.to_string(),
                    EdgeName::Field(path) => format!("{}.{path}", local.name),
                    EdgeName::Index(index) if reference.within.is_empty() => {
                        format!("{}[{index}]", local.name)
                    }
                    EdgeName::Index(index) => format!("{}[{index}].{}", local.name, reference.within),
                };
                found.push((target, reference.hold, reference.contains, name));
            });
        }
        found.sort_by_key(|(_, hold, ..)| *hold != Hold::Owns);
        for (target, hold, contains, name) in found {
            let index = target.block.0 as usize;
            let contains = contains.map(|contains| references.fitting(contains, blocks.sizes[index]));
            let agrees = || match (self.input.contains(index), contains) {
                (Some(known), Some(claimed)) => typing::agree(layouts, known, claimed),
                _ => false,
            };
            let mark = match hold {
                Hold::Owns if target.offset == 0 && agrees() => OWNS,
                Hold::Refers if target.offset != 0 || contains.is_none() || agrees() => 0,
                _ => continue,
            };
            if self.seen.insert(target.block) {
                let label = self.edges.names.intern(&name);
                self.edges.push_marked(target.block, EdgeKind::Property as u8 | mark, label);
            }
        }
    }

    fn block(&mut self, index: usize, references: &mut References<'_>, window: &mut Window<'_>) {
        let Input { blocks, image, .. } = self.input;
        let (address, size) = (blocks.addresses[index], blocks.sizes[index]);
        let Some(contains) = self.input.contains(index) else {
            self.see_itself(BlockIndex(index as u32));
            let mut at = 0;
            while at < size {
                let bytes = window.read(address + at, (size - at).min(WINDOW as u64));
                if bytes.is_empty() {
                    return;
                }
                self.words(bytes, at / 8);
                at += bytes.len() as u64;
            }
            return;
        };
        let pointers = references.pointers(contains);
        if pointers == Pointers::None {
            return;
        }
        let bytes = window.read(address, size);
        let extent = self.edges.owned.extent(index);
        references.of_block(contains, extent, address, bytes, image, &mut |reference| self.follow(reference));
        self.see_itself(BlockIndex(index as u32));
        match pointers {
            Pointers::Unknown => self.words(bytes, 0),
            _ => self.doubtful_words(bytes),
        }
    }

    /// Adds the edge of a pointer in a value of a known type.
    fn follow(&mut self, reference: Reference<'_>) {
        let Input { blocks, layouts, .. } = self.input;
        let Some(found) = self.lookup.find(blocks, reference.target) else { return };
        if found.offset != 0 && !self.interior {
            return;
        }
        let index = found.block.0 as usize;
        let fits = || {
            let wanted = match reference.contains {
                Some(BlockType::One(type_id)) => layouts.get(type_id).size,
                _ => 0,
            };
            found.offset == 0 && blocks.sizes[index] >= wanted
        };
        let mark = match reference.hold {
            Hold::Owns if fits() => OWNS,
            Hold::Owns | Hold::Weak => WEAK,
            Hold::Refers => 0,
        };
        let (kind, label) = match reference.name {
            EdgeName::Field(name) => (EdgeKind::Property, self.edges.names.intern(name)),
            EdgeName::Index(index) if reference.within.is_empty() => (EdgeKind::Element, clamped(index)),
            EdgeName::Index(index) => (EdgeKind::Property, self.label_of(index, reference.within)),
        };
        self.seen.insert(found.block);
        self.edges.push_marked(found.block, kind as u8 | mark, label);
    }

    /// The name of a field of an element. Only the first elements have names of their own.
    fn label_of(&mut self, index: u64, within: &str) -> u32 {
        use std::fmt::Write;
        self.label.clear();
        let _ = match index {
            0..NAMED_ELEMENTS => write!(self.label, "[{index}].{within}"),
            _ => write!(self.label, "[…].{within}"),
        };
        self.edges.names.intern(&self.label)
    }

    /// Adds an edge for each word that is an address in a block. `first` is the number of the first word.
    fn words(&mut self, bytes: &[u8], first: u64) {
        for (number, word) in words(bytes).enumerate() {
            let Some(found) = self.lookup.find(self.input.blocks, word) else { continue };
            if (self.interior || found.offset == 0) && self.seen.insert(found.block) {
                self.edges.push(found.block, EdgeKind::Element, clamped(first + number as u64), false);
            }
        }
    }

    /// Adds a weak edge for each word that is the address of a block, but no pointer by its type.
    fn doubtful_words(&mut self, bytes: &[u8]) {
        for (number, word) in words(bytes).enumerate() {
            let Some(found) = self.lookup.find(self.input.blocks, word) else { continue };
            if found.offset == 0 && self.seen.insert(found.block) {
                self.edges.push(found.block, EdgeKind::Element, clamped(number as u64), true);
            }
        }
    }
}

/// So many elements of an array have edges with names of their own.
const NAMED_ELEMENTS: u64 = 1000;

fn clamped(index: u64) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// The aligned words of memory that begins at a multiple of 8.
fn words(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()))
}

/// Memory of the process, read in large parts in the order of addresses.
struct Window<'a> {
    image: &'a Image,
    start: u64,
    bytes: Vec<u8>,
}

impl<'a> Window<'a> {
    fn new(image: &'a Image) -> Window<'a> {
        Window { image, start: 0, bytes: Vec::new() }
    }

    /// Bytes from `address` on in pages that were never written, if the next [`WINDOW`] has no other.
    fn empty_pages(&self, address: u64, len: u64) -> Option<u64> {
        const PAGE: u64 = 4096;
        let mut pages = [true; EMPTY_PAGES];
        let count = (len / PAGE).min(EMPTY_PAGES as u64) as usize;
        // Few pages first: most memory is in use.
        for count in [count.min(WINDOW / PAGE as usize), count] {
            self.image.memory.resident(address, &mut pages[..count]);
            let empty = pages[..count].iter().take_while(|resident| !**resident).count();
            if empty < count.min(WINDOW / PAGE as usize) {
                return None;
            }
            if empty < count || count == EMPTY_PAGES {
                return Some(empty as u64 * PAGE);
            }
        }
        Some(count as u64 * PAGE)
    }

    /// As many of these bytes as can be read.
    fn read(&mut self, address: u64, len: u64) -> &[u8] {
        let len = usize::try_from(len).unwrap_or(usize::MAX).min(LARGEST_READ);
        let end = self.start + self.bytes.len() as u64;
        if address < self.start || address + len as u64 > end {
            self.bytes.resize(len.max(WINDOW), 0);
            let count = self.image.memory.read(address, &mut self.bytes);
            self.bytes.truncate(count);
            self.start = address;
        }
        let from = (address - self.start) as usize;
        &self.bytes[from..self.bytes.len().min(from + len)]
    }
}

/// Largest block that is read whole. What lies behind is not followed.
const LARGEST_READ: usize = 4 << 30;
