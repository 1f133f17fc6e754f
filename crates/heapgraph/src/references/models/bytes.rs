//! `bytes::Bytes`: a pointer with its length beside it, into a buffer that several values may share.

use crate::references::compile::{Compiler, field};
use crate::references::slots::{Compiled, Kind, each_slot};
use stackglass_layouts::{BlockType, Layout, Shape};

/// The field `ptr` leads to as many bytes as `len` says. They are often text.
pub(super) fn bytes(compiler: &mut Compiler<'_>, layout: &Layout) -> Option<Compiled> {
    let Shape::Struct(fields) = &layout.shape else { return None };
    let length = field(layout, "len")?.offset;
    let mut compiled = compiler.fields(layout, fields);
    each_slot(&mut compiled.ops, &mut |slot| {
        if &*slot.name == "ptr" {
            slot.kind = Kind::Slice { length: length.wrapping_sub(slot.base) };
            slot.contains = Some(BlockType::Bytes);
            slot.text = true;
        }
    });
    Some(compiled)
}
