//! `Rc`, `Arc`, `Weak` and boxes with an allocator: pointers that own, or share, their target.

use crate::references::compile::{Compiler, field};
use crate::references::reference::Hold;
use crate::references::slots::{Compiled, Condition, If, Op, holding, within};
use stackglass_layouts::{Layout, Shape};

/// Holds the target of a field as it says, and those of other fields, the allocator's, as usual.
fn holder(compiler: &mut Compiler<'_>, layout: &Layout, pointer: &str, hold: Hold) -> Option<Compiled> {
    field(layout, pointer)?;
    let Shape::Struct(fields) = &layout.shape else { return None };
    let mut result = Compiled::default();
    for field in fields {
        let compiled = compiler.compile(field.type_id);
        result.incomplete |= compiled.incomplete && compiled.size > 0;
        let is_pointer = &*field.name == pointer;
        let ops = within(if is_pointer { "" } else { "allocator" }, field.offset, &compiled.ops);
        result.ops.extend(if is_pointer { holding(ops, hold) } else { ops });
    }
    Some(result)
}

pub(super) fn owner(compiler: &mut Compiler<'_>, layout: &Layout, pointer: &str) -> Option<Compiled> {
    holder(compiler, layout, pointer, Hold::Owns)
}

pub(super) fn weak(compiler: &mut Compiler<'_>, layout: &Layout) -> Option<Compiled> {
    holder(compiler, layout, "ptr", Hold::Weak)
}

/// The target of `Rc` and `Arc`. Its value is dropped with the last of them, while `Weak` may still hold the block.
pub(super) fn inner(compiler: &mut Compiler<'_>, layout: &Layout) -> Option<Compiled> {
    let strong = field(layout, "strong")?;
    let (at, size) = super::find::plain(compiler.layouts, strong.type_id)?;
    let value = field(layout, "value").or_else(|| field(layout, "data"))?;
    let compiled = compiler.compile(value.type_id);
    let mut result = Compiled { incomplete: compiled.incomplete && compiled.size > 0, ..Compiled::default() };
    if !compiled.ops.is_empty() {
        result.ops.push(Op::If(If {
            condition: Condition::NotZero { offset: strong.offset.checked_add(at)?, size },
            then: within("", value.offset, &compiled.ops),
            otherwise: Vec::new(),
        }));
    }
    Some(result)
}
