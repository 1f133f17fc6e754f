//! The guards of locks that a suspended future holds, and its ends of channels: values in its live variables.
//!
//! rustc stores a variable in a suspended coroutine if it may be needed after the `.await`. A guard that was moved away only
//! on some paths may be stored although it is gone.
//!
//! A variable that shadows another of its name, as in `let state = state.lock().await`, is described like the first one by
//! rustc 1.95. Its own bytes then belong to no variable. If one of these words is the address of a lock of which no other
//! guard is known, it is probably the guard.

use crate::ends::{self, End};
use crate::futures::{Form, Part, form, has_hidden_variable, is_shared};
use crate::holdings::{Held, Holdings, Line};
use crate::values::Value;
use crate::walker::Walker;
use crate::{blocking_guards, names};
use foldhash::{HashSet, HashSetExt};
use stackglass_layouts::{Shape, Variant};
use stackglass_profile::runtimes::{OTHER_MUTEXES, is_generic, tokio};
use stackglass_profile::task_dump::SharedKind;

/// Deepest nesting of values.
const DEEPEST: u32 = 200;
/// Most values of one task.
const MOST_VALUES: u32 = 20_000;
/// Most elements of a list.
const MOST_ELEMENTS: u64 = 10_000;
/// Bytes of a coroutine in which hidden variables are searched.
const LARGEST: u64 = 64 << 10;

/// What a future holds.
pub(crate) fn holdings(walker: &Walker<'_>, future: Value) -> Holdings {
    let mut search =
        Search { walker, left: MOST_VALUES, seen: HashSet::new(), shared: None, found: Holdings::default() };
    search.look_into(future, &None, 0);
    search.found
}

struct Search<'a, 'w> {
    walker: &'w Walker<'a>,
    left: u32,
    seen: HashSet<Value>,
    /// The count of the `Arc` through which values are reached. Guards behind it belong to no task alone.
    shared: Option<u64>,
    found: Holdings,
}

impl Search<'_, '_> {
    fn look_into(&mut self, value: Value, line: &Line, depth: u32) {
        let types = self.walker.types;
        let leads = (self.shared.is_none() && types.lead_to(Part::Guard, value.type_id))
            || types.lead_to(Part::End, value.type_id);
        if !leads || depth > DEEPEST || self.left == 0 {
            return;
        }
        self.left -= 1;
        // A reference may lead back.
        if !self.seen.insert(value) {
            return;
        }
        let values = self.walker.values;
        let layout = values.layout(value.type_id);
        if ends::role(&layout.name).is_some() {
            let end = ends::end(values, value, self.shared);
            self.found.ends.extend(end.map(|end| End { line: line.clone(), ..end }));
            return;
        }
        if is_shared(&layout.name) {
            return self.behind_arc(value, line, depth);
        }
        match form(values.layouts, value.type_id) {
            Form::Guard => {
                if self.shared.is_some() {
                    return;
                }
                let blocking = blocking_guards::lock(values, value);
                let other = || Some((kind(&layout.name), self.semaphore(value, 4)?));
                if let Some((kind, address)) = blocking.or_else(other) {
                    self.found.guards.push(Held { kind, address, guard: value.address, line: line.clone() });
                }
                return;
            }
            Form::Coroutine => {
                let Some((index, variant)) = values.active(value) else { return };
                let is_over = matches!(index, 1 | 2);
                let own = self.walker.line(value, index);
                let line = if index > 2 && own.is_some() { &own } else { line };
                if index > 2 && has_hidden_variable(variant) {
                    self.hidden_words(value, variant, line);
                }
                for part in variant.fields.iter().filter(|_| !is_over) {
                    if let Some(part) = value.part(part) {
                        self.look_into(part, line, depth + 1);
                    }
                }
                return;
            }
            Form::Dynamic => {
                if let Some(inner) = self.walker.dynamic(value) {
                    self.look_into(inner, line, depth + 1);
                }
                return;
            }
            // What many share may be large.
            Form::Slice | Form::Vector(_) if self.shared.is_some() => return,
            Form::Slice => {
                if let Some((first, count)) = values.slice(value) {
                    self.elements(first, count, line, depth);
                }
                return;
            }
            Form::Vector(element) => {
                if let Some((first, count)) = values.vector(value, element) {
                    self.elements(first, count, line, depth);
                }
                return;
            }
            Form::Unordered | Form::Leaf | Form::Other => {}
        }
        match &layout.shape {
            Shape::Struct(fields) => {
                for part in fields {
                    if let Some(part) = value.part(part) {
                        self.look_into(part, line, depth + 1);
                    }
                }
            }
            Shape::Enum { .. } => {
                let Some((_, variant)) = values.active(value) else { return };
                for part in &variant.fields {
                    if let Some(part) = value.part(part) {
                        self.look_into(part, line, depth + 1);
                    }
                }
            }
            Shape::Array { element, count } => {
                self.elements(Value { type_id: *element, ..value }, *count, line, depth);
            }
            Shape::Pointer { .. } => {
                if let Some(target) = values.target(value) {
                    self.look_into(target, line, depth + 1);
                }
            }
            _ => {}
        }
    }

    /// Looks into what an `Arc` shares, for ends only.
    fn behind_arc(&mut self, arc: Value, line: &Line, depth: u32) {
        let values = self.walker.values;
        let Some(block) = values.target(arc) else { return };
        let Some(data) = values.field(block, "data") else { return };
        let before = self.shared;
        self.shared = before.or(Some(block.address));
        self.look_into(data, line, depth + 1);
        self.shared = before;
    }

    /// Adds the words of a coroutine in which no variable is.
    fn hidden_words(&mut self, coroutine: Value, state: &Variant, line: &Line) {
        let values = self.walker.values;
        let size = values.layout(coroutine.type_id).size.min(LARGEST);
        let is_free = |offset: u64| {
            state.fields.iter().all(|field| {
                let end = field.offset.saturating_add(values.layout(field.type_id).size);
                end <= offset || field.offset >= offset + 8
            })
        };
        for offset in (0..size.saturating_sub(7)).step_by(8).filter(|offset| is_free(*offset)) {
            let word = coroutine.address.checked_add(offset).and_then(|at| values.pages.word(at));
            self.found.hidden.extend(word.filter(|word| *word != 0).map(|word| (word, line.clone())));
        }
    }

    fn elements(&mut self, first: Value, count: u64, line: &Line, depth: u32) {
        for number in 0..count.min(MOST_ELEMENTS) {
            let element = self.walker.values.element(first, number);
            let Some(element) = element.filter(|_| self.left > 0) else { return };
            self.look_into(element, line, depth + 1);
        }
    }

    /// The semaphore that a guard leads to.
    fn semaphore(&self, value: Value, depth: u32) -> Option<u64> {
        let values = self.walker.values;
        if values.name(value) == tokio::SEMAPHORE {
            return Some(value.address);
        }
        if is_other_mutex(values.name(value)) {
            return Some(values.field(value, "state")?.address);
        }
        match &values.layout(value.type_id).shape {
            Shape::Struct(fields) if depth > 0 => fields.iter().find_map(|field| {
                let name = &values.layout(field.type_id).name;
                let leads =
                    [tokio::SEMAPHORE, tokio::SYNC, "&", "alloc::sync::Arc<", "core::ptr::", "*", "Data"];
                // The protected data may hold other locks.
                if !leads.iter().any(|begin| name.starts_with(begin))
                    && !name.starts_with("alloc::sync::ArcInner<")
                    && !is_other_mutex(name)
                {
                    return None;
                }
                self.semaphore(value.part(field)?, depth)
            }),
            Shape::Pointer { .. } if depth > 0 => {
                let target = values.target(value)?;
                let name = values.name(target);
                let leads = name.starts_with(tokio::SYNC)
                    || name.starts_with(tokio::SHARED_SYNC)
                    || is_other_mutex(name.strip_prefix("alloc::sync::ArcInner<").unwrap_or(name));
                leads.then(|| self.semaphore(target, depth - 1)).flatten()
            }
            _ => None,
        }
    }
}

/// Whether this is a mutex of another library than tokio.
fn is_other_mutex(name: &str) -> bool {
    OTHER_MUTEXES.iter().any(|(mutex, ..)| is_generic(name, mutex))
}

fn kind(guard: &str) -> SharedKind {
    let path = names::without_arguments(guard);
    match path {
        path if OTHER_MUTEXES.iter().any(|(.., guards)| path.starts_with(guards)) => SharedKind::OtherMutex,
        path if path.contains("Mutex") => SharedKind::Mutex,
        path if path.contains("RwLock") || path.contains("rwlock") => SharedKind::RwLock,
        _ => SharedKind::Semaphore,
    }
}
