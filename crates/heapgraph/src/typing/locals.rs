//! Types of blocks by the local variables on stacks.
//!
//! Debug information says where a variable is, but not whether its value is valid: it may not be initialized yet, or may be moved
//! away or destroyed, and its block may have another owner now. So a claim counts only if the contents of the block agree with
//! it. A block without pointers agrees with any claim: one counts only if no memory of unknown type has the address of the block.
//!
//! References and pointers in variables lead to further values, mostly in outer frames. These count as variables do.

use super::fit::{Exactness, fits};
use super::propagation::{Pointer, Propagation, Soundness, Source, Trust};
use crate::references::{BlockType, Extent, Hold, Reference};
use crate::window::Window;
use foldhash::{HashMap, HashSet};
use stackglass_layouts::{LocalPlace, TypeId};
use stackglass_process_view::locals;

/// Most values that are followed.
const MOST_VALUES: usize = 1 << 16;
/// Largest value on a stack.
const LARGEST: u64 = 1 << 20;

/// The type that a variable gives to a block.
struct Claim {
    block: usize,
    contains: BlockType,
    extent: Extent,
    /// Whether it is text.
    text: bool,
}

impl Propagation<'_> {
    /// Spreads the types of local variables.
    pub(super) fn locals(&mut self, trust: Trust) {
        let (claims, pointers) = self.claims();
        if trust == Trust::All {
            self.source = Source::LocalConvention;
            for pointer in pointers {
                self.pointers.push(pointer);
                self.follow_pointers(trust);
            }
            self.follow_pending(trust);
            return;
        }
        let mut alike = Vec::new();
        for claim in claims {
            match self.soundness(claim.block, claim.contains, claim.extent) {
                Soundness::Pointers => self.add_claim(&claim),
                Soundness::NoPointers | Soundness::Empty => alike.push(claim),
                Soundness::Wrong => {}
            }
        }
        self.follow_pending(trust);
        alike.retain(|claim| self.contents[claim.block].is_none() && self.is_text_as_claimed(claim));
        self.retain_unmentioned(&mut alike);
        alike.iter().for_each(|claim| self.add_claim(claim));
        self.follow_pending(trust);
    }

    fn add_claim(&mut self, claim: &Claim) {
        self.source = Source::Local;
        self.add(claim.block, claim.contains, claim.extent);
    }

    /// What owners in local variables say, and pointers of C.
    fn claims(&mut self) -> (Vec<Claim>, Vec<Pointer>) {
        let layouts = self.evidence.layouts;
        let mut values: Vec<(LocalPlace, TypeId)> = Vec::new();
        let mut seen: HashSet<(u64, TypeId)> = HashSet::default();
        for root in self.evidence.roots {
            for local in &root.locals {
                let is_new = match local.place {
                    LocalPlace::Memory(address) => seen.insert((address, local.type_id)),
                    LocalPlace::Bytes(_) => true,
                };
                if is_new && values.len() < MOST_VALUES {
                    values.push((local.place.clone(), local.type_id));
                }
            }
        }
        let (mut claims, mut plain) = (Vec::new(), Vec::new());
        let mut next = 0;
        while next < values.len() {
            let (place, type_id) = values[next].clone();
            next += 1;
            if !self.references.has_pointers(BlockType::One(type_id)) {
                continue;
            }
            let mut found = Vec::new();
            let image = self.evidence.image;
            let (address, bytes) = locals::value(&place, type_id, layouts, |address, size| {
                self.memory.read(address, size.min(LARGEST))
            });
            self.references.of_value(type_id, address, bytes, image, &mut |reference: Reference<'_>| {
                found.push((Pointer::from_reference(&reference), reference.text));
            });
            for (pointer, text) in found {
                match (pointer.hold, pointer.contains) {
                    (Hold::Owns, Some(contains)) => claims.extend(self.claim(&pointer, contains, text)),
                    (Hold::Refers, contains) => {
                        if let Some(BlockType::One(id)) = contains
                            && values.len() < MOST_VALUES
                            && image.mapping(pointer.target).is_some_and(|mapping| mapping.writable)
                            && seen.insert((pointer.target, id))
                        {
                            values.push((LocalPlace::Memory(pointer.target), id));
                        }
                        plain.push(pointer);
                    }
                    _ => {}
                }
            }
        }
        (claims, plain)
    }

    /// A claim, if the sizes agree.
    fn claim(&mut self, pointer: &Pointer, contains: BlockType, text: bool) -> Option<Claim> {
        let (block, size) = self.block_at(pointer.target)?;
        let extent = pointer.extent;
        let contains = self.references.fitting(contains, size);
        let is_within = match (contains, extent.elements, extent.capacity) {
            (BlockType::Elements(_) | BlockType::Bytes, Some(elements), Some(capacity)) => {
                elements <= capacity
            }
            _ => true,
        };
        let exactness = self.evidence.exactness(block, Exactness::Rest);
        let fits = is_within && fits(self.evidence.layouts, contains, extent, size, exactness);
        fits.then_some(Claim { block, contains, extent, text })
    }

    fn is_text_as_claimed(&mut self, claim: &Claim) -> bool {
        let Some(length) = claim.extent.elements.filter(|_| claim.text) else { return true };
        let address = self.evidence.blocks.addresses[claim.block];
        let bytes = self.memory.read(address, length.min(LARGEST));
        // A character may be cut at the end.
        bytes.len() as u64 == length.min(LARGEST)
            && std::str::from_utf8(bytes).map_or_else(|error| error.error_len().is_none(), |_| true)
    }

    /// Keeps the claims on blocks to which no word of blocks of unknown type leads.
    fn retain_unmentioned(&mut self, claims: &mut Vec<Claim>) {
        let blocks = self.evidence.blocks;
        let mut mentioned: HashMap<u64, bool> =
            claims.iter().map(|claim| (blocks.addresses[claim.block], false)).collect();
        let (Some(&lowest), Some(&highest)) = (mentioned.keys().min(), mentioned.keys().max()) else {
            return;
        };
        let mut window = Window::new(self.evidence.image);
        for index in 0..blocks.len() {
            if self.contents[index].is_some() {
                continue;
            }
            let range = blocks.addresses[index]..blocks.end(index);
            window.pieces(range, &mut |_, bytes| {
                for bytes in bytes.chunks_exact(8) {
                    let word = u64::from_le_bytes(bytes.try_into().unwrap_or_default());
                    if (lowest..=highest).contains(&word)
                        && let Some(mentioned) = mentioned.get_mut(&word)
                    {
                        *mentioned = true;
                    }
                }
            });
        }
        claims.retain(|claim| !mentioned[&blocks.addresses[claim.block]]);
    }
}
