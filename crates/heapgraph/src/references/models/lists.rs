//! `LinkedList`: each node is owned by the one before it.

use crate::references::compile::{Compiler, field};
use crate::references::reference::Hold;
use crate::references::slots::{Compiled, holding, within};
use stackglass_layouts::{Layout, Shape};

/// The places of a struct of which two fields hold their targets in a given way.
fn with_holds(
    compiler: &mut Compiler<'_>,
    layout: &Layout,
    owner: &str,
    other: (&str, Hold),
) -> Option<Compiled> {
    field(layout, owner)?;
    field(layout, other.0)?;
    let Shape::Struct(fields) = &layout.shape else { return None };
    let mut result = Compiled::default();
    for field in fields {
        let compiled = compiler.compile(field.type_id);
        result.incomplete |= compiled.incomplete && compiled.size > 0;
        let ops = within(&field.name, field.offset, &compiled.ops);
        result.ops.extend(match &*field.name {
            name if name == owner => holding(ops, Hold::Owns),
            name if name == other.0 => holding(ops, other.1),
            _ => ops,
        });
    }
    Some(result)
}

pub(super) fn linked_list(compiler: &mut Compiler<'_>, layout: &Layout) -> Option<Compiled> {
    with_holds(compiler, layout, "head", ("tail", Hold::Refers))
}

pub(super) fn node(compiler: &mut Compiler<'_>, layout: &Layout) -> Option<Compiled> {
    with_holds(compiler, layout, "next", ("prev", Hold::Weak))
}
