//! The values in a task's future by which the task can end waits of other tasks: senders, receivers, `Notify`, `Barrier`.
//!
//! A receiver waits for a message until a sender sends one. A sender waits for room in a full channel until the receiver takes a
//! message. A task that has a `Notify` or a `Barrier` can wake those that wait for it. Such a value may be behind an `Arc`, as in the
//! state of a server.
//!
//! Debug information may still describe a variable that was moved away. So the code that drops the task decides whether the task has
//! the value: it must lower the channel's count of senders or receivers, or the count of the outermost `Arc`.

use crate::values::{Value, Values};
use stackglass_layouts::{Layouts, Shape, TypeId};
use stackglass_profile::runtimes::{CHANNEL_RECEIVERS, CHANNEL_SENDERS};
use stackglass_profile::runtimes::{is_generic, tokio};
use stackglass_profile::task_dump::SharedKind;
use std::ops::Range;
use std::sync::Arc;

/// Deepest nesting of an end in a future of a channel, and of a counter in its block.
const DEEPEST: u32 = 10;
/// Fields that count senders, by library: tokio's channels, its `watch`, its `broadcast`, others; crossbeam's and those of std.
const SENDER_COUNTS: [&str; 5] = ["tx_count", "ref_count_tx", "num_tx", "sender_count", "senders"];
/// Fields that count receivers.
const RECEIVER_COUNTS: [&str; 3] = ["ref_count_rx", "receiver_count", "receivers"];

/// What an end does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Role {
    Sender,
    Receiver,
    /// A `Notify` or a `Barrier`.
    Shared,
}

/// An end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct End {
    pub role: Role,
    /// Addresses of what it is an end of.
    pub block: Range<u64>,
    /// Address of the count that the drop of its owner lowers, if there is one.
    pub count: Option<u64>,
    /// It is reached through an `Arc`.
    pub is_shared: bool,
    /// Address of the state of a oneshot channel.
    pub state: Option<u64>,
    /// The number of ends on the other side, as the channel counts them.
    pub others: Option<u64>,
    /// The `.await` during which the future has it.
    pub line: Option<(Arc<str>, u32)>,
}

/// The role of a type of this name.
pub(crate) fn role(name: &str) -> Option<Role> {
    if matches!(name, tokio::NOTIFY | tokio::BARRIER) {
        return Some(Role::Shared);
    }
    let is = |paths: &[&str]| paths.iter().any(|path| is_generic(name, path));
    match () {
        () if is(&CHANNEL_SENDERS) => Some(Role::Sender),
        () if is(&CHANNEL_RECEIVERS) => Some(Role::Receiver),
        () => None,
    }
}

/// Whose end can end waits of this kind.
pub(crate) fn other(kind: SharedKind) -> Option<Role> {
    match kind {
        SharedKind::EmptyChannel | SharedKind::Oneshot | SharedKind::Watch => Some(Role::Sender),
        SharedKind::FullChannel => Some(Role::Receiver),
        SharedKind::Notify | SharedKind::Barrier => Some(Role::Shared),
        SharedKind::Mutex
        | SharedKind::OtherMutex
        | SharedKind::BlockingMutex
        | SharedKind::BlockingRwLock
        | SharedKind::RwLock
        | SharedKind::Semaphore => None,
    }
}

/// The end that a value is. `shared` is the count of the `Arc` through which it was reached.
pub(crate) fn end(values: &Values<'_>, value: Value, shared: Option<u64>) -> Option<End> {
    let role = role(values.name(value))?;
    let block = match role {
        Role::Shared => value,
        Role::Sender | Role::Receiver => values.target(value)?,
    };
    let block_range = block.address..block.address.checked_add(values.layout(block.type_id).size)?;
    let count = shared.or_else(|| count_of(values, block, role));
    let opposite = match role {
        Role::Sender => Role::Receiver,
        _ => Role::Sender,
    };
    let others = count_of(values, block, opposite).and_then(|count| values.pages.word(count));
    let name = values.name(value);
    let is_oneshot = is_generic(name, tokio::ONESHOT_RECEIVER) || is_generic(name, tokio::ONESHOT_SENDER);
    let state = || block.address.checked_add(offset_within(values.layouts, block.type_id, &["state"], 4)?);
    let state = is_oneshot.then(state).flatten();
    Some(End { role, block: block_range, count, is_shared: shared.is_some(), state, others, line: None })
}

/// How many tasks have arrived at a barrier, and how many must.
pub(crate) fn arrived(values: &Values<'_>, barrier: u64) -> Option<(u64, u64)> {
    let barrier = Value { type_id: values.layouts.by_name(tokio::BARRIER)?, address: barrier };
    let all = values.word(values.field(barrier, "n")?)?;
    let state = values.field(barrier, "state")?;
    let offset = offset_within(values.layouts, state.type_id, &["arrived"], 6)?;
    let arrived = values.pages.word(state.address.checked_add(offset)?)?;
    (arrived < all).then_some((arrived, all))
}

/// The address of the number of ends with a role, in the block of a channel.
pub(crate) fn count_of(values: &Values<'_>, block: Value, role: Role) -> Option<u64> {
    let names: &[&str] = match role {
        Role::Sender => &SENDER_COUNTS,
        Role::Receiver => &RECEIVER_COUNTS,
        Role::Shared => return None,
    };
    let offset = offset_within(values.layouts, block.type_id, names, 4)?;
    block.address.checked_add(offset)
}

/// Offset of the first field with one of these names.
fn offset_within(layouts: &Layouts, type_id: TypeId, names: &[&str], depth: u32) -> Option<u64> {
    let Shape::Struct(fields) = &layouts.get(type_id).shape else { return None };
    if let Some(field) = fields.iter().find(|field| names.contains(&&*field.name)) {
        return Some(field.offset);
    }
    let depth = depth.checked_sub(1)?;
    const INNER: [&str; 5] = ["data", "inner", "value", "__0", "__1"];
    let inner = fields.iter().filter(|field| INNER.contains(&&*field.name));
    inner
        .into_iter()
        .find_map(|field| Some(field.offset + offset_within(layouts, field.type_id, names, depth)?))
}

/// The block of the channel to which a future of it leads, by the first end in it or behind its references.
pub(crate) fn channel(values: &Values<'_>, future: Value) -> Option<Value> {
    find(values, future, DEEPEST, &|name| matches!(role(name), Some(Role::Sender | Role::Receiver)))
        .and_then(|end| values.target(end))
}

/// The first value with such a name in a value, or behind its references.
pub(crate) fn find(
    values: &Values<'_>,
    value: Value,
    depth: u32,
    is_wanted: &dyn Fn(&str) -> bool,
) -> Option<Value> {
    let layout = values.layout(value.type_id);
    if is_wanted(&layout.name) {
        return Some(value);
    }
    let depth = depth.checked_sub(1)?;
    match &layout.shape {
        Shape::Struct(fields) => {
            fields.iter().find_map(|field| find(values, value.part(field)?, depth, is_wanted))
        }
        Shape::Enum { .. } => {
            let fields = &values.active(value)?.1.fields;
            fields.iter().find_map(|field| find(values, value.part(field)?, depth, is_wanted))
        }
        Shape::Pointer { .. } if layout.name.starts_with('&') => {
            find(values, values.target(value)?, depth, is_wanted)
        }
        _ => None,
    }
}
