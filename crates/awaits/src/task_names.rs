//! What tasks are called: by the function of their future, whatever is around it.

use crate::values::Value;
use crate::walker::Walker;
use crate::{names, wrapper};
use stackglass_layouts::{TypeId, is_coroutine};
use stackglass_profile::runtimes::tokio;
use stackglass_profile::task_dump::AwaitFrame;
use std::sync::Arc;

/// A name for the task of a future with this await stack.
pub(crate) fn name_of(walker: &Walker<'_>, future: Value, stack: &[AwaitFrame]) -> Arc<str> {
    let name = task_name(walker, future.type_id);
    if is_coroutine(walker.values.name(future)) {
        return name;
    }
    match stack {
        [outermost] => outermost.function.clone(),
        // The type of a `Pin<Box<dyn Future>>` says nothing. Pointers stay while the future behind them is polled.
        _ => walker.boxed(future).map_or(name, |inner| task_name(walker, inner.type_id)),
    }
}

/// A name for tasks of a future's type.
pub(crate) fn task_name(walker: &Walker<'_>, future: TypeId) -> Arc<str> {
    let name = &walker.values.layout(future).name;
    // The function of `spawn_blocking` is in a struct of its own.
    let inner = name.strip_prefix(tokio::BLOCKING_TASK).and_then(|rest| rest.strip_prefix('<'));
    match inner.and_then(|inner| inner.strip_suffix('>')) {
        Some(function) => names::closure(function),
        None if wrapper::is_wrapper(name) => match wrapper::future_type(walker.values, future) {
            Some(inner) => task_name(walker, inner),
            None => names::without_arguments(name).into(),
        },
        None if is_coroutine(name) => names::function(name, walker.values.layouts.coroutines()),
        None => names::without_arguments(name).into(),
    }
}
