//! The tasks of a `JoinSet` whose next end is awaited: two lists of their `JoinHandle`s, those that ended among them.
//!
//! Source: `tokio/src/util/idle_notified_set.rs`.

use crate::names;
use crate::task_headers::Headers;
use crate::values::{Value, Values};
use foldhash::{HashSet, HashSetExt};
use stackglass_layouts::Shape;
use stackglass_profile::runtimes::{is_generic, tokio};

/// Most tasks of a set.
const MOST: usize = 10_000;
/// Deepest nesting of values.
const DEEPEST: u32 = 8;

/// The ids of the tasks in the set that a future leads to, and whether these are all of them.
pub(crate) fn tasks(values: &Values<'_>, headers: &Headers, future: Value) -> (Vec<u64>, bool) {
    let mut ids = Vec::new();
    let set = first(values, future, tokio::JOIN_SET, DEEPEST);
    let length = set.and_then(|set| values.word(values.path(set, &["inner", "length"])?));
    let lists =
        set.and_then(|set| values.path(set, &["inner", "lists"])).and_then(|lists| values.target(lists));
    let Some(lists) = lists else { return (ids, false) };
    let mut seen = HashSet::new();
    for name in ["notified", "idle"] {
        let list = field_within(values, lists, name, DEEPEST);
        let mut entry = list.and_then(|list| values.target(values.field(list, "head")?));
        while let Some(now) = entry.filter(|entry| ids.len() < MOST && seen.insert(entry.address)) {
            let handle = values
                .field(now, "value")
                .and_then(|value| first(values, value, tokio::JOIN_HANDLE, DEEPEST));
            let header = handle.and_then(|handle| values.target(values.field(handle, "raw")?));
            ids.extend(header.and_then(|header| headers.id(values, header.address)));
            entry = values
                .field(now, "pointers")
                .and_then(|pointers| field_within(values, pointers, "next", DEEPEST))
                .and_then(|next| values.target(next))
                .map(|next| Value { type_id: now.type_id, ..next });
        }
    }
    ids.sort_unstable();
    ids.dedup();
    let is_whole = length == Some(ids.len() as u64);
    (ids, is_whole)
}
/// The first value of this generic type, in a value or behind its references.
/// The first value whose type has a name with this begin, in a value or behind its references.
fn first(values: &Values<'_>, value: Value, path: &str, depth: u32) -> Option<Value> {
    let layout = values.layout(value.type_id);
    if is_generic(&layout.name, path) {
        return Some(value);
    }
    match &layout.shape {
        Shape::Struct(fields) if depth > 0 => {
            fields.iter().find_map(|field| first(values, value.part(field)?, path, depth - 1))
        }
        Shape::Pointer { .. } if depth > 0 && layout.name.starts_with('&') => {
            first(values, values.target(value)?, path, depth - 1)
        }
        _ => None,
    }
}

/// The first field with this name in a value, without following pointers. Lists of tokio have pointers of their own.
fn field_within(values: &Values<'_>, value: Value, name: &str, depth: u32) -> Option<Value> {
    if let Some(found) = values.field(value, name) {
        return Some(found);
    }
    let Shape::Struct(fields) = &values.layout(value.type_id).shape else { return None };
    if depth == 0 || names::without_arguments(values.name(value)).ends_with("::LinkedList") {
        return None;
    }
    fields.iter().find_map(|field| field_within(values, value.part(field)?, name, depth - 1))
}
