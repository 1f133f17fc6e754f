//! Types of values by the address of their vtable in the process.

use super::slots::Counted;
use stackglass_layouts::{Layouts, TypeId};

/// The types of one vtable.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    address: u64,
    type_id: TypeId,
    /// `RcInner` and `ArcInner` of the type, if the program has them.
    in_rc: Option<TypeId>,
    in_arc: Option<TypeId>,
    /// Where the pointer to the vtable lies in a C++ object.
    pub offset: u64,
}

/// Vtables, sorted by address.
#[derive(Clone, Debug, Default)]
pub(super) struct Vtables(Vec<Entry>);

impl Vtables {
    /// Adds those of a module whose addresses in the process are `bias` above those in its file.
    pub fn load(&mut self, layouts: &Layouts, module: usize, bias: u64) {
        let counted = |inner: &str, name: &str| layouts.by_name(&format!("{inner}<{name}>"));
        self.0.extend(layouts.module(module).vtables.iter().map(|vtable| {
            let name = &layouts.get(vtable.type_id).name;
            Entry {
                address: vtable.address.wrapping_add(bias),
                type_id: vtable.type_id,
                in_rc: counted("alloc::rc::RcInner", name).or_else(|| counted("alloc::rc::RcBox", name)),
                in_arc: counted("alloc::sync::ArcInner", name),
                offset: vtable.offset,
            }
        }));
        self.0.sort_by_key(|entry| entry.address);
    }

    /// The vtable at an address.
    pub fn get(&self, address: u64) -> Option<Entry> {
        let at = self.0.binary_search_by_key(&address, |entry| entry.address).ok()?;
        Some(self.0[at])
    }
}

impl Entry {
    /// The type of the block that holds such a value.
    pub fn block(&self, counted: Counted) -> Option<TypeId> {
        match counted {
            Counted::No => Some(self.type_id),
            Counted::Rc => self.in_rc,
            Counted::Arc => self.in_arc,
        }
    }
}
