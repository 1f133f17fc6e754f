//! Values in the process: an address with a type.

use stackglass_layouts::{Field, Layout, Layouts, Shape, TypeId, Variant};
use stackglass_process_view::pages::Pages;

/// Lowest address that a pointer may hold.
const LOWEST: u64 = 4096;

/// A value in the process.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Value {
    pub type_id: TypeId,
    pub address: u64,
}

impl Value {
    /// A field of it. `None` if its address is not valid.
    pub fn part(self, field: &Field) -> Option<Value> {
        Some(Value { type_id: field.type_id, address: self.address.checked_add(field.offset)? })
    }
}

/// Reads values.
pub(crate) struct Values<'a> {
    pub layouts: &'a Layouts,
    pub pages: Pages<'a>,
}

impl<'a> Values<'a> {
    pub fn layout(&self, type_id: TypeId) -> &'a Layout {
        self.layouts.get(type_id)
    }

    pub fn name(&self, value: Value) -> &'a str {
        &self.layout(value.type_id).name
    }

    /// A field of a struct by its name.
    pub fn field(&self, value: Value, name: &str) -> Option<Value> {
        let Shape::Struct(fields) = &self.layout(value.type_id).shape else { return None };
        let field = fields.iter().find(|field| &*field.name == name)?;
        value.part(field)
    }

    /// A field of a field.
    pub fn path(&self, value: Value, names: &[&str]) -> Option<Value> {
        names.iter().try_fold(value, |value, name| self.field(value, name))
    }

    /// A word.
    pub fn word(&self, value: Value) -> Option<u64> {
        self.pages.word(value.address)
    }

    /// What a pointer leads to. Structs around it, such as `NonNull` and `Arc`, are looked into: their first pointer counts.
    pub fn target(&self, value: Value) -> Option<Value> {
        self.target_within(value, 8)
    }

    fn target_within(&self, value: Value, depth: u32) -> Option<Value> {
        match &self.layout(value.type_id).shape {
            Shape::Pointer { target } => {
                let address = self.word(value).filter(|address| *address >= LOWEST)?;
                Some(Value { type_id: (*target)?, address })
            }
            Shape::Struct(fields) if depth > 0 => {
                fields.iter().find_map(|field| self.target_within(value.part(field)?, depth - 1))
            }
            // `Option<NonNull<T>>`: the value of `Some`.
            Shape::Enum { .. } if depth > 0 => {
                let variant = self.active(value)?.1;
                variant.fields.iter().find_map(|field| self.target_within(value.part(field)?, depth - 1))
            }
            _ => None,
        }
    }

    /// The type behind a pointer, also one in a struct.
    pub fn pointed_type(&self, type_id: TypeId) -> Option<TypeId> {
        match &self.layout(type_id).shape {
            Shape::Pointer { target } => *target,
            Shape::Struct(fields) if fields.len() == 1 => self.pointed_type(fields[0].type_id),
            _ => None,
        }
    }

    /// The variant that an enum has now, and its index. `None` also if its tag has no valid value.
    pub fn active(&self, value: Value) -> Option<(usize, &'a Variant)> {
        let Shape::Enum { tag, variants } = &self.layout(value.type_id).shape else { return None };
        let Some((offset, size)) = tag else { return variants.first().map(|variant| (0, variant)) };
        let tag = self.pages.number(value.address.checked_add(*offset)?, *size)?;
        let has = |variant: &Variant| match &variant.values {
            Some(values) => values.iter().any(|range| range.contains(&tag)),
            None => false,
        };
        let position = variants.iter().position(has);
        let position = position.or_else(|| variants.iter().position(|variant| variant.values.is_none()))?;
        Some((position, &variants[position]))
    }

    /// Looks through structs of one part, such as `UnsafeCell`, to the enum or struct inside.
    pub fn unwrapped(&self, mut value: Value) -> Value {
        for _ in 0..8 {
            let layout = self.layout(value.type_id);
            let Shape::Struct(fields) = &layout.shape else { break };
            let whole = fields
                .iter()
                .find(|field| self.layout(field.type_id).size == layout.size && field.offset == 0);
            let Some(whole) = whole else { break };
            value.type_id = whole.type_id;
        }
        value
    }

    /// An element by its number.
    pub fn element(&self, first: Value, number: u64) -> Option<Value> {
        let offset = number.checked_mul(self.layout(first.type_id).size)?;
        Some(Value { address: first.address.checked_add(offset)?, ..first })
    }

    /// The first element of a `Vec`, and the number of elements.
    pub fn vector(&self, value: Value, element: TypeId) -> Option<(Value, u64)> {
        let first = self.target(self.field(value, "buf")?)?;
        let count = self.word(self.field(value, "len")?)?;
        Some((Value { type_id: element, ..first }, count))
    }

    /// Pointer and number of elements of a boxed slice or reference to one.
    pub fn slice(&self, value: Value) -> Option<(Value, u64)> {
        let Shape::Struct(fields) = &self.layout(value.type_id).shape else { return None };
        let pointer = fields.iter().find(|field| &*field.name == "data_ptr")?;
        let Shape::Pointer { target: Some(element) } = self.layout(pointer.type_id).shape else {
            return None;
        };
        let length = self.field(value, "length")?;
        let address = self.pages.word(value.address.checked_add(pointer.offset)?)?;
        Some((Value { type_id: element, address }, self.word(length)?))
    }
}
