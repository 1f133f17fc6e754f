//! Where values hold pointers to blocks, and what these blocks then contain.
//!
//! A value of a known type is followed by its layout ([`stackglass_layouts`]). Containers of the standard
//! libraries are followed by what they mean: elements behind the length of a `Vec` or in empty slots of a table hold nothing.

mod buffer_owner;
mod compile;
mod large;
mod models;
mod reference;
mod slots;
mod tables;
#[cfg(test)]
mod tests;
mod text;
mod vtables;
mod walk;

pub use reference::{EdgeName, Extent, Hold, Reference, Usage};
pub use stackglass_layouts::BlockType;
pub(crate) use tables::table_bytes;
pub use text::{shown_bytes, start_of_text, text};

use compile::Compiler;
use slots::{Compiled, Op};
use stackglass_layouts::{Field, Layouts, Shape, TypeId};
use stackglass_process_view::core_image::CoreImage;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;
use vtables::Vtables;
use walk::{Place, Walk};

/// What is known of the pointers in values of a type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pointers {
    /// There are none.
    None,
    /// All are listed.
    Listed,
    /// There may be some that are not listed: the layout is not known completely.
    Unknown,
}

/// Types of 8 bytes that hold no integers.
const FLOATS: [&str; 2] = ["double", "f64"];

/// Lists the pointers in values and blocks of known types. Each type is looked at once.
#[derive(Debug)]
pub struct References<'a> {
    compiler: Compiler<'a>,
    /// By type.
    types: Vec<Option<Arc<Compiled>>>,
    /// Entries of hash tables, by type of the slot.
    entries: HashMap<TypeId, Arc<Compiled>>,
    /// Types that own buffers of a content.
    owners: HashMap<BlockType, Vec<TypeId>>,
    /// What [`References::has_addressable_integers`] has found.
    integers: HashMap<TypeId, bool>,
    /// What [`References::known_parts`] has found.
    known_parts: HashMap<TypeId, Arc<[Range<u64>]>>,
    vtables: Vtables,
    path: String,
}

impl<'a> References<'a> {
    /// Without vtables, the types of `dyn` values and C++ objects are not known.
    pub fn new(layouts: &'a Layouts) -> References<'a> {
        References {
            compiler: Compiler::new(layouts, models::model),
            types: Vec::new(),
            entries: HashMap::new(),
            owners: HashMap::new(),
            integers: HashMap::new(),
            known_parts: HashMap::new(),
            vtables: Vtables::default(),
            path: String::new(),
        }
    }

    /// Adds the vtables of a module. Its addresses in the process are `bias` above those in its file.
    ///
    /// # Panics
    /// If the layouts have no such module.
    pub fn load_module(&mut self, module: usize, bias: u64) {
        self.vtables.load(self.compiler.layouts, module, bias);
    }

    /// Whether blocks of a type hold pointers.
    ///
    /// # Panics
    /// If a type is not from these layouts. That holds for all methods.
    pub fn pointers(&mut self, contains: BlockType) -> Pointers {
        let Some(compiled) = self.content(contains) else { return Pointers::None };
        match (compiled.incomplete, compiled.ops.is_empty()) {
            (true, _) => Pointers::Unknown,
            (false, true) => Pointers::None,
            (false, false) => Pointers::Listed,
        }
    }

    /// Whether a block of this content may hold pointers.
    pub fn has_pointers(&mut self, contains: BlockType) -> bool {
        self.pointers(contains) != Pointers::None
    }

    /// Whether a block of this content has integers that are large enough for an address. Programs keep tagged pointers in such.
    pub fn has_addressable_integers(&mut self, contains: BlockType) -> bool {
        let id = match contains {
            BlockType::Bytes => return false,
            BlockType::One(id)
            | BlockType::Elements(id)
            | BlockType::CountedElements(id)
            | BlockType::SharedElements(id)
            | BlockType::Table(id) => id,
        };
        if let Some(known) = self.integers.get(&id) {
            return *known;
        }
        const MOST_TYPES: usize = 1000;
        let (mut pending, mut seen) = (vec![id], HashSet::from([id]));
        let found = loop {
            let Some(id) = pending.pop() else { break false };
            let layout = self.compiler.layouts.get(id);
            if seen.len() > MOST_TYPES {
                break true;
            }
            let parts: Vec<TypeId> = match &layout.shape {
                Shape::Plain if layout.size == 8 && !FLOATS.contains(&&*layout.name) => break true,
                Shape::Plain | Shape::Pointer { .. } => continue,
                Shape::Struct(fields) | Shape::Union(fields) => {
                    fields.iter().map(|field| field.type_id).collect()
                }
                Shape::Array { element, .. } => vec![*element],
                Shape::Enum { variants, .. } => {
                    variants.iter().flat_map(|variant| &variant.fields).map(|field| field.type_id).collect()
                }
            };
            pending.extend(parts.into_iter().filter(|part| seen.insert(*part)));
        };
        self.integers.insert(id, found);
        found
    }

    /// Whether a block of this content may hold owners of buffers, which know how many elements these have.
    pub fn has_lengths(&mut self, contains: BlockType) -> bool {
        self.content(contains).is_some_and(|compiled| compiled.has_lengths)
    }

    /// Lists the pointers of a value at `address`, whose bytes are given. The name of a value that is itself a pointer is empty.
    pub fn of_value(
        &mut self,
        type_id: TypeId,
        address: u64,
        bytes: &[u8],
        image: &CoreImage,
        each: &mut dyn FnMut(Reference<'_>),
    ) {
        let compiled = self.compiled(type_id);
        if compiled.ops.is_empty() {
            return;
        }
        self.walk(address, bytes, image, each).run(&compiled.ops, Place::WHOLE);
    }

    /// Lists the pointers of a block at `address`, whose bytes are given. `extent` tells which elements are initialized; a plain number
    /// of elements will do for everything but a `VecDeque`. A value that is itself a pointer has the name `*`.
    pub fn of_block(
        &mut self,
        contains: BlockType,
        extent: impl Into<Extent>,
        address: u64,
        bytes: &[u8],
        image: &CoreImage,
        each: &mut dyn FnMut(Reference<'_>),
    ) {
        match contains {
            BlockType::Bytes => (),
            BlockType::One(id) => {
                let mut compiled = self.compiled(id);
                if let Some(exact) = self.exact(&compiled, bytes) {
                    compiled = self.compiled(exact);
                }
                if compiled.ops.is_empty() {
                    return;
                }
                let each = &mut |reference: Reference<'_>| {
                    let unnamed = reference.name == EdgeName::Field("");
                    let name = if unnamed { EdgeName::Field("*") } else { reference.name };
                    each(Reference { name, ..reference });
                };
                self.walk(address, bytes, image, each).run(&compiled.ops, Place::WHOLE);
            }
            BlockType::Elements(id) => {
                let compiled = self.compiled(id);
                self.walk(address, bytes, image, each).elements(&compiled, extent.into(), 0);
            }
            BlockType::CountedElements(id) | BlockType::SharedElements(id) => {
                let compiled = self.compiled(id);
                self.walk(address, bytes, image, each).counted_elements(&compiled, extent.into());
            }
            BlockType::Table(id) => {
                let compiled = self.entry(id);
                self.walk(address, bytes, image, each).table(&compiled, extent.into().elements);
            }
        }
    }

    /// What a block of this size contains, if `contains` is what a pointer to it says. Pointers to nodes of a `BTreeMap` do not tell
    /// whether these have children.
    pub fn fitting(&mut self, contains: BlockType, size: u64) -> BlockType {
        let BlockType::One(id) = contains else { return contains };
        match self.compiled(id).larger {
            Some((larger, id)) if size >= larger => BlockType::One(id),
            _ => contains,
        }
    }

    /// The parts of a value whose pointers are all known, sorted, if others of its parts are unknown: virtual base classes.
    pub fn known_parts(&mut self, id: TypeId) -> Arc<[Range<u64>]> {
        if let Some(known) = self.known_parts.get(&id) {
            return known.clone();
        }
        const MOST_FIELDS: usize = 10_000;
        let mut parts: Vec<Range<u64>> = Vec::new();
        let mut pending = vec![(id, 0u64)];
        let mut fields_left = MOST_FIELDS;
        while let Some((id, offset)) = pending.pop() {
            let layout = self.compiler.layouts.get(id);
            if !self.compiled(id).incomplete {
                parts.push(offset..offset.saturating_add(layout.size));
            } else if let Shape::Struct(fields) = &layout.shape {
                let Some(left) = fields_left.checked_sub(fields.len()) else { break };
                fields_left = left;
                let within = |field: &Field| (field.type_id, offset.saturating_add(field.offset));
                pending.extend(fields.iter().map(within));
            }
        }
        parts.sort_unstable_by_key(|part| part.start);
        let parts: Arc<[Range<u64>]> = parts.into();
        self.known_parts.insert(id, parts.clone());
        parts
    }

    /// Whether a block of this type may hold a value of a larger type, which its contents tell: an object with a vtable, a node of a tree.
    pub fn has_larger(&mut self, id: TypeId) -> bool {
        let compiled = self.compiled(id);
        compiled.larger.is_some() || compiled.vptr.is_some()
    }

    /// The type of the value in a block, by its vtable or by the size of the block.
    fn exact(&self, compiled: &Compiled, bytes: &[u8]) -> Option<TypeId> {
        if let Some((larger, id)) = compiled.larger {
            return (bytes.len() as u64 >= larger).then_some(id);
        }
        let at = usize::try_from(compiled.vptr?).ok()?;
        let vptr = u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?);
        let entry = self.vtables.get(vptr).filter(|entry| entry.offset == at as u64)?;
        entry.block(slots::Counted::No)
    }

    fn content(&mut self, contains: BlockType) -> Option<Arc<Compiled>> {
        match contains {
            BlockType::Bytes => None,
            BlockType::Table(id) => Some(self.entry(id)),
            BlockType::One(id)
            | BlockType::Elements(id)
            | BlockType::CountedElements(id)
            | BlockType::SharedElements(id) => Some(self.compiled(id)),
        }
    }

    fn compiled(&mut self, id: TypeId) -> Arc<Compiled> {
        let at = id.0 as usize;
        if let Some(Some(compiled)) = self.types.get(at) {
            return compiled.clone();
        }
        let compiled = self.compiler.compile(id);
        self.types.resize(self.types.len().max(at + 1), None);
        self.types[at] = Some(compiled.clone());
        compiled
    }

    fn entry(&mut self, slot: TypeId) -> Arc<Compiled> {
        if let Some(compiled) = self.entries.get(&slot) {
            return compiled.clone();
        }
        let compiled = Arc::new(models::entry(&mut self.compiler, slot));
        self.entries.insert(slot, compiled.clone());
        compiled
    }

    fn walk<'w>(
        &'w mut self,
        address: u64,
        bytes: &'w [u8],
        image: &'w CoreImage,
        each: &'w mut dyn FnMut(Reference<'_>),
    ) -> Walk<'w> {
        self.path.clear();
        Walk { bytes, address, image, vtables: &self.vtables, path: &mut self.path, each }
    }
}
