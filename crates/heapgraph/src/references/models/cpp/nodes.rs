//! Trees, hash tables and lists of nodes.

use super::super::find::{argument, named};
use super::declared::{instance, slot};
use super::vectors::pointer;
use crate::references::compile::{Compiler, field, name_of};
use crate::references::reference::Hold;
use crate::references::slots::{Compiled, Kind, Op, within};
use stackglass_layouts::{BlockType, Layout, TypeId};

/// The value in a node.
fn value(compiler: &mut Compiler<'_>, layout: &Layout) -> Option<Compiled> {
    let (at, storage) = named(compiler.layouts, layout, "_M_storage")?;
    let compiled = compiler.compile(storage);
    let incomplete = compiled.incomplete && compiled.size > 0;
    Some(Compiled { ops: within("", at, &compiled.ops), incomplete, ..Compiled::default() })
}

/// A header within a tree or list, from which it begins.
const HEADER: Kind = Kind::Other { own: 0 };

/// The header of `std::map` and `std::set`.
pub(super) fn tree(compiler: &mut Compiler<'_>, layout: &Layout) -> Option<Compiled> {
    let layouts = compiler.layouts;
    let node = argument(layout, "_Val")
        .and_then(|value| instance(layouts, "std::_Rb_tree_node", name_of(layouts, value)));
    let (at, header) = named(layouts, layout, "_M_header")?;
    let header = layouts.get(header);
    let ops = vec![
        slot("", pointer(layouts, header, "_M_parent")?, Hold::Owns, node, HEADER),
        slot("leftmost", pointer(layouts, header, "_M_left")?, Hold::Refers, node, HEADER),
        slot("rightmost", pointer(layouts, header, "_M_right")?, Hold::Refers, node, HEADER),
    ];
    Some(Compiled { ops: within("", at, &ops), ..Compiled::default() })
}

pub(super) fn tree_node(compiler: &mut Compiler<'_>, id: TypeId, layout: &Layout) -> Option<Compiled> {
    let layouts = compiler.layouts;
    let mut compiled = value(compiler, layout)?;
    for (name, shown, hold) in [
        ("_M_left", "left", Hold::Owns),
        ("_M_right", "right", Hold::Owns),
        ("_M_parent", "parent", Hold::Weak),
    ] {
        let at = pointer(layouts, layout, name)?;
        compiled.ops.push(slot(shown, at, hold, Some(id), Kind::Thin { vptr: None }));
    }
    Some(compiled)
}

/// `std::unordered_map` and others: a list of nodes, and buckets that point into it.
pub(super) fn hash_table(compiler: &mut Compiler<'_>, layout: &Layout) -> Option<Compiled> {
    let layouts = compiler.layouts;
    let value = name_of(layouts, argument(layout, "_Value")?);
    let node = [", true", ", false"]
        .iter()
        .find_map(|cached| instance(layouts, "std::__detail::_Hash_node", &format!("{value}{cached}")));
    let (at, before) = named(layouts, layout, "_M_before_begin")?;
    let first = at.checked_add(pointer(layouts, layouts.get(before), "_M_nxt")?)?;
    let single = field(layout, "_M_single_bucket")?;
    let mut ops = vec![slot("", first, Hold::Owns, node, Kind::Thin { vptr: None })];
    let buckets = pointer(layouts, layout, "_M_buckets")?;
    // Buckets point to the nodes before their first, and hold none.
    let mut buckets = slot("buckets", buckets, Hold::Owns, None, Kind::Other { own: single.offset });
    if let Op::Slot(slot) = &mut buckets {
        slot.contains = Some(BlockType::Bytes);
    }
    ops.push(buckets);
    Some(Compiled { ops, ..Compiled::default() })
}

/// A node that owns the next.
pub(super) fn node(compiler: &mut Compiler<'_>, id: TypeId, layout: &Layout, next: &str) -> Option<Compiled> {
    let mut compiled = value(compiler, layout)?;
    let at = pointer(compiler.layouts, layout, next)?;
    compiled.ops.push(slot("next", at, Hold::Owns, Some(id), Kind::Thin { vptr: None }));
    Some(compiled)
}

pub(super) fn list(compiler: &mut Compiler<'_>, layout: &Layout) -> Option<Compiled> {
    let layouts = compiler.layouts;
    let value = name_of(layouts, argument(layout, "_Tp")?);
    let node = instance(layouts, "std::_List_node", value);
    let (at, header) = named(layouts, layout, "_M_node")?;
    let header = layouts.get(header);
    let ops = vec![
        slot("", pointer(layouts, header, "_M_next")?, Hold::Owns, node, HEADER),
        slot("last", pointer(layouts, header, "_M_prev")?, Hold::Refers, node, HEADER),
    ];
    Some(Compiled { ops: within("", at, &ops), ..Compiled::default() })
}

pub(super) fn list_node(compiler: &mut Compiler<'_>, id: TypeId, layout: &Layout) -> Option<Compiled> {
    let mut compiled = node(compiler, id, layout, "_M_next")?;
    let previous = pointer(compiler.layouts, layout, "_M_prev")?;
    compiled.ops.push(slot("prev", previous, Hold::Weak, Some(id), Kind::Thin { vptr: None }));
    Some(compiled)
}

pub(super) fn forward_list(compiler: &mut Compiler<'_>, layout: &Layout) -> Option<Compiled> {
    let layouts = compiler.layouts;
    let value = name_of(layouts, argument(layout, "_Tp")?);
    let node = instance(layouts, "std::_Fwd_list_node", value);
    let (at, head) = named(layouts, layout, "_M_head")?;
    let first = at.checked_add(pointer(layouts, layouts.get(head), "_M_next")?)?;
    let ops = vec![slot("", first, Hold::Owns, node, Kind::Thin { vptr: None })];
    Some(Compiled { ops, ..Compiled::default() })
}
