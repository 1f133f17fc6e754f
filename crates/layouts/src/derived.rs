//! Types without an entry of their own name: pointers and arrays of C, arrays of Rust.

use super::{Layout, Shape, TypeId};
use foldhash::HashMap;
use std::sync::Arc;

/// What a type is made of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Derived {
    Pointer { target: Option<TypeId>, size: u64 },
    Array { element: TypeId, count: u64, rust: bool },
    Function,
    Unknown { size: u64 },
}

/// The derived types. Their ids follow those of the others.
#[derive(Debug)]
pub(super) struct DerivedTypes {
    first: u32,
    ids: HashMap<Derived, TypeId>,
    layouts: Vec<Layout>,
    /// Bytes of names that may be added.
    names: usize,
}

impl DerivedTypes {
    /// The first has the id `first`; their names have as many bytes as `names` at most.
    pub fn new(first: u32, names: usize) -> DerivedTypes {
        DerivedTypes { first, ids: HashMap::default(), layouts: Vec::new(), names }
    }

    /// The id of a type. `of` has the name and the size of the type that it is made of, if that is no derived type.
    pub fn id(&mut self, derived: Derived, of: impl Fn(TypeId) -> (Arc<str>, u64)) -> TypeId {
        if let Some(known) = self.ids.get(&derived) {
            return *known;
        }
        let inner = |id: TypeId| match id.0.checked_sub(self.first) {
            Some(at) => {
                let layout = &self.layouts[at as usize];
                (layout.name.clone(), layout.size)
            }
            None => of(id),
        };
        let (name, size, shape) = match derived {
            Derived::Pointer { target, size } => {
                let name = target.map_or_else(|| "void".into(), |target| inner(target).0);
                (format!("{name}*"), size, Shape::Pointer { target })
            }
            Derived::Array { element, count, rust } => {
                let (name, size) = inner(element);
                let name = match (rust, count) {
                    (true, 0) => format!("[{name}]"),
                    (true, _) => format!("[{name}; {count}]"),
                    (false, 0) => format!("{name}[]"),
                    (false, _) => format!("{name}[{count}]"),
                };
                (name, size.saturating_mul(count), Shape::Array { element, count })
            }
            Derived::Function => ("fn".to_owned(), 0, Shape::Plain),
            Derived::Unknown { size } => ("?".to_owned(), size, Shape::Plain),
        };
        let id = TypeId(self.first.saturating_add(self.layouts.len() as u32));
        let name = match self.names.checked_sub(name.len()) {
            Some(rest) => {
                self.names = rest;
                name
            }
            None => "?".to_owned(),
        };
        let arguments = Vec::new();
        self.layouts.push(Layout { name: name.into(), size, shape, arguments, partial: false });
        self.ids.insert(derived, id);
        id
    }

    /// The id of functions, if any type refers to one.
    pub fn function(&self) -> Option<TypeId> {
        self.ids.get(&Derived::Function).copied()
    }

    /// The layouts in the order of their ids.
    pub fn into_layouts(self) -> Vec<Layout> {
        self.layouts
    }
}
