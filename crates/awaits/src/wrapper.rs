//! The future of our own wrapper: `future.task("name")` of the crate `stackglass`.

use crate::values::{Value, Values};
use stackglass_layouts::{Shape, TypeId};

/// The wrapper's type, without its argument.
pub(crate) const WRAPPER: &str = "stackglass::task::Instrumented<";

/// Whether a type with this name is the wrapper.
pub(crate) fn is_wrapper(name: &str) -> bool {
    name.starts_with(WRAPPER)
}

/// The type of the future in a wrapper.
pub(crate) fn future_type(values: &Values<'_>, wrapper: TypeId) -> Option<TypeId> {
    let Shape::Struct(fields) = &values.layout(wrapper).shape else { return None };
    fields.iter().find(|field| &*field.name == "future").map(|field| field.type_id)
}

/// The wrapped future that a future is, or that it is a pointer to.
pub(crate) fn whole(values: &Values<'_>, mut value: Value) -> Option<u64> {
    for _ in 0..4 {
        let name = values.name(value);
        if is_wrapper(name) {
            return Some(values.field(value, "future")?.address);
        }
        if !name.starts_with("core::pin::Pin<") && !name.starts_with("alloc::boxed::Box<") {
            return None;
        }
        value = values.target(value)?;
    }
    None
}
