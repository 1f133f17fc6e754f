//! Propagates types along pointers.
//!
//! A block gets the type that a pointer says if the sizes agree. If pointers say different types, the whole propagation is repeated
//! without that block, since the types of other blocks may come from the wrong one.

use super::evidence::Evidence;
use super::fit::{Exactness, begins_with, fits, is_size_of};
use super::members::Members;
use super::memory::BlockMemory;
use super::vtables::Vtables;
use crate::blocks::lookup::Lookup;
use crate::references::{BlockType, Extent, Hold, Reference, References};
use foldhash::HashMap;
use stackglass_layouts::{Layouts, Shape, TypeId};
use stackglass_profile::heap_graph::NodeKind;

/// Most repetitions. Blocks with different types then still are left out.
const MOST_ROUNDS: usize = 8;
/// Elements of an array that are looked at before it is believed to be one.
const LOOKED_AT: u64 = 4;

/// Largest block that is searched for text.
const LONGEST_TEXT: u64 = 64 << 10;
/// Smallest struct without pointers of which arrays are believed: sizes of smaller ones divide most sizes of blocks.
const LEAST_STRUCT: u64 = 20;

/// The types of all blocks, and the number of those to which pointers give different types.
pub(super) fn propagate(evidence: Evidence<'_>) -> (Vec<Option<BlockType>>, u64) {
    let lookup = Lookup::new(evidence.blocks);
    let members = Members::new(evidence.layouts);
    let vtables = Vtables::new(evidence.layouts, evidence.biases);
    let mut conflicting: Vec<bool> =
        (0..evidence.blocks.len()).map(|block| is_closed(evidence, block)).collect();
    let closed = conflicting.iter().filter(|closed| **closed).count();
    let mut round = 0;
    loop {
        let mut propagation = Propagation::new(evidence, &lookup, &members, std::mem::take(&mut conflicting));
        propagation.all(&vtables);
        let Propagation { contents, conflicting: found, new_conflicts, .. } = propagation;
        conflicting = found;
        round += 1;
        if new_conflicts == 0 || round == MOST_ROUNDS {
            let count = conflicting.iter().filter(|conflicts| **conflicts).count();
            return (contents, (count - closed) as u64);
        }
    }
}

/// Whether the recorder knows the name of a block's type, but not its layout: there is nothing to infer.
fn is_closed(evidence: Evidence<'_>, block: usize) -> bool {
    evidence.site(block).is_some_and(|site| site.contains.is_none() && site.kind != NodeKind::Native)
}

/// Which pointers count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Trust {
    /// Only those that own their target.
    Owners,
    /// All, as in C.
    All,
}

/// The source of a type, the most reliable first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Source {
    /// The recorder.
    Recorded,
    /// Owners with static storage, vtables in objects.
    Owner,
    /// Owners among local variables, and vtables beside pointers. They may be stale.
    Local,
    /// Pointers of C.
    Convention,
    /// Pointers of C among local variables.
    LocalConvention,
}

/// How many types fit.
enum Values {
    None,
    One(TypeId),
    Several,
}

/// A pointer to a block, as [`Reference`] has it.
pub(super) struct Pointer {
    pub target: u64,
    pub hold: Hold,
    pub contains: Option<BlockType>,
    pub extent: Extent,
}

pub(super) struct Propagation<'a> {
    pub evidence: Evidence<'a>,
    pub lookup: &'a Lookup,
    members: &'a Members,
    pub references: References<'a>,
    pub memory: BlockMemory<'a>,
    pub contents: Vec<Option<BlockType>>,
    /// The sources of the types of blocks, direct or not.
    sources: Vec<Source>,
    /// The source of the pointers that are being followed.
    pub source: Source,
    /// Which elements of a block are initialized, where owners say so.
    extents: HashMap<u32, Extent>,
    /// Blocks that get no type.
    conflicting: Vec<bool>,
    new_conflicts: u64,
    /// Blocks of known type that hold pointers of C.
    with_plain: Vec<u32>,
    /// By type: whether it comes from C or C++ code.
    of_c: HashMap<TypeId, bool>,
    /// Blocks of known type whose pointers are still to be followed.
    pending: Vec<u32>,
    /// Pointers of the value at hand.
    pub pointers: Vec<Pointer>,
    /// The program has Rust in it, where a reference may lead to the first field of a larger value.
    has_rust: bool,
}

impl<'a> Propagation<'a> {
    fn new(evidence: Evidence<'a>, lookup: &'a Lookup, members: &'a Members, conflicting: Vec<bool>) -> Self {
        let layouts = evidence.layouts;
        let mut references = References::new(layouts);
        for (module, bias) in evidence.biases.iter().enumerate() {
            references.load_module(module, *bias);
        }
        let recorded = |block: usize| evidence.site(block).and_then(|site| site.contains);
        let contents: Vec<Option<BlockType>> = (0..evidence.blocks.len()).map(recorded).collect();
        let source = |contains: &Option<BlockType>| match contains {
            Some(_) => Source::Recorded,
            None => Source::Owner,
        };
        Self {
            evidence,
            lookup,
            members,
            references,
            memory: BlockMemory::new(evidence.image),
            sources: contents.iter().map(source).collect(),
            contents,
            source: Source::Owner,
            extents: HashMap::default(),
            conflicting,
            new_conflicts: 0,
            with_plain: Vec::new(),
            of_c: HashMap::default(),
            pending: Vec::new(),
            pointers: Vec::new(),
            has_rust: ["alloc::alloc::Global", "core::fmt::Formatter", "core::fmt::Error"]
                .iter()
                .any(|name| layouts.by_name(name).is_some()),
        }
    }

    fn all(&mut self, vtables: &Vtables) {
        let mut found = Vec::new();
        vtables.objects(self.evidence, &mut |block, contains| found.push((block, contains)));
        self.roots(Trust::Owners);
        self.recorded();
        self.add_all(&mut found, Source::Owner);
        self.follow_pending(Trust::Owners);
        self.locals(Trust::Owners);
        found.extend(vtables.boxes(self.evidence, self.lookup, &self.contents));
        found.retain(|(block, contains)| {
            let found = self.soundness(*block, *contains, Extent::default());
            matches!(found, Soundness::Pointers | Soundness::Empty)
        });
        self.add_all(&mut found, Source::Local);
        self.follow_pending(Trust::Owners);

        // Once more, with all pointers.
        self.roots(Trust::All);
        for block in std::mem::take(&mut self.with_plain) {
            self.pending.push(block);
            self.follow_pending(Trust::All);
        }
        self.locals(Trust::All);
    }

    /// Follows the pointers of values of which the recorder knows the type. Arrays wait for the owner that says how many of their
    /// elements are initialized.
    fn recorded(&mut self) {
        for block in 0..self.contents.len() {
            let is_value = matches!(self.contents[block], Some(BlockType::One(_)));
            if is_value && self.sources[block] == Source::Recorded {
                self.pending.push(block as u32);
                self.follow_pending(Trust::Owners);
            }
        }
    }

    fn add_all(&mut self, found: &mut Vec<(usize, BlockType)>, source: Source) {
        self.source = source;
        for (block, contains) in found.drain(..) {
            self.add(block, contains, Extent::default());
        }
    }

    /// Follows the pointers of variables.
    fn roots(&mut self, trust: Trust) {
        let Evidence { image, roots, .. } = self.evidence;
        for root in roots {
            let Some(type_id) = root.type_id else { continue };
            if !self.references.has_pointers(BlockType::One(type_id)) {
                continue;
            }
            let size = root.range.end.saturating_sub(root.range.start);
            let bytes = self.memory.read(root.range.start, size);
            let pointers = &mut self.pointers;
            let each = &mut |reference: Reference<'_>| pointers.push(Pointer::from_reference(&reference));
            self.references.of_value(type_id, root.range.start, bytes, image, each);
            self.source = Source::Owner;
            self.follow_pointers(trust);
            self.follow_pending(trust);
        }
    }

    pub(super) fn follow_pending(&mut self, trust: Trust) {
        while let Some(block) = self.pending.pop() {
            let Some(contains) = self.contents[block as usize] else { continue };
            let extent = self.extents.get(&block).copied().unwrap_or_default();
            self.source = self.sources[block as usize].max(Source::Owner);
            self.list(block as usize, contains, extent);
            if trust == Trust::Owners && self.has_plain_pointers() {
                self.with_plain.push(block);
            }
            self.follow_pointers(trust);
        }
    }

    /// Lists the pointers of a block.
    fn list(&mut self, block: usize, contains: BlockType, extent: Extent) {
        self.pointers.clear();
        if !self.references.has_pointers(contains) {
            return;
        }
        let Evidence { image, blocks, .. } = self.evidence;
        let bytes = self.memory.read(blocks.addresses[block], blocks.size(block));
        let pointers = &mut self.pointers;
        let each = &mut |reference: Reference<'_>| pointers.push(Pointer::from_reference(&reference));
        self.references.of_block(contains, extent, blocks.addresses[block], bytes, image, each);
    }

    pub(super) fn follow_pointers(&mut self, trust: Trust) {
        let mut pointers = std::mem::take(&mut self.pointers);
        for pointer in pointers.drain(..) {
            match pointer.hold {
                Hold::Owns => self.follow_owner(&pointer),
                Hold::Refers if trust == Trust::All => {
                    let kept = self.source;
                    self.source = kept.max(Source::Convention);
                    self.follow_plain(&pointer);
                    self.source = kept;
                }
                Hold::Refers | Hold::Weak => {}
            }
        }
        self.pointers = pointers;
    }

    /// The block that begins at an address, and its size.
    pub(super) fn block_at(&self, address: u64) -> Option<(usize, u64)> {
        let blocks = self.evidence.blocks;
        let found = self.lookup.find(blocks, address).filter(|found| found.offset == 0)?;
        let block = found.block.0 as usize;
        Some((block, blocks.size(block)))
    }

    pub(super) fn follow_owner(&mut self, pointer: &Pointer) {
        let Some(contains) = pointer.contains else { return };
        let Some((block, size)) = self.block_at(pointer.target) else { return };
        let contains = self.references.fitting(contains, size);
        let exactness = self.evidence.exactness(block, Exactness::Rest);
        if fits(self.evidence.layouts, contains, pointer.extent, size, exactness) {
            self.add(block, contains, pointer.extent);
        }
    }

    /// Follows a pointer of C: to one value, to a member of a larger one, or to an array.
    fn follow_plain(&mut self, pointer: &Pointer) {
        let blocks = self.evidence.blocks;
        let Some(found) = self.lookup.find(blocks, pointer.target) else { return };
        let block = found.block.0 as usize;
        let size = blocks.size(block);
        let Some(contains) = pointer.contains else {
            if found.offset == 0 && self.contents[block].is_none() && self.is_text(block) {
                self.add(block, BlockType::Bytes, Extent::default());
            }
            return;
        };
        let BlockType::One(id) = contains else { return };
        if !self.is_of_c(id) {
            return;
        }
        let exactness = self.evidence.exactness(block, Exactness::Exact);
        let contains = match self.value_with(id, found.offset, size, exactness) {
            Values::One(value) => BlockType::One(value),
            Values::None if found.offset == 0 && self.may_be_array(id, size, exactness) => {
                BlockType::Elements(id)
            }
            Values::None | Values::Several => return,
        };
        if self.contents[block] != Some(contains) && self.is_plausible(block, contains) {
            self.add(block, contains, Extent::default());
        }
    }

    /// The type of a value that fills a block of this size and has a value of type `id` at an offset.
    fn value_with(&mut self, id: TypeId, offset: u64, size: u64, exactness: Exactness) -> Values {
        let layouts = self.evidence.layouts;
        let fills = |id: TypeId| {
            fits(layouts, BlockType::One(id), Extent::default(), size, exactness)
                && layouts.get(id).shape != Shape::Plain
        };
        let around = self.members.around(id, offset).filter(|_| !self.members.is_common_base(id));
        let mut found = Some(id).filter(|_| offset == 0).into_iter().chain(around).filter(|id| fills(*id));
        let Some(first) = found.next() else { return Values::None };
        if found.all(|other| other == first) { Values::One(first) } else { Values::Several }
    }

    /// Whether a block of this size may be an array, if a pointer to an element leads to it. C programs also put structs at the
    /// begin of larger ones: a pointer to such a struct (`PyObject *`) does not tell which of both the block is.
    fn may_be_array(&mut self, id: TypeId, size: u64, exactness: Exactness) -> bool {
        let layout = self.evidence.layouts.get(id);
        let value = layout.size;
        let begins_others = self.members.around(id, 0).next().is_some();
        if begins_others
            || value == 0
            || size / value < 2
            || !is_size_of(size / value * value, size, exactness)
        {
            return false;
        }
        match &layout.shape {
            Shape::Plain | Shape::Pointer { .. } => true,
            Shape::Struct(fields) => {
                // Parts of lists and trees are single.
                let is_linked = fields.iter().any(|field| {
                    matches!(self.evidence.layouts.get(field.type_id).shape, Shape::Pointer { target: Some(target) } if target == id)
                });
                // Any block of pointers looks like an array of tables of functions.
                let is_any = fields.iter().all(|field| {
                    let shape = &self.evidence.layouts.get(field.type_id).shape;
                    matches!(shape, Shape::Pointer { target: None })
                });
                let has_pointers = self.references.has_pointers(BlockType::One(id));
                !is_linked && !is_any && (has_pointers || value >= LEAST_STRUCT)
            }
            _ => false,
        }
    }

    /// Whether pointers of C are among the pointers at hand. Text is only looked for in programs without Rust.
    fn has_plain_pointers(&mut self) -> bool {
        let mut pointers = std::mem::take(&mut self.pointers);
        let mut is_plain = |pointer: &Pointer| {
            pointer.hold == Hold::Refers
                && match pointer.contains {
                    Some(BlockType::One(id)) => self.is_of_c(id),
                    Some(_) => false,
                    None => !self.has_rust,
                }
        };
        let found = pointers.iter().any(&mut is_plain);
        std::mem::swap(&mut self.pointers, &mut pointers);
        found
    }

    /// Whether a type comes from C or C++ code.
    pub(super) fn is_of_c(&mut self, id: TypeId) -> bool {
        let Self { has_rust, evidence, of_c, .. } = self;
        *of_c.entry(id).or_insert_with(|| {
            let layout = evidence.layouts.get(id);
            !*has_rust
                || matches!(layout.shape, Shape::Struct(_))
                    && !layout.name.contains([':', '<', '(', '[', '&'])
        })
    }

    /// Whether a block looks like what it is said to contain: there may be pointers, and all owners lead to blocks.
    pub(super) fn soundness(&mut self, block: usize, contains: BlockType, extent: Extent) -> Soundness {
        if !self.references.has_pointers(contains) {
            return Soundness::NoPointers;
        }
        self.list(block, contains, extent);
        let pointers = std::mem::take(&mut self.pointers);
        let is_sound = pointers.iter().all(|pointer| match pointer.hold {
            Hold::Owns => self.block_at(pointer.target).is_some(),
            Hold::Refers => self.evidence.image.mapping(pointer.target).is_some(),
            Hold::Weak => true,
        });
        let is_empty = pointers.is_empty();
        self.pointers = pointers;
        match (is_sound, is_empty) {
            (false, _) => Soundness::Wrong,
            (true, true) => Soundness::Empty,
            (true, false) => Soundness::Pointers,
        }
    }

    /// Whether all pointers of a block lead to memory of the process, if it contains what is said.
    fn is_plausible(&mut self, block: usize, contains: BlockType) -> bool {
        let extent = match contains {
            BlockType::Elements(_) => Extent { elements: Some(LOOKED_AT), ..Extent::default() },
            _ => Extent::default(),
        };
        let mut kept = std::mem::take(&mut self.pointers);
        self.list(block, contains, extent);
        let image = self.evidence.image;
        let is_array = matches!(contains, BlockType::Elements(_));
        let is_plausible = self.pointers.iter().all(|pointer| image.mapping(pointer.target).is_some())
            && (!is_array || self.pointers.is_empty() || self.pointers.len() > 1);
        std::mem::swap(&mut self.pointers, &mut kept);
        is_plausible
    }

    /// Whether a block contains text that ends with a zero byte and fills the block.
    fn is_text(&mut self, block: usize) -> bool {
        let blocks = self.evidence.blocks;
        let size = blocks.size(block);
        if size > LONGEST_TEXT {
            return false;
        }
        let exactness = self.evidence.exactness(block, Exactness::Exact);
        let bytes = self.memory.read(blocks.addresses[block], size);
        let Some(length) = bytes.iter().position(|byte| *byte == 0).filter(|length| *length > 0) else {
            return false;
        };
        let is_printable =
            |byte: &u8| *byte >= b' ' && *byte != 0x7f || matches!(byte, b'\t' | b'\n' | b'\r');
        is_size_of(length as u64 + 1, size, exactness)
            && bytes[..length].iter().all(is_printable)
            && std::str::from_utf8(&bytes[..length]).is_ok()
    }

    /// Gives a block a type.
    pub(super) fn add(&mut self, block: usize, contains: BlockType, extent: Extent) {
        if self.conflicting[block] {
            return;
        }
        let merged = match self.contents[block] {
            None => {
                self.sources[block] = self.source;
                Some(contains)
            }
            Some(known) if self.sources[block] == Source::Recorded => {
                // Only the number of initialized elements is new.
                let is_new = extent != Extent::default()
                    && !matches!(known, BlockType::One(_))
                    && self.references.has_pointers(known)
                    && !self.extents.contains_key(&(block as u32));
                if is_new {
                    self.extents.insert(block as u32, extent);
                    self.pending.push(block as u32);
                }
                return;
            }
            Some(known) if known == contains => return,
            // A better source takes precedence.
            Some(_) if self.source > self.sources[block] => return,
            Some(known) => merge(self.evidence.layouts, known, contains),
        };
        let Some(merged) = merged else {
            self.conflicting[block] = true;
            self.new_conflicts += 1;
            self.contents[block] = None;
            return;
        };
        if self.contents[block] != Some(merged) {
            self.contents[block] = Some(merged);
            if !self.references.has_pointers(merged) {
                return;
            }
            if extent != Extent::default() {
                self.extents.insert(block as u32, extent);
            }
            self.pending.push(block as u32);
        }
    }
}

/// Whether the contents of a block agree with its claimed type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Soundness {
    /// Some pointer leads nowhere.
    Wrong,
    /// Such values have no pointers.
    NoPointers,
    /// Such values may have pointers, but these have none.
    Empty,
    /// All pointers lead to blocks or to mapped memory.
    Pointers,
}

impl Pointer {
    pub(super) fn from_reference(reference: &Reference<'_>) -> Pointer {
        Pointer {
            target: reference.target,
            hold: reference.hold,
            contains: reference.contains,
            extent: reference.extent(),
        }
    }
}

/// One type for two that pointers say: a class and its base class, a value and its first field, a value and an array of one.
pub(super) fn merge(layouts: &Layouts, one: BlockType, other: BlockType) -> Option<BlockType> {
    let is_byte = |id: TypeId| layouts.get(id).shape == Shape::Plain && layouts.get(id).size == 1;
    match (one, other) {
        (BlockType::One(one), BlockType::One(other)) => {
            let larger = |outer, inner| begins_with(layouts, outer, inner).then_some(BlockType::One(outer));
            larger(one, other).or_else(|| larger(other, one))
        }
        (BlockType::One(id), BlockType::Elements(element))
        | (BlockType::Elements(element), BlockType::One(id)) => {
            if id == element {
                Some(BlockType::Elements(id))
            } else {
                begins_with(layouts, id, element).then_some(BlockType::One(id))
            }
        }
        (BlockType::Elements(one), BlockType::Elements(other)) => {
            let larger =
                |outer, inner| begins_with(layouts, outer, inner).then_some(BlockType::Elements(outer));
            larger(one, other).or_else(|| larger(other, one))
        }
        (BlockType::Bytes, BlockType::Elements(id)) | (BlockType::Elements(id), BlockType::Bytes)
            if is_byte(id) =>
        {
            Some(BlockType::Bytes)
        }
        _ => None,
    }
}
