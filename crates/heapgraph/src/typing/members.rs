//! Structs that contain a struct as a member: C programs point to a member, often the first, and compute from it where the whole
//! struct is (`container_of`, intrusive lists, base structs).

use foldhash::HashMap;
use stackglass_layouts::{Layouts, Shape, TypeId};

/// Deepest nesting of structs that is followed.
const DEPTH: usize = 8;
/// Most members of struct types in one struct, nested ones included.
const MOST_MEMBERS: usize = 256;
/// Size of the largest struct that is examined.
const LARGEST: u64 = 1 << 20;

/// Where each struct is a member of others.
pub(super) struct Members {
    /// By type of the member: its offset in the outer struct, and the type of that struct.
    around: HashMap<TypeId, Vec<(u64, TypeId)>>,
}

impl Members {
    pub fn new(layouts: &Layouts) -> Members {
        let mut around: HashMap<TypeId, Vec<(u64, TypeId)>> = HashMap::default();
        let mut open = Vec::new();
        for outer in (0..layouts.len() as u32).map(TypeId) {
            if !(1..=LARGEST).contains(&layouts.get(outer).size) {
                continue;
            }
            open.push((outer, 0u64, 0));
            let mut left = MOST_MEMBERS;
            while let Some((id, offset, depth)) = open.pop() {
                let Shape::Struct(fields) = &layouts.get(id).shape else { continue };
                for field in fields {
                    let is_struct = matches!(layouts.get(field.type_id).shape, Shape::Struct(_));
                    if !is_struct || depth == DEPTH || left == 0 {
                        continue;
                    }
                    left -= 1;
                    let at = offset.saturating_add(field.offset);
                    around.entry(field.type_id).or_default().push((at, outer));
                    open.push((field.type_id, at, depth + 1));
                }
            }
        }
        Members { around }
    }

    /// Structs that have a member of this type at this offset.
    pub fn around(&self, member: TypeId, at: u64) -> impl Iterator<Item = TypeId> + '_ {
        let around = self.around.get(&member).map(Vec::as_slice).unwrap_or_default();
        around.iter().filter(move |(offset, _)| *offset == at).map(|(_, outer)| *outer)
    }
}
