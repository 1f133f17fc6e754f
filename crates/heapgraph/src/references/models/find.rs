//! Finds fields inside of a library's types, however deep they are wrapped.

use crate::references::compile::{Compiler, base};
use stackglass_layouts::{Field, Layout, Layouts, Shape, TypeId};

/// Wrappers are not deeper.
const DEPTH: usize = 12;

/// A type argument.
pub(super) fn argument(layout: &Layout, name: &str) -> Option<TypeId> {
    layout.arguments.iter().find(|argument| &*argument.0 == name).map(|argument| argument.1)
}

/// Offset and type of the field with this name, in the value or in structs within it.
pub(super) fn named(layouts: &Layouts, layout: &Layout, name: &str) -> Option<(u64, TypeId)> {
    named_within(layouts, layout, name, DEPTH)
}

fn named_within(layouts: &Layouts, layout: &Layout, name: &str, depth: usize) -> Option<(u64, TypeId)> {
    let (Shape::Struct(fields) | Shape::Union(fields)) = &layout.shape else { return None };
    if let Some(field) = fields.iter().find(|field| &*field.name == name) {
        return Some((field.offset, field.type_id));
    }
    let depth = depth.checked_sub(1)?;
    fields.iter().find_map(|field| {
        let (offset, id) = named_within(layouts, layouts.get(field.type_id), name, depth)?;
        Some((field.offset.checked_add(offset)?, id))
    })
}

/// Offset of the word-sized number with this name.
pub(super) fn number(layouts: &Layouts, layout: &Layout, name: &str) -> Option<u64> {
    let (offset, id) = named(layouts, layout, name)?;
    let (inner, size) = plain(layouts, id)?;
    (size == 8).then_some(offset.checked_add(inner)?)
}

/// Offset and size of the only number in a value.
pub(super) fn plain(layouts: &Layouts, id: TypeId) -> Option<(u64, u64)> {
    let (offset, id) = unwrapped(layouts, id, |layout| !matches!(layout.shape, Shape::Struct(_)))?;
    let layout = layouts.get(id);
    (layout.shape == Shape::Plain && layout.size <= 16).then_some((offset, layout.size))
}

/// Offset of the only thin pointer in a value, and its target.
pub(super) fn thin_pointer(layouts: &Layouts, id: TypeId) -> Option<(u64, Option<TypeId>)> {
    let (offset, id) = unwrapped(layouts, id, |layout| !matches!(layout.shape, Shape::Struct(_)))?;
    let Shape::Pointer { target } = layouts.get(id).shape else { return None };
    Some((offset, target))
}

/// The value in structs with one field of any size.
pub(super) fn unwrapped(
    layouts: &Layouts,
    id: TypeId,
    found: impl Fn(&Layout) -> bool,
) -> Option<(u64, TypeId)> {
    let (mut id, mut offset) = (id, 0u64);
    for _ in 0..DEPTH {
        let layout = layouts.get(id);
        if found(layout) {
            return Some((offset, id));
        }
        let field = only_field(layouts, layout)?;
        offset = offset.checked_add(field.offset)?;
        id = field.type_id;
    }
    None
}

/// The only field that is not empty.
fn only_field<'l>(layouts: &Layouts, layout: &'l Layout) -> Option<&'l Field> {
    let (Shape::Struct(fields) | Shape::Union(fields)) = &layout.shape else { return None };
    let mut sized = fields.iter().filter(|field| layouts.get(field.type_id).size > 0);
    let field = sized.next()?;
    sized.next().is_none().then_some(field)
}

/// The value that `MaybeUninit` and cells hold, if it begins where they begin.
pub(super) fn initialized(compiler: &Compiler<'_>, id: TypeId) -> TypeId {
    let layouts = compiler.layouts;
    let mut id = id;
    for _ in 0..DEPTH {
        let layout = layouts.get(id);
        let wraps = matches!(
            base(&layout.name),
            "core::mem::maybe_uninit::MaybeUninit"
                | "core::mem::manually_drop::ManuallyDrop"
                | "core::mem::maybe_dangling::MaybeDangling"
                | "core::cell::UnsafeCell"
        );
        match only_field(layouts, layout).filter(|field| wraps && field.offset == 0) {
            Some(field) => id = field.type_id,
            None => break,
        }
    }
    id
}
