//! `Vec`, `VecDeque` and what is made of them. Only the owner of a buffer knows which of its elements are initialized.

use super::find::{argument, named, number, thin_pointer};
use crate::references::compile::{Compiler, field};
use crate::references::reference::Hold;
use crate::references::slots::{Compiled, Kind, Op, Slot, each_slot};
use stackglass_layouts::{BlockType, Layout, Shape};

/// The buffer of a container: where its pointer lies, and what it contains.
struct Buffer {
    pointer: u64,
    capacity: u64,
    contains: BlockType,
    size: u64,
}

fn buffer(compiler: &Compiler<'_>, layout: &Layout, within: Option<&str>) -> Option<Buffer> {
    let layouts = compiler.layouts;
    let element = argument(layout, "T")?;
    let (offset, buffer) = match within {
        Some(name) => {
            let field = field(layout, name)?;
            (field.offset, layouts.get(field.type_id))
        }
        None => (0, layout),
    };
    let (at, pointer) = named(layouts, buffer, "ptr")?;
    Some(Buffer {
        pointer: offset.checked_add(at)?.checked_add(thin_pointer(layouts, pointer)?.0)?,
        capacity: offset.checked_add(number(layouts, buffer, "cap")?)?,
        contains: BlockType::Elements(element),
        size: layouts.get(element).size,
    })
}

fn owner(buffer: &Buffer, kind: Kind) -> Compiled {
    let slot = Slot {
        name: "".into(),
        base: 0,
        pointer: buffer.pointer,
        hold: Hold::Owns,
        contains: Some(buffer.contains),
        text: false,
        kind,
    };
    // Elements without a size need no buffer.
    let ops = if buffer.size > 0 { vec![Op::Slot(slot)] } else { Vec::new() };
    Compiled { ops, ..Compiled::default() }
}

pub(super) fn vec(compiler: &mut Compiler<'_>, layout: &Layout) -> Option<Compiled> {
    let buffer = buffer(compiler, layout, Some("buf"))?;
    let length = field(layout, "len").and_then(|_| number(compiler.layouts, layout, "len"))?;
    let kind = Kind::Vec { capacity: buffer.capacity, length: Some(length), size: buffer.size };
    Some(owner(&buffer, kind))
}

pub(super) fn raw_vec(compiler: &mut Compiler<'_>, layout: &Layout) -> Option<Compiled> {
    let buffer = buffer(compiler, layout, None)?;
    Some(owner(&buffer, Kind::Vec { capacity: buffer.capacity, length: None, size: buffer.size }))
}

pub(super) fn deque(compiler: &mut Compiler<'_>, layout: &Layout) -> Option<Compiled> {
    let buffer = buffer(compiler, layout, Some("buf"))?;
    let field = |name| field(layout, name).and_then(|_| number(compiler.layouts, layout, name));
    let (head, length) = (field("head")?, field("len")?);
    let kind = Kind::Ring { capacity: buffer.capacity, head, length, size: buffer.size };
    Some(owner(&buffer, kind))
}

pub(super) fn into_iter(compiler: &mut Compiler<'_>, layout: &Layout) -> Option<Compiled> {
    let layouts = compiler.layouts;
    let element = argument(layout, "T")?;
    let pointer = |name| {
        let field = field(layout, name)?;
        field.offset.checked_add(thin_pointer(layouts, field.type_id)?.0)
    };
    let size = layouts.get(element).size;
    let buffer = Buffer {
        pointer: pointer("buf")?,
        capacity: field(layout, "cap").and_then(|_| number(layouts, layout, "cap"))?,
        contains: BlockType::Elements(element),
        size,
    };
    let kind =
        Kind::IntoIter { capacity: buffer.capacity, start: pointer("ptr")?, end: pointer("end")?, size };
    Some(owner(&buffer, kind))
}

/// A vector or boxed slice of bytes that is text.
pub(super) fn text(compiler: &mut Compiler<'_>, layout: &Layout) -> Option<Compiled> {
    let Shape::Struct(fields) = &layout.shape else { return None };
    let mut compiled = compiler.fields(layout, fields);
    each_slot(&mut compiled.ops, &mut |slot| {
        slot.text = true;
        slot.contains = Some(BlockType::Bytes);
    });
    Some(compiled)
}
