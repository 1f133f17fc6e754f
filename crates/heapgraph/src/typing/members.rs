//! Structs that contain a struct as a member: C programs point to a member, often the first, and compute from it where the whole
//! struct is (`container_of`, intrusive lists, base structs).

use foldhash::{HashMap, HashSet};
use stackglass_layouts::{Layouts, Shape, TypeId};

/// Deepest nesting of structs that is followed.
const DEPTH: usize = 8;
/// Most members of struct types in one struct, nested ones included.
const MOST_MEMBERS: usize = 256;
/// A struct is a member of at most so many others, if one of them can be told by its size.
const MOST_OUTER: usize = 16;
/// Size of the largest struct that is examined.
const LARGEST: u64 = 1 << 20;

/// Where each struct is a member of others.
pub(super) struct Members {
    /// By type of the member: its offset in the outer struct, and the type of that struct.
    around: HashMap<TypeId, Vec<(u64, TypeId)>>,
    /// Members of more than [`MOST_OUTER`] others.
    common: HashSet<TypeId>,
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
        // Outer structs come one after the other.
        let outer = |at: &[(u64, TypeId)]| 1 + at.windows(2).filter(|pair| pair[0].1 != pair[1].1).count();
        let common =
            around.iter().filter(|(_, at)| outer(at) > MOST_OUTER).map(|(member, _)| *member).collect();
        Members { around, common }
    }

    /// Whether so many structs have a member of this type that it is a base struct of objects of any kind, such as `PyObject`. The size of
    /// a block does not tell then which of them it is: other programs and libraries have more.
    pub fn is_common_base(&self, member: TypeId) -> bool {
        self.common.contains(&member)
    }

    /// Structs that have a member of this type at this offset.
    pub fn around(&self, member: TypeId, at: u64) -> impl Iterator<Item = TypeId> + '_ {
        let around = self.around.get(&member).map(Vec::as_slice).unwrap_or_default();
        around.iter().filter(move |(offset, _)| *offset == at).map(|(_, outer)| *outer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackglass_layouts::{Field, Layout};

    fn structure(layouts: &mut Layouts, name: String, fields: Vec<Field>) -> TypeId {
        let (shape, name) = (Shape::Struct(fields), std::sync::Arc::<str>::from(name));
        layouts.push(Layout { name, size: 16, shape, arguments: Vec::new(), partial: false })
    }

    #[test]
    fn a_base_of_many_structs_is_told_from_one_of_a_few() {
        let mut layouts = Layouts::default();
        let bases = ["few", "many"].map(|name| structure(&mut layouts, name.into(), Vec::new()));
        for (base, outer) in [(bases[0], MOST_OUTER), (bases[1], MOST_OUTER + 1)] {
            for number in 0..outer {
                let field = |offset| Field { name: "base".into(), offset, type_id: base };
                structure(&mut layouts, format!("{base:?} {number}"), vec![field(0), field(8)]);
            }
        }
        let members = Members::new(&layouts);
        assert_eq!(bases.map(|base| members.is_common_base(base)), [false, true]);
        assert_eq!(members.around(bases[1], 8).count(), MOST_OUTER + 1);
    }
}
