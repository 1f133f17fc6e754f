//! The edges of all roots and blocks.
//!
//! A value of a known type has the pointers that its layout tells. An owning pointer must lead to the first byte of a block of
//! the right size. Words that are no pointers by layout, and pointers that do not fit, give *weak* edges: they are shown, but
//! hold nothing. Memory of unknown type is scanned: each aligned word that is an address in a block is an edge. Such words may be
//! left over: `counts` finds those that hold nothing.

use super::disguised::Disguised;
use super::empty_values::EmptyValues;
use super::input::Input;
use super::names::Names;
use super::owned::{self, Owned};
use super::words::words;
use crate::blocks::BlockIndex;
use crate::blocks::lookup::{Found, Lookup};
use crate::references::{self, BlockType, EdgeName, Hold, Pointers, Reference, References};
use crate::root::Root;
use crate::typing;
use crate::window::Window;
use foldhash::HashMap;
use stackglass_layouts::Local;
use stackglass_process_view::locals;
use stackglass_profile::heap_graph::EdgeKind;
use std::ops::Range;
use std::sync::Arc;

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
    /// Weak edges that were found last, by the root or block where they begin.
    pub disguised: HashMap<usize, Vec<Disguised>>,
    /// Texts.
    pub names: Names,
    /// What owners say of their blocks.
    pub owned: Owned,
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

/// In the kind of an edge that holds nothing.
pub(super) const WEAK: u8 = 0x80;
/// In the kind of an edge from an owner.
pub(super) const OWNS: u8 = 0x40;
/// In the kind of an edge from a word in a block of unknown layout. The word may be left over from an earlier block.
pub(super) const UNKNOWN: u8 = 0x20;

impl Edges {
    /// The edges of a root or block, as a range of numbers.
    pub fn of(&self, place: usize) -> Range<usize> {
        self.first[place] as usize..self.first[place + 1] as usize
    }

    /// Whether edges begin at a root or block.
    pub fn has_any(&self, place: usize) -> bool {
        !self.of(place).is_empty() || self.disguised.contains_key(&place)
    }

    /// The edges of all blocks, which lie behind those of so many roots.
    pub fn of_blocks(&self, roots: usize) -> Range<usize> {
        self.first[roots] as usize..self.targets.len()
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
    let mut near = Window::near(input.image);
    for (module, bias) in input.biases.iter().enumerate() {
        references.load_module(module, *bias);
    }
    let owned = owned::owned(input, lookup, &mut references, [&mut near, &mut window]);
    let mut search = Search {
        input,
        lookup,
        empty: EmptyValues::new(input),
        seen: Seen::new(input.blocks.len()),
        own: None,
        interior: true,
        has_other_writers: false,
        doubts: Vec::new(),
        edges: Edges { owned, ..Edges::default() },
        label: String::new(),
    };
    for root in input.roots {
        search.begin();
        search.interior = root.interior;
        search.has_other_writers = root.has_other_writers;
        search.root(root, &mut references, &mut near);
    }
    search.interior = true;
    search.has_other_writers = false;
    for index in 0..input.blocks.len() {
        search.begin();
        search.block(index, &mut references, &mut window);
    }
    search.end_doubts();
    search.edges.first.push(search.edges.targets.len() as u32);
    search.edges
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

/// Where an address lies.
enum Place {
    /// In a block.
    In(Found),
    /// Behind the end of a block: this may be the end of an array, or the head of the next block, left over from the allocator.
    Behind(BlockIndex),
    /// In no block.
    Elsewhere,
}

/// A word that may lead to a block.
struct Doubt {
    block: BlockIndex,
    kind: EdgeKind,
    /// The name of a field, or the number of the word.
    label: u32,
}

impl Doubt {
    fn word(block: BlockIndex, number: u64) -> Doubt {
        Doubt { block, kind: EdgeKind::Element, label: clamped(number) }
    }
}

struct Search<'a> {
    input: &'a Input<'a>,
    lookup: &'a Lookup,
    empty: EmptyValues,
    /// The blocks to which the current root or block leads, and that block itself.
    seen: Seen,
    /// The current block.
    own: Option<BlockIndex>,
    /// Pointers into the middle of blocks count.
    interior: bool,
    /// Other processes may have written the words of the current root.
    has_other_writers: bool,
    /// Words of the current root or block that may lead to blocks. What is known to be a pointer counts first.
    doubts: Vec<Doubt>,
    edges: Edges,
    label: String,
}

impl Search<'_> {
    /// The block that holds an address, or the value at it.
    #[inline]
    fn find(&self, address: u64) -> Option<Found> {
        match self.place(address) {
            Place::In(found) => Some(found),
            _ => None,
        }
    }

    /// Where an address lies.
    #[inline]
    fn place(&self, address: u64) -> Place {
        let near = self.lookup.find_near(self.input.blocks, address);
        if let Some(found) = near.filter(|found| found.is_inside(self.input.blocks)) {
            return Place::In(found);
        }
        match (self.empty.find(self.input, address), near) {
            (Some(found), _) => Place::In(found),
            // The C library's data has addresses of the heads of blocks.
            (None, Some(found)) if self.interior => Place::Behind(found.block),
            _ => Place::Elsewhere,
        }
    }

    fn begin(&mut self) {
        self.end_doubts();
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
            if let Some(found) = self.find(*value) {
                let label = self.edges.names.intern(name);
                self.edges.push(found.block, EdgeKind::Property, label, false);
            }
        }
        self.locals(&root.locals, references, window);
        if root.range.is_empty() {
            return;
        }
        if let Some(type_id) = root.type_id {
            let address = root.range.start;
            let bytes = window.read(address, root.range.end - address);
            references
                .of_value(type_id, address, bytes, self.input.image, &mut |reference| self.follow(reference));
            return match references.pointers(BlockType::One(type_id)) {
                Pointers::Unknown => self.partly_known_words(bytes, 0, &references.known_parts(type_id)),
                _ => self.doubtful_words(bytes, 0),
            };
        }
        window.pieces(root.range.clone(), &mut |address, bytes| {
            self.words(bytes, (address - root.range.start) / 8);
        });
    }

    /// Adds the edges of local variables that agree with what their targets contain, owners first. The words of the others are
    /// scanned later.
    fn locals(&mut self, locals: &[Local], references: &mut References<'_>, window: &mut Window<'_>) {
        let Input { image, layouts, blocks, .. } = self.input;
        let mut found = Vec::new();
        for local in locals {
            let (address, bytes) = locals::value(&local.place, local.type_id, layouts, |address, size| {
                window.read(address, size)
            });
            references.of_value(local.type_id, address, bytes, image, &mut |reference| {
                let Some(target) = self.find(reference.target) else { return };
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
            let contains = contains.map(|contains| references.fitting(contains, blocks.size(index)));
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
        let (address, size) = (blocks.addresses[index], blocks.size(index));
        let Some(contains) = self.input.contains(index) else {
            self.see_itself(BlockIndex(index as u32));
            window.pieces(address..address.saturating_add(size), &mut |from, bytes| {
                self.words(bytes, (from - address) / 8);
            });
            return;
        };
        let pointers = references.pointers(contains);
        let tail = self.tail(index, contains, references);
        if pointers == Pointers::None && !references.has_addressable_integers(contains) {
            self.tail_words(tail, BlockIndex(index as u32), window);
            return;
        }
        let extent = self.edges.owned.extent(index);
        let block = (address, size);
        references
            .of_block_in(window, contains, extent, block, image, &mut |reference| self.follow(reference));
        self.see_itself(BlockIndex(index as u32));
        let known_parts = match contains {
            BlockType::One(id) if pointers == Pointers::Unknown => references.known_parts(id),
            _ => Arc::default(),
        };
        let end = match contains {
            // What lies behind a value without pointers, up to the size of the block, is room that the allocator adds.
            BlockType::One(id) if pointers == Pointers::None => {
                tail.start.min(address.saturating_add(self.input.layouts.get(id).size))
            }
            _ => tail.start,
        };
        window.pieces(address..end, &mut |from, bytes| match pointers {
            Pointers::Unknown => self.partly_known_words(bytes, (from - address) / 8, &known_parts),
            _ => self.doubtful_words(bytes, (from - address) / 8),
        });
        self.tail_words(tail, BlockIndex(index as u32), window);
    }

    /// The part of a block behind a value that its type does not describe: what follows a struct that ends in an array without a bound
    /// (`char indices[]`), or a struct that is the head of a larger one.
    fn tail(&self, index: usize, contains: BlockType, references: &mut References<'_>) -> Range<u64> {
        let Input { blocks, layouts, .. } = self.input;
        let (address, size) = (blocks.addresses[index], blocks.size(index));
        let end = address.saturating_add(size);
        let value = match contains {
            BlockType::One(id) if !references.has_larger(id) => layouts.get(id).size.next_multiple_of(8),
            _ => return end..end,
        };
        // An allocator may give some bytes more than it was asked for.
        match size.checked_sub(value) {
            Some(rest) if rest >= LEAST_TAIL => address + value..end,
            _ => end..end,
        }
    }

    /// Adds an edge for each word behind a value that is an address in a block.
    fn tail_words(&mut self, tail: Range<u64>, block: BlockIndex, window: &mut Window<'_>) {
        if tail.is_empty() {
            return;
        }
        self.see_itself(block);
        let address = self.input.blocks.addresses[block.0 as usize];
        window.pieces(tail, &mut |from, bytes| self.words(bytes, (from - address) / 8));
    }

    /// Adds the edge of a pointer in a value of a known type.
    fn follow(&mut self, reference: Reference<'_>) {
        let Input { blocks, layouts, .. } = self.input;
        let found = match self.place(reference.target) {
            Place::In(found) => found,
            Place::Behind(block) if reference.hold == Hold::Refers => {
                let (kind, label) = self.name(&reference);
                return self.doubts.push(Doubt { block, kind, label });
            }
            _ => return,
        };
        if found.offset != 0 && !self.interior {
            return;
        }
        let index = found.block.0 as usize;
        let fits = || {
            let wanted = match reference.contains {
                Some(BlockType::One(type_id)) => layouts.get(type_id).size,
                _ => 0,
            };
            found.offset == 0 && blocks.size(index) >= wanted
                || found.offset == COOKIE && self.has_cookie(index, reference.contains)
        };
        let mark = match reference.hold {
            Hold::Owns if fits() => OWNS,
            Hold::Owns | Hold::Weak => WEAK,
            Hold::Refers => 0,
        };
        let (kind, label) = self.name(&reference);
        self.seen.insert(found.block);
        self.edges.push_marked(found.block, kind as u8 | mark, label);
        if reference.text && self.input.with_texts && found.offset == 0 {
            self.note_text(reference, index);
        }
    }

    /// The name of a pointer's edge.
    fn name(&mut self, reference: &Reference<'_>) -> (EdgeKind, u32) {
        match reference.name {
            EdgeName::Field(name) => (EdgeKind::Property, self.edges.names.intern(name)),
            EdgeName::Index(index) if reference.within.is_empty() => (EdgeKind::Element, clamped(index)),
            EdgeName::Index(index) => (EdgeKind::Property, self.label_of(index, reference.within)),
        }
    }

    /// Whether a block begins with the number of its elements, as `new T[n]` of C++ stores it for a type with a destructor. The pointer
    /// leads behind it.
    ///
    /// Source: Itanium C++ ABI, 2.7 Array Operator new Cookies.
    fn has_cookie(&self, index: usize, contains: Option<BlockType>) -> bool {
        let Input { blocks, layouts, image, .. } = self.input;
        let Some(BlockType::One(element) | BlockType::Elements(element)) = contains else { return false };
        let count = image.word(blocks.addresses[index]);
        let bytes = count.and_then(|count| count.checked_mul(layouts.get(element).size)?.checked_add(COOKIE));
        let size = blocks.size(index);
        bytes.is_some_and(|bytes| bytes > COOKIE && bytes <= size && size - bytes < LEAST_TAIL)
    }

    /// Notes a text. Slots that are not in use are not followed; but a reference may also be stale, so a block of larger elements is
    /// none.
    fn note_text(&mut self, reference: Reference<'_>, index: usize) {
        let Input { blocks, layouts, .. } = self.input;
        let Some(length) = reference.elements else { return };
        let may_be_text = match self.input.contains(index) {
            Some(BlockType::One(_)) => false,
            Some(contains) => owned::element_size(layouts, contains) == Some(1),
            None => true,
        };
        let start = reference.contains.map_or(0, references::start_of_text);
        if may_be_text && length <= blocks.size(index).saturating_sub(start) {
            let text = self.edges.texts.entry(index as u32).or_insert(Text { start, length: 0 });
            text.length = text.length.max(length);
        }
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
        self.partly_known_words(bytes, first, &[]);
    }

    /// The same in a value some parts of which have no pointers but those that are followed. Words there give weak edges.
    fn partly_known_words(&mut self, bytes: &[u8], first: u64, known: &[Range<u64>]) {
        let is_known = |number: usize| {
            let at = (first + number as u64) * 8;
            let after = known.partition_point(|part| part.start <= at);
            after > 0 && at < known[after - 1].end
        };
        for (number, word) in words(bytes).enumerate() {
            if !known.is_empty() && is_known(number) {
                continue;
            }
            let found = match self.place(word) {
                Place::In(found) => found,
                Place::Behind(block) => {
                    self.doubts.push(Doubt::word(block, first + number as u64));
                    continue;
                }
                Place::Elsewhere => {
                    self.tagged_word(word, first + number as u64);
                    continue;
                }
            };
            if self.has_other_writers {
                self.doubts.push(Doubt::word(found.block, first + number as u64));
            } else if (self.interior || found.offset == 0) && self.seen.insert(found.block) {
                let mark = if self.own.is_some() { UNKNOWN } else { 0 };
                let label = clamped(first + number as u64);
                self.edges.push_marked(found.block, EdgeKind::Element as u8 | mark, label);
            }
        }
        if !known.is_empty() {
            self.doubtful_words(bytes, first);
        }
    }

    /// Notes each word that is the address of a block, or may be a tagged one, but no pointer by its type.
    fn doubtful_words(&mut self, bytes: &[u8], first: u64) {
        for (number, word) in words(bytes).enumerate() {
            let Some(found) = self.find(word) else {
                self.tagged_word(word, first + number as u64);
                continue;
            };
            if found.offset < TAGS {
                self.doubts.push(Doubt::word(found.block, first + number as u64));
            }
        }
    }

    /// Notes a word that is the address of a block with a tag in its upper bits, as interpreters put numbers and pointers into one word.
    fn tagged_word(&mut self, word: u64, number: u64) {
        if word >> USER_BITS == 0 {
            return;
        }
        let found = self.find(word & ((1 << USER_BITS) - 1));
        let found = found.filter(|found| found.offset < TAGS);
        self.doubts.extend(found.map(|found| Doubt::word(found.block, number)));
    }

    /// Adds weak edges for the words in doubt of the current root or block, unless it holds these blocks by other words.
    fn end_doubts(&mut self) {
        for Doubt { block, kind, label } in std::mem::take(&mut self.doubts) {
            if self.seen.insert(block) {
                self.edges.push(block, kind, label, true);
            }
        }
    }
}

/// Fewer bytes behind a value are room that the allocator adds.
const LEAST_TAIL: u64 = 32;

/// Blocks begin at multiples of this number, so that programs use the bits below for tags.
const TAGS: u64 = 16;

/// Bits of the addresses of a process (Documentation/arch/x86/x86_64/mm.rst). Programs use the bits above for tags.
const USER_BITS: u32 = 47;

/// Bytes of the number of elements before an array of C++.
const COOKIE: u64 = 8;

/// So many elements of an array have edges with names of their own.
const NAMED_ELEMENTS: u64 = 1000;

fn clamped(index: u64) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
