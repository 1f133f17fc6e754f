//! Futures where the walk does not follow: what others own as well may be in use, and a union does not say what it holds.
//!
//! `Shared` is the exception: its state says whether somebody polls the future that it shares.

use crate::futures::{Futures, Part};
use crate::values::{Value, Values};
use stackglass_layouts::{Shape, TypeId};
use stackglass_profile::runtimes::AWAIT_NO_OTHERS;

/// State of a `Shared` that nobody polls (`future/shared.rs`).
const IDLE: u64 = 0;
/// Deepest nesting of values.
const DEEPEST: u32 = 8;
/// Most types that are looked into.
const MOST: u32 = 500;

/// Where a type has a future that is not followed. Of the runtime and of servers it is known that they await no such future.
pub(crate) fn place(values: &Values<'_>, types: &Futures<'_>, type_id: TypeId) -> Option<&'static str> {
    let name = &values.layout(type_id).name;
    if AWAIT_NO_OTHERS.iter().any(|begin| name.starts_with(begin)) {
        return None;
    }
    let mut left = MOST;
    within(values, types, type_id, DEEPEST, &mut left)
}

fn within(
    values: &Values<'_>,
    types: &Futures<'_>,
    type_id: TypeId,
    depth: u32,
    left: &mut u32,
) -> Option<&'static str> {
    if depth == 0 || !types.lead_to(Part::Hidden, type_id) {
        return None;
    }
    *left = left.checked_sub(1)?;
    let layout = values.layout(type_id);
    let name = &*layout.name;
    let is = |begin: &str| name.starts_with(begin);
    match () {
        () if is("alloc::sync::Arc<") || is("alloc::sync::Weak<") => return Some("behind an `Arc`"),
        () if is("alloc::rc::Rc<") || is("alloc::rc::Weak<") => return Some("behind an `Rc`"),
        () if is("core::mem::maybe_uninit::MaybeUninit<") => return Some("in a `MaybeUninit`"),
        () if is("*") || is("core::ptr::non_null::NonNull<") => return Some("behind a raw pointer"),
        () => {}
    }
    let mut part = |type_id: TypeId| within(values, types, type_id, depth - 1, left);
    match &layout.shape {
        Shape::Struct(fields) => fields.iter().find_map(|field| part(field.type_id)),
        Shape::Enum { variants, .. } => {
            variants.iter().flat_map(|variant| &variant.fields).find_map(|field| part(field.type_id))
        }
        Shape::Array { element, .. } => part(*element),
        Shape::Pointer { target: Some(target) } => part(*target),
        Shape::Union(_) => Some("in a union"),
        _ => None,
    }
}

/// The future that a `Shared` awaits, or why it is not read. `None` if there is none.
pub(crate) fn shared_future(values: &Values<'_>, shared: Value) -> Option<Result<Value, &'static str>> {
    let block = values.target(values.field(shared, "inner")?)?;
    let inner = values.field(block, "data")?;
    let notifier = values.field(values.target(values.field(inner, "notifier")?)?, "data")?;
    if values.word(values.field(notifier, "state")?)? != IDLE {
        return Some(Err("another task polls it now"));
    }
    let now = values.unwrapped(values.field(inner, "future_or_output")?);
    let (_, variant) = values.active(now)?;
    let future = variant.fields.first().filter(|_| &*variant.name == "Future")?;
    now.part(future).map(Ok)
}
