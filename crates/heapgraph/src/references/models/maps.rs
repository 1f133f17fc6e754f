//! Hash tables and B-trees of Rust: their control bytes and lengths tell which slots hold entries.

use super::find::{argument, initialized, named, number, plain, thin_pointer};
use crate::references::compile::{Compiler, base, field, name_of};
use crate::references::reference::Hold;
use crate::references::slots::{Compiled, Count, Kind, Op, Repeat, Slot, holding, within};
use stackglass_layouts::{BlockType, Field, Layout, Layouts, Shape, TypeId};

pub(super) fn table(compiler: &mut Compiler<'_>, layout: &Layout) -> Option<Compiled> {
    let layouts = compiler.layouts;
    let element = argument(layout, "T")?;
    let (at, control) = named(layouts, layout, "ctrl")?;
    let kind = Kind::Table {
        mask: number(layouts, layout, "bucket_mask")?,
        items: number(layouts, layout, "items")?,
        growth_left: number(layouts, layout, "growth_left")?,
        size: layouts.get(element).size,
    };
    let slot = Slot {
        name: "".into(),
        base: 0,
        pointer: at.checked_add(thin_pointer(layouts, control)?.0)?,
        hold: Hold::Owns,
        contains: Some(BlockType::Table(element)),
        text: false,
        kind,
    };
    Some(Compiled { ops: vec![Op::Slot(slot)], ..Compiled::default() })
}

/// The places of an entry in a hash table.
pub(in crate::references) fn entry(compiler: &mut Compiler<'_>, slot: TypeId) -> Compiled {
    let layout = compiler.layouts.get(slot);
    let compiled = compiler.compile(slot);
    let (Some(key), Some(value)) = (field(layout, "__0"), field(layout, "__1")) else {
        return (*compiled).clone();
    };
    if !layout.name.starts_with('(') {
        return (*compiled).clone();
    }
    let mut ops = Vec::new();
    let is_set = compiler.layouts.get(value.type_id).size == 0;
    for (field, name) in [(key, if is_set { "" } else { "key" }), (value, "value")] {
        ops.extend(within(name, field.offset, &compiler.compile(field.type_id).ops));
    }
    Compiled { ops, ..(*compiled).clone() }
}

/// The root of a tree, or a place in it.
pub(super) fn node_ref(compiler: &mut Compiler<'_>, layout: &Layout) -> Option<Compiled> {
    let layouts = compiler.layouts;
    let node = field(layout, "node")?;
    let (at, leaf) = thin_pointer(layouts, node.type_id)?;
    let leaf = leaf?;
    let height = field(layout, "height").and_then(|_| number(layouts, layout, "height"))?;
    let owns = layout.name.contains("marker::Owned") || layout.name.contains("marker::Dying");
    let slot = Slot {
        name: "".into(),
        base: 0,
        pointer: node.offset.checked_add(at)?,
        hold: if owns { Hold::Owns } else { Hold::Refers },
        contains: Some(BlockType::One(leaf)),
        text: false,
        kind: Kind::Tree { height, internal: internal_of(layouts, leaf) },
    };
    Some(Compiled { ops: vec![Op::Slot(slot)], ..Compiled::default() })
}

/// The type of nodes with children that begin with such a leaf.
fn internal_of(layouts: &Layouts, leaf: TypeId) -> Option<TypeId> {
    let name = name_of(layouts, leaf);
    let arguments = name.strip_prefix("alloc::collections::btree::node::LeafNode")?;
    layouts.by_name(&format!("alloc::collections::btree::node::InternalNode{arguments}"))
}

pub(super) fn leaf(compiler: &mut Compiler<'_>, layout: &Layout) -> Option<Compiled> {
    let layouts = compiler.layouts;
    let parent = field(layout, "parent")?;
    let (length, length_size) = length(layouts, layout)?;
    let (keys, values) = (field(layout, "keys")?, field(layout, "vals")?);
    let parents = within("parent", parent.offset, &compiler.compile(parent.type_id).ops);
    let mut result = Compiled { ops: holding(parents, Hold::Weak), ..Compiled::default() };
    let is_set = layouts.get(values.type_id).size == 0;
    for (array, name) in [(keys, if is_set { "" } else { "key" }), (values, "value")] {
        let (element, capacity) = array_of(layouts, array)?;
        let compiled = {
            let element = initialized(compiler, element);
            compiler.compile(element)
        };
        result.incomplete |= compiled.incomplete && compiled.size > 0;
        if compiled.ops.is_empty() || compiled.size == 0 {
            continue;
        }
        result.ops.push(Op::Repeat(Repeat {
            name: "".into(),
            offset: array.offset,
            stride: compiled.size,
            count: Count::Field { offset: length, size: length_size, more: 0, limit: capacity },
            ops: within(name, 0, &compiled.ops),
        }));
    }
    let own = layouts.by_name(&layout.name);
    if let Some(internal) = own.and_then(|own| internal_of(layouts, own)) {
        result.larger = Some((layouts.get(internal).size, internal));
    }
    Some(result)
}

pub(super) fn internal(compiler: &mut Compiler<'_>, _: TypeId, layout: &Layout) -> Option<Compiled> {
    let layouts = compiler.layouts;
    let data = field(layout, "data")?;
    let leaf = layouts.get(data.type_id);
    if base(&leaf.name) != "alloc::collections::btree::node::LeafNode" {
        return None;
    }
    let (length, length_size) = length(layouts, leaf)?;
    let edges = field(layout, "edges")?;
    let (edge, capacity) = array_of(layouts, edges)?;
    let compiled = {
        let edge = initialized(compiler, edge);
        compiler.compile(edge)
    };
    let leaf = compiler.compile(data.type_id);
    let mut ops = within("", data.offset, &leaf.ops);
    ops.push(Op::Repeat(Repeat {
        name: "edges".into(),
        offset: edges.offset,
        stride: compiled.size,
        count: Count::Field {
            offset: data.offset.checked_add(length)?,
            size: length_size,
            more: 1,
            limit: capacity,
        },
        ops: holding(compiled.ops.clone(), Hold::Owns),
    }));
    Some(Compiled { ops, incomplete: leaf.incomplete, ..Compiled::default() })
}

fn length(layouts: &Layouts, leaf: &Layout) -> Option<(u64, u64)> {
    let field = field(leaf, "len")?;
    let (at, size) = plain(layouts, field.type_id)?;
    Some((field.offset.checked_add(at)?, size))
}

fn array_of(layouts: &Layouts, field: &Field) -> Option<(TypeId, u64)> {
    let Shape::Array { element, count } = layouts.get(field.type_id).shape else { return None };
    Some((element, count))
}
