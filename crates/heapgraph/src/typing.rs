//! Types of blocks that the recorder does not know: of all, if allocations were not recorded, and of those of C and C++ that
//! have an allocation site only.
//!
//! Some types are known: the recorder has those of blocks, debug information those of variables, and vtable pointers identify
//! objects. From there, types propagate along pointers, as far as the sizes of blocks agree:
//!
//! 1. What the recorder says.
//! 2. `propagation`: owning pointers of variables, and C++ objects by their vtables.
//! 3. `locals`: owning pointers of local variables on stacks, as far as they look valid.
//! 4. `vtables`: `Box<dyn Trait>` in blocks that have no type yet.
//! 5. Pointers of C. They own by convention only, so that all of them count.
//!
//! A later source does not change what an earlier one says.
//!
//! A block to which pointers give different types has none.

mod beginnings;
mod evidence;
mod fit;
mod locals;
mod members;
mod memory;
mod propagation;
mod vtables;

pub use beginnings::tell_apart;
pub use evidence::Evidence;

use crate::blocks::{Blocks, SiteId};
use crate::references::BlockType;
use crate::site::Site;
use stackglass_layouts::Layouts;
use stackglass_profile::heap_graph::{AllocationStack, NodeKind};
use std::collections::HashMap;

/// Types of blocks.
#[derive(Clone, Debug, Default)]
pub struct Typing {
    /// Of each block: what it contains, if that is known.
    pub contents: Vec<Option<BlockType>>,
    /// Blocks whose type is known.
    pub typed_blocks: u64,
    /// Their bytes.
    pub typed_bytes: u64,
    /// Bytes of all blocks.
    pub bytes: u64,
    /// Blocks to which pointers give different types.
    pub conflicts: u64,
}

/// Whether a block of a known type can be what a pointer claims.
pub(crate) fn agree(layouts: &Layouts, known: BlockType, claimed: BlockType) -> bool {
    propagation::merge(layouts, known, claimed) == Some(known)
}

/// Infers types of blocks.
pub fn infer(evidence: Evidence<'_>) -> Typing {
    let (contents, conflicts) = propagation::propagate(evidence);
    let mut typing = Typing { contents, conflicts, ..Typing::default() };
    for (index, contains) in typing.contents.iter().enumerate() {
        let size = evidence.blocks.size(index);
        typing.bytes += size;
        if contains.is_some() {
            typing.typed_blocks += 1;
            typing.typed_bytes += size;
        }
    }
    typing
}

impl Typing {
    /// Adds a site for each type that was inferred, and for each site where such blocks were allocated. Blocks get the numbers of
    /// theirs. The first site is that of blocks of which nothing is known.
    pub fn add_sites(&self, layouts: &Layouts, blocks: &mut Blocks, sites: &mut Vec<Site>) {
        if sites.is_empty() {
            let (name, kind) = ("(unknown)".to_owned(), NodeKind::Native);
            sites.push(Site { name, kind, contains: None, allocated_by: AllocationStack::UNKNOWN });
        }
        let recorded = sites.len();
        let mut known: HashMap<(SiteId, BlockType), SiteId> = HashMap::new();
        for (contains, site) in self.contents.iter().zip(&mut blocks.sites) {
            if site.0 as usize >= recorded {
                *site = SiteId(0);
            }
            let Some(contains) = *contains else { continue };
            if sites[site.0 as usize].contains.is_some() {
                continue;
            }
            *site = *known.entry((*site, contains)).or_insert_with(|| {
                let kind = match contains {
                    BlockType::One(_) => NodeKind::Object,
                    BlockType::Bytes => NodeKind::String,
                    _ => NodeKind::Array,
                };
                let name = layouts.block_name(contains);
                let allocated_by = sites[site.0 as usize].allocated_by;
                sites.push(Site { name, kind, contains: Some(contains), allocated_by });
                SiteId(sites.len() as u32 - 1)
            });
        }
    }

    /// How much has a type, for the user. `can_record`: allocations of such a program can be recorded, for all types.
    pub fn remark(&self, can_record: bool) -> String {
        let share = |part: u64, whole: u64| 100.0 * part as f64 / whole.max(1) as f64;
        let advice = match can_record && self.typed_bytes < self.bytes / 2 {
            true => {
                "; for all types, start the program with `stackglass run --allocs`, \
                 and build it with debug information (`debug = 2` in the profile of Cargo.toml, `-g` for C and C++)"
            }
            false => "",
        };
        format!(
            "allocations were not recorded: {:.1} % of blocks and {:.1} % of bytes have a type, by variables and vtables{advice}",
            share(self.typed_blocks, self.contents.len() as u64),
            share(self.typed_bytes, self.bytes),
        )
    }
}
