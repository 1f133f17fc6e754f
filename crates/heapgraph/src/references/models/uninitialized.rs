//! Values that may not be there yet: `OnceLock`, `LazyLock`, thread-local variables.

use super::find::{initialized, named, plain};
use crate::references::compile::{Compiler, field};
use crate::references::slots::{Compiled, Condition, If, Op, within};
use stackglass_layouts::{Layout, Layouts, RustVersion, Shape, TypeId};

/// From this version on, the state of a `Once` with a value is 0, and 3 is the state of one without. Before, 3 is the state with
/// a value, and 0 that of one without.
const COMPLETE_IS_ZERO: RustVersion = RustVersion(1, 90);
/// The field of the state since Rust 1.84.
const FIELD: &str = "state_and_queued";
/// The field of the state before. The state with a value is 4 there.
const OLD_FIELD: &str = "state";

/// The offset and the type of the state, and the state with a value.
fn once_state(layouts: &Layouts, once: &Layout) -> Option<(u64, TypeId, u64)> {
    if let Some((at, state)) = named(layouts, once, FIELD) {
        let is_old = layouts.rust_version().is_some_and(|version| version < COMPLETE_IS_ZERO);
        return Some((at, state, if is_old { 3 } else { 0 }));
    }
    let (at, state) = named(layouts, once, OLD_FIELD)?;
    Some((at, state, 4))
}

/// Everything in `then` that is valid if the condition holds; otherwise `otherwise`.
fn conditional(condition: Condition, then: Vec<Op>, otherwise: Vec<Op>) -> Vec<Op> {
    if then.is_empty() && otherwise.is_empty() {
        return Vec::new();
    }
    vec![Op::If(If { condition, then, otherwise })]
}

pub(super) fn once(compiler: &mut Compiler<'_>, layout: &Layout) -> Option<Compiled> {
    let layouts = compiler.layouts;
    let once = field(layout, "once")?;
    let (at, state, complete) = once_state(layouts, layouts.get(once.type_id))?;
    let (inner, size) = plain(layouts, state)?;
    let offset = once.offset.checked_add(at)?.checked_add(inner)?;
    let cell = field(layout, "value").or_else(|| field(layout, "data"))?;
    let doubtful = compiler.compile(cell.type_id);
    let value = value(compiler, cell.type_id)?;
    let compiled = compiler.compile(value);
    let condition = Condition::Bits { offset, size, mask: u64::MAX, values: vec![complete] };
    let ops = conditional(
        condition,
        within("", cell.offset, &compiled.ops),
        within("", cell.offset, &doubtful.ops),
    );
    Some(Compiled { ops, incomplete: compiled.incomplete && compiled.size > 0, ..Compiled::default() })
}

/// The value in a cell that may be uninitialized, or in the union of a value and its function.
fn value(compiler: &Compiler<'_>, cell: TypeId) -> Option<TypeId> {
    let inner = initialized(compiler, cell);
    let layout = compiler.layouts.get(inner);
    match &layout.shape {
        Shape::Union(fields) => {
            let value = fields.iter().find(|field| &*field.name == "value" && field.offset == 0)?;
            Some(initialized(compiler, value.type_id))
        }
        _ => Some(inner),
    }
}

pub(super) fn thread_local(compiler: &mut Compiler<'_>, layout: &Layout) -> Option<Compiled> {
    let layouts = compiler.layouts;
    let state = field(layout, "state")?;
    let cell = field(layout, "value")?;
    let (at, condition_size, alive) = alive(compiler, state.type_id)?;
    let value = value(compiler, cell.type_id)?;
    let compiled = compiler.compile(value);
    let condition = Condition::Bits {
        offset: state.offset.checked_add(at)?,
        size: condition_size,
        mask: u64::MAX,
        values: alive,
    };
    let ops = conditional(condition, within("", cell.offset, &compiled.ops), Vec::new());
    let _ = layouts;
    Some(Compiled { ops, incomplete: compiled.incomplete && compiled.size > 0, ..Compiled::default() })
}

/// Where the state of a thread-local variable lies, its size, and its values while the variable is alive.
fn alive(compiler: &Compiler<'_>, state: TypeId) -> Option<(u64, u64, Vec<u64>)> {
    let layouts = compiler.layouts;
    let mut id = state;
    let mut offset = 0u64;
    for _ in 0..8 {
        match &layouts.get(id).shape {
            Shape::Struct(fields) => {
                let field = fields.iter().find(|field| layouts.get(field.type_id).size > 0)?;
                offset = offset.checked_add(field.offset)?;
                id = field.type_id;
            }
            Shape::Enum { tag: Some((tag, size)), variants } => {
                let alive = variants.iter().find(|variant| &*variant.name == "Alive")?;
                let values = alive.values.as_ref()?.iter().map(|range| *range.start() as u64).collect();
                return Some((offset.checked_add(*tag)?, *size, values));
            }
            // An enum without data: uninitialized, alive, destroyed.
            Shape::Plain => return Some((offset, layouts.get(id).size, vec![1])),
            _ => return None,
        }
    }
    None
}
