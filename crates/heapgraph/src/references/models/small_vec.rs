//! `smallvec::SmallVec` 1.x: its capacity tells whether the elements lie in the value.

use super::find::{argument, number, thin_pointer};
use crate::references::compile::{Compiler, field};
use crate::references::reference::Hold;
use crate::references::slots::{Compiled, Condition, Count, If, Kind, Op, Repeat, Slot};
use stackglass_layouts::{BlockType, Field, Layout, Layouts, Shape};

/// Where the parts lie: inline elements, pointer, length.
struct Parts {
    inline: u64,
    pointer: u64,
    length: u64,
}

pub(super) fn small_vec(compiler: &mut Compiler<'_>, layout: &Layout) -> Option<Compiled> {
    let layouts = compiler.layouts;
    let Shape::Array { element, count } = layouts.get(argument(layout, "A")?).shape else { return None };
    let capacity = field(layout, "capacity").and_then(|_| number(layouts, layout, "capacity"))?;
    let data = field(layout, "data")?;
    let parts = parts(layouts, layouts.get(data.type_id))?;
    let at = |offset: u64| data.offset.checked_add(offset);
    let compiled = compiler.compile(element);
    if compiled.size == 0 {
        return None;
    }
    let kind = Kind::Vec { capacity, length: Some(at(parts.length)?), size: compiled.size };
    let on_heap = Op::Slot(Slot {
        name: "".into(),
        base: 0,
        pointer: at(parts.pointer)?,
        hold: Hold::Owns,
        contains: Some(BlockType::Elements(element)),
        text: false,
        kind,
    });
    // Up to the number of elements that fit into the value, the capacity is the length.
    let inline = Op::Repeat(Repeat {
        name: "".into(),
        offset: at(parts.inline)?,
        stride: compiled.size,
        count: Count::Field { offset: capacity, size: 8, more: 0, limit: count },
        ops: compiled.ops.clone(),
    });
    let otherwise = if compiled.ops.is_empty() { Vec::new() } else { vec![inline] };
    let condition = Condition::Above { offset: capacity, limit: count };
    let ops = vec![Op::If(If { condition, then: vec![on_heap], otherwise })];
    Some(Compiled { ops, incomplete: compiled.incomplete, ..Compiled::default() })
}

/// The data is a union, or an enum whose tag only repeats what the capacity tells.
fn parts(layouts: &Layouts, data: &Layout) -> Option<Parts> {
    let pointer = |field: &Field| field.offset.checked_add(thin_pointer(layouts, field.type_id)?.0);
    match &data.shape {
        Shape::Union(fields) => {
            let named = |name| fields.iter().find(|field| &*field.name == name);
            let heap = named("heap")?;
            let pair = layouts.get(heap.type_id);
            Some(Parts {
                inline: named("inline")?.offset,
                pointer: heap.offset.checked_add(pointer(field(pair, "__0")?)?)?,
                length: heap.offset.checked_add(field(pair, "__1")?.offset)?,
            })
        }
        Shape::Enum { variants, .. } => {
            let named = |name| variants.iter().find(|variant| &*variant.name == name);
            let (inline, heap) = (named("Inline")?, named("Heap")?);
            let part = |name| heap.fields.iter().find(|field| &*field.name == name);
            Some(Parts {
                inline: inline.fields.first()?.offset,
                pointer: pointer(part("ptr")?)?,
                length: part("len")?.offset,
            })
        }
        _ => None,
    }
}
