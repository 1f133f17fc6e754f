//! Types of blocks by pointers to vtables: in C++ objects, and beside pointers of Rust's `Box<dyn Trait>`.

use super::Evidence;
use super::fit::{Exactness, is_size_of};
use super::memory::BlockMemory;
use crate::blocks::lookup::Lookup;
use crate::references::BlockType;
use foldhash::HashMap;
use stackglass_symbols::layouts::{Layouts, Shape, TypeId};

/// Vtables by their address in the process.
pub(super) struct Vtables {
    /// Classes of C++, whose objects begin with the address.
    classes: HashMap<u64, TypeId>,
    /// Types of Rust.
    types: HashMap<u64, TypeId>,
}

impl Vtables {
    pub fn new(layouts: &Layouts, biases: &[u64]) -> Vtables {
        let mut vtables = Vtables { classes: HashMap::default(), types: HashMap::default() };
        for (module, bias) in biases.iter().enumerate() {
            for vtable in &layouts.module(module).vtables {
                let address = vtable.address.wrapping_add(*bias);
                if !is_polymorphic(layouts, vtable.type_id) {
                    vtables.types.insert(address, vtable.type_id);
                } else if vtable.offset == 0 {
                    vtables.classes.insert(address, vtable.type_id);
                }
            }
        }
        vtables
    }

    /// Calls `each` with the blocks that contain a C++ object with a vtable, and its class.
    pub fn objects(&self, evidence: Evidence<'_>, each: &mut dyn FnMut(usize, BlockType)) {
        if self.classes.is_empty() {
            return;
        }
        let Evidence { image, blocks, layouts, .. } = evidence;
        let mut memory = BlockMemory::new(image);
        for index in 0..blocks.len() {
            let Some(word) = word(memory.read(blocks.addresses[index], 8)) else { continue };
            let Some(&class) = self.classes.get(&word) else { continue };
            if is_size_of(layouts.get(class).size, blocks.sizes[index], Exactness::Rest) {
                each(index, BlockType::One(class));
            }
        }
    }

    /// Calls `each` with the blocks to which a pointer beside a vtable leads, and what they contain. Only blocks of unknown type
    /// are searched for such pairs: the pointers of the others are known.
    pub fn boxes(
        &self,
        evidence: Evidence<'_>,
        lookup: &Lookup,
        contents: &[Option<BlockType>],
        each: &mut dyn FnMut(usize, BlockType),
    ) {
        if self.types.is_empty() {
            return;
        }
        let Evidence { image, blocks, layouts, .. } = evidence;
        let lowest = self.types.keys().copied().min().unwrap_or(0);
        let highest = self.types.keys().copied().max().unwrap_or(0);
        let mut memory = BlockMemory::new(image);
        for (index, contains) in contents.iter().enumerate() {
            if contains.is_some() {
                continue;
            }
            let bytes = memory.read(blocks.addresses[index], blocks.sizes[index]);
            let mut before = 0;
            for bytes in bytes.chunks_exact(8) {
                let Some(word) = word(bytes) else { break };
                let pointer = std::mem::replace(&mut before, word);
                if !(lowest..=highest).contains(&word) || pointer < 4096 {
                    continue;
                }
                let Some(&type_id) = self.types.get(&word) else { continue };
                let Some(found) = lookup.find(blocks, pointer).filter(|found| found.offset == 0) else {
                    continue;
                };
                let target = found.block.0 as usize;
                if let Some(contains) = boxed(layouts, type_id, blocks.sizes[target]) {
                    each(target, contains);
                }
            }
        }
    }
}

/// What a block of this size contains to which a `dyn` pointer to a type leads: a value, or one in an `Rc` or `Arc`.
fn boxed(layouts: &Layouts, type_id: TypeId, block: u64) -> Option<BlockType> {
    let layout = layouts.get(type_id);
    let counted = ["alloc::rc::RcInner", "alloc::rc::RcBox", "alloc::sync::ArcInner"]
        .into_iter()
        .filter_map(|inner| layouts.by_name(&format!("{inner}<{}>", layout.name)));
    let mut fitting = std::iter::once(type_id)
        .chain(counted)
        .filter(|id| is_size_of(layouts.get(*id).size, block, Exactness::Exact));
    let one = fitting.next()?;
    // Small values and their counters may have one size.
    fitting.next().is_none().then_some(BlockType::One(one))
}

/// Whether objects of a class begin with a pointer to its vtable.
fn is_polymorphic(layouts: &Layouts, id: TypeId) -> bool {
    let mut id = id;
    for _ in 0..64 {
        let Shape::Struct(fields) = &layouts.get(id).shape else { return false };
        if fields.iter().any(|field| field.name.starts_with("_vptr")) {
            return true;
        }
        let base = fields.iter().find(|field| {
            let layout = layouts.get(field.type_id);
            field.offset == 0 && (field.name == layout.name || field.name == layout.short_name)
        });
        let Some(base) = base else { return false };
        id = base.type_id;
    }
    false
}

fn word(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?))
}
