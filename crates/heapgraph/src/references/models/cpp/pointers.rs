//! Smart pointers, and values that may not be there: `std::optional`, `std::variant`, `std::function`.

use super::super::find::{argument, named, plain};
use super::declared::slot;
use crate::references::compile::{Compiler, base, field};
use crate::references::reference::Hold;
use crate::references::slots::{Case, Compiled, Condition, If, Kind, Op, Switch, holding, within};
use stackglass_layouts::{BlockType, Layout, Shape, TypeId};

/// Bases of tuples are not deeper.
const DEPTH: usize = 12;

pub(super) fn unique(compiler: &mut Compiler<'_>, layout: &Layout) -> Option<Compiled> {
    let (at, head) = head(compiler, layout, DEPTH)?;
    let head = compiler.compile(head);
    let [Op::Slot(pointer)] = &*head.ops else { return None };
    let mut pointer = pointer.clone();
    pointer.hold = Hold::Owns;
    let value = argument(layout, "_Tp").map(|value| compiler.layouts.get(value));
    if let Some(BlockType::One(element)) = pointer.contains
        && value.is_some_and(|value| matches!(value.shape, Shape::Array { .. }))
    {
        pointer.contains = Some(BlockType::Elements(element));
    }
    Some(Compiled { ops: within("", at, &[Op::Slot(pointer)]), ..Compiled::default() })
}

/// The first element of the tuple in a `unique_ptr`; the second is the deleter.
fn head(compiler: &Compiler<'_>, layout: &Layout, depth: usize) -> Option<(u64, TypeId)> {
    let Shape::Struct(fields) = &layout.shape else { return None };
    let depth = depth.checked_sub(1)?;
    fields.iter().find_map(|field| {
        let inner = compiler.layouts.get(field.type_id);
        let (at, id) = if inner.name.starts_with("std::_Head_base<0,") {
            let head = crate::references::compile::field(inner, "_M_head_impl")?;
            (head.offset, head.type_id)
        } else {
            head(compiler, inner, depth)?
        };
        Some((field.offset.checked_add(at)?, id))
    })
}

/// The control block is shared; it owns the object, or contains it.
pub(super) fn shared(compiler: &mut Compiler<'_>, layout: &Layout, hold: Hold) -> Option<Compiled> {
    let object = field(layout, "_M_ptr")?;
    let count = field(layout, "_M_refcount")?;
    let ops = compiler.compile(object.type_id).ops.clone();
    let refers = if hold == Hold::Weak { Hold::Weak } else { Hold::Refers };
    let mut ops = holding(within("", object.offset, &ops), refers);
    let control = compiler.compile(count.type_id);
    ops.extend(holding(within("control", count.offset, &control.ops), hold));
    Some(Compiled { ops, ..Compiled::default() })
}

/// A control block with the object: it is destroyed with the last owner.
pub(super) fn in_place(compiler: &mut Compiler<'_>, layout: &Layout) -> Option<Compiled> {
    let layouts = compiler.layouts;
    let (count, id) = named(layouts, layout, "_M_use_count")?;
    let (inner, size) = plain(layouts, id)?;
    let (at, _) = named(layouts, layout, "_M_storage")?;
    let compiled = {
        let value = argument(layout, "_Tp")?;
        compiler.compile(value)
    };
    let condition = Condition::NotZero { offset: count.checked_add(inner)?, size };
    let then = within("", at, &compiled.ops);
    let value = If { condition, then, otherwise: Vec::new() };
    let ops = if compiled.ops.is_empty() { Vec::new() } else { vec![Op::If(value)] };
    Some(Compiled { ops, incomplete: compiled.incomplete && compiled.size > 0, ..Compiled::default() })
}

/// A control block beside the object.
pub(super) fn counted(compiler: &mut Compiler<'_>, layout: &Layout) -> Option<Compiled> {
    let layouts = compiler.layouts;
    let (count, id) = named(layouts, layout, "_M_use_count")?;
    let (inner, size) = plain(layouts, id)?;
    let (at, object) = named(layouts, layout, "_M_ptr")?;
    let compiled = compiler.compile(object);
    let condition = Condition::NotZero { offset: count.checked_add(inner)?, size };
    let then = holding(within("", at, &compiled.ops), Hold::Owns);
    let object = If { condition, then, otherwise: Vec::new() };
    Some(Compiled { ops: vec![Op::If(object)], ..Compiled::default() })
}

/// A function object: large ones lie in a block of their own. Small ones begin with their first captured value.
pub(super) fn function(compiler: &mut Compiler<'_>, layout: &Layout) -> Option<Compiled> {
    let layouts = compiler.layouts;
    let (manager, _) = named(layouts, layout, "_M_manager")?;
    let functor = field(layout, "_M_functor")?;
    let word = |offset, hold| slot("", offset, hold, None, Kind::Thin { vptr: None });
    let then = vec![word(functor.offset, Hold::Refers), word(functor.offset.checked_add(8)?, Hold::Weak)];
    let condition = Condition::NotZero { offset: manager, size: 8 };
    let value = If { condition, then, otherwise: Vec::new() };
    Some(Compiled { ops: vec![Op::If(value)], ..Compiled::default() })
}

pub(super) fn optional(compiler: &mut Compiler<'_>, layout: &Layout) -> Option<Compiled> {
    let layouts = compiler.layouts;
    let engaged = field(layout, "_M_engaged")?;
    let (inner, size) = plain(layouts, engaged.type_id)?;
    let (at, value) = named(layouts, layout, "_M_value")?;
    let compiled = compiler.compile(value);
    let offset = engaged.offset.checked_add(inner)?;
    let then = within("", at, &compiled.ops);
    let value = If { condition: Condition::NotZero { offset, size }, then, otherwise: Vec::new() };
    let ops = if compiled.ops.is_empty() { Vec::new() } else { vec![Op::If(value)] };
    Some(Compiled { ops, incomplete: compiled.incomplete && compiled.size > 0, ..Compiled::default() })
}

/// Unions within unions, each of the next alternative and the rest. The index tells which is valid.
pub(super) fn variant(compiler: &mut Compiler<'_>, layout: &Layout) -> Option<Compiled> {
    let layouts = compiler.layouts;
    let index = field(layout, "_M_index")?;
    let (inner, size) = plain(layouts, index.type_id)?;
    let first = field(layout, "_M_u")?;
    let (mut at, mut union) = (first.offset, first.type_id);
    let mut incomplete = false;
    let mut cases = Vec::new();
    while let Shape::Union(fields) = &layouts.get(union).shape {
        let field = |name| fields.iter().find(|field| &*field.name == name);
        let Some(alternative) = field("_M_first") else { break };
        let holder = layouts.get(alternative.type_id);
        if base(&holder.name) != "std::__detail::__variant::_Uninitialized" {
            return None;
        }
        let compiled = {
            let value = argument(holder, "_Type")?;
            compiler.compile(value)
        };
        incomplete |= compiled.incomplete && compiled.size > 0;
        let number = cases.len() as u128;
        let ops = within("", at.checked_add(alternative.offset)?, &compiled.ops);
        cases.push(Case { values: vec![number..=number], ops });
        let Some(rest) = field("_M_rest").filter(|_| cases.len() < 256) else { break };
        (at, union) = (at.checked_add(rest.offset)?, rest.type_id);
    }
    let tag = index.offset.checked_add(inner)?;
    let empty = cases.is_empty() || cases.iter().all(|case| case.ops.is_empty());
    let switch = Switch { tag, size, cases, default: Vec::new() };
    let ops = if empty { Vec::new() } else { vec![Op::Switch(switch)] };
    Some(Compiled { ops, incomplete, ..Compiled::default() })
}
