//! Types of blocks by pointers to vtables: in C++ objects, and beside pointers of Rust's `Box<dyn Trait>`.

use super::evidence::Evidence;
use super::fit::{Exactness, is_size_of};
use super::memory::BlockMemory;
use crate::blocks::lookup::Lookup;
use crate::references::BlockType;
use foldhash::HashMap;
use stackglass_layouts::{Layouts, TypeId};
use std::ops::Range;

/// Bytes that are read at once.
const WINDOW: u64 = 1 << 20;

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
                if !vtable.of_class {
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
            let exactness = evidence.exactness(index, Exactness::Rest);
            if is_size_of(layouts.get(class).size, blocks.size(index), exactness) {
                each(index, BlockType::One(class));
            }
        }
    }

    /// The blocks to which a pointer beside a vtable leads, and what they contain. Only blocks of unknown type are searched for
    /// such pairs: the pointers of the others are known.
    ///
    /// A pair may be left over from a value that is gone, and its memory may have another owner. So pairs do not count if
    /// another word leads to the same block.
    pub fn boxes(
        &self,
        evidence: Evidence<'_>,
        lookup: &Lookup,
        contents: &[Option<BlockType>],
    ) -> Vec<(usize, BlockType)> {
        let (Some(lowest), Some(highest)) = (self.types.keys().min(), self.types.keys().max()) else {
            return Vec::new();
        };
        let Evidence { blocks, layouts, roots, .. } = evidence;
        let untyped = || {
            let untyped = contents.iter().enumerate().filter(|(_, contains)| contains.is_none());
            untyped.map(|(index, _)| blocks.addresses[index]..blocks.end(index))
        };
        let mut memory = BlockMemory::new(evidence.image);
        // By address: the vtable and what the block contains, `None` if something else leads there.
        let mut found: HashMap<u64, (u64, Option<(usize, BlockType)>)> = HashMap::default();
        for range in untyped() {
            each_pair(&mut memory, range, &mut |pointer, beside| {
                if !(lowest..=highest).contains(&&beside) || pointer < 4096 {
                    return;
                }
                let Some(&type_id) = self.types.get(&beside) else { return };
                let target = lookup.find(blocks, pointer).filter(|found| found.offset == 0);
                let Some(target) = target.map(|found| found.block.0 as usize) else { return };
                let exactness = evidence.exactness(target, Exactness::Exact);
                if let Some(contains) = boxed(layouts, type_id, blocks.size(target), exactness) {
                    found.entry(pointer).or_insert((beside, Some((target, contains))));
                }
            });
        }
        let other_roots = roots.iter().filter(|root| root.type_id.is_none()).map(|root| root.range.clone());
        for range in untyped().chain(other_roots) {
            if found.is_empty() {
                break;
            }
            each_pair(&mut memory, range, &mut |pointer, beside| {
                if let Some((vtable, contains)) = found.get_mut(&pointer)
                    && *vtable != beside
                {
                    *contains = None;
                }
            });
        }
        let mut found: Vec<(usize, BlockType)> =
            found.into_values().filter_map(|(_, contains)| contains).collect();
        found.sort_unstable_by_key(|(block, _)| *block);
        found
    }
}

/// Calls `each` with each word and the one behind it, which is 0 for the last.
fn each_pair(memory: &mut BlockMemory<'_>, range: Range<u64>, each: &mut dyn FnMut(u64, u64)) {
    let mut before = 0;
    let mut at = range.start;
    while at < range.end {
        let size = (range.end - at).min(WINDOW);
        let bytes = memory.read(at, size);
        for bytes in bytes.chunks_exact(8) {
            let Some(word) = word(bytes) else { break };
            each(std::mem::replace(&mut before, word), word);
        }
        at += size;
    }
    each(before, 0);
}

/// What a block of this size contains to which a `dyn` pointer to a type leads: a value, or one in an `Rc` or `Arc`.
fn boxed(layouts: &Layouts, type_id: TypeId, block: u64, exactness: Exactness) -> Option<BlockType> {
    let layout = layouts.get(type_id);
    let counted = ["alloc::rc::RcInner", "alloc::rc::RcBox", "alloc::sync::ArcInner"]
        .into_iter()
        .filter_map(|inner| layouts.by_name(&format!("{inner}<{}>", layout.name)));
    let mut fitting = std::iter::once(type_id)
        .chain(counted)
        .filter(|id| is_size_of(layouts.get(*id).size, block, exactness));
    let one = fitting.next()?;
    // Small values and their counters may have one size.
    fitting.next().is_none().then_some(BlockType::One(one))
}

fn word(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?))
}
