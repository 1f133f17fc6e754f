//! Futures with several branches: macros, lists and sets of futures.
//!
//! Each branch is a node of its own in what the task needs, also if nothing is known of it. So a future that waits for the first of
//! several is never taken to be stuck because a branch was not seen.

use super::{Place, Role, Walk, lost};
use crate::joins::{self, Parts};
use crate::needs::{Content, Kind};
use crate::values::Value;
use stackglass_layouts::Shape;
use stackglass_profile::task_dump::AwaitFrame;

/// Most elements of a list of futures.
const MOST_ELEMENTS: u64 = 10_000;

impl Walk<'_, '_> {
    /// A branch of what waits at a place.
    fn branch<'n>(&self, place: Place<'n>) -> Place<'n> {
        let node = self.needs.borrow_mut().add(place.node, Kind::All, Content::Nothing);
        Place { node, is_own: false, ..place.with_role(Role::Branch) }
    }

    /// The parts of a struct that waits for several futures.
    pub(super) fn combination_of(
        &self,
        value: Value,
        kind: Kind,
        parts: Parts,
        place: Place<'_>,
        out: &mut Vec<AwaitFrame>,
    ) {
        let values = self.values();
        let node = self.needs.borrow_mut().add(place.node, kind, place.content());
        let place = Place { node, ..place.with_role(Role::Several) };
        let Shape::Struct(fields) = &values.layout(value.type_id).shape else { return };
        let mut fields = fields.iter().filter_map(|field| value.part(field));
        match parts {
            Parts::Fields => fields.for_each(|field| self.branch_with(field, place, out)),
            Parts::List => fields.for_each(|field| self.look_into(field, place, out)),
            Parts::Pair => match fields.next().and_then(|inner| self.unfinished(inner)) {
                Some(tuple) => self.branches(tuple, place, out),
                None => {
                    self.open(place);
                }
            },
        }
    }

    /// A branch that is this value, unless it has ended.
    fn branch_with(&self, value: Value, place: Place<'_>, out: &mut Vec<AwaitFrame>) {
        if let Some(branch) = self.unfinished(value) {
            self.future(branch, self.branch(place), out);
        }
    }

    /// The futures of `select!` and `join!`: each element of a tuple is one. Those that have finished are left out.
    pub(super) fn branches(&self, tuple: Value, place: Place<'_>, out: &mut Vec<AwaitFrame>) {
        let values = self.values();
        let layout = values.layout(tuple.type_id);
        let Shape::Struct(fields) = &layout.shape else {
            self.open(place);
            return;
        };
        // A type without members, or without those of no size.
        if joins::elements_of_tuple(&layout.name) != Some(fields.len()) {
            self.open(place);
        }
        for field in fields.iter().filter_map(|field| tuple.part(field)) {
            self.branch_with(field, place, out);
        }
    }

    /// The tuple to which the closure of a macro has a reference.
    pub(super) fn borrowed_tuple(&self, poll_fn: Value) -> Option<Value> {
        let values = self.values();
        if !values.name(poll_fn).starts_with("core::future::poll_fn::PollFn<") {
            return None;
        }
        let mut open = vec![poll_fn];
        for _ in 0..32 {
            let value = open.pop()?;
            match &values.layout(value.type_id).shape {
                Shape::Struct(fields) => open.extend(fields.iter().filter_map(|field| value.part(field))),
                Shape::Pointer { .. } => {
                    let Some(target) = values.target(value) else { continue };
                    match &values.layout(target.type_id).shape {
                        _ if super::is_tuple(values.name(target)) => return Some(target),
                        Shape::Pointer { .. } => open.push(target),
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// The future in a `MaybeDone` or `Option`. Their other variants have no future.
    pub(super) fn unfinished(&self, mut value: Value) -> Option<Value> {
        let values = self.values();
        for _ in 0..8 {
            if !joins::is_maybe_done(values.name(value)) {
                return Some(value);
            }
            let variant = values.active(value)?.1;
            if matches!(&*variant.name, "Done" | "Gone" | "None") {
                return None;
            }
            value = value.part(variant.fields.first()?)?;
        }
        Some(value)
    }

    /// The elements of a list.
    pub(super) fn elements(&self, first: Value, count: u64, place: Place<'_>, out: &mut Vec<AwaitFrame>) {
        let is_several = place.role == Role::Several;
        let place = if is_several { place } else { self.open(place) };
        for number in 0..count.min(MOST_ELEMENTS) {
            let element = self.values().element(first, number);
            let Some(element) = element.filter(|_| self.left.get() > 0) else {
                self.open(place);
                return;
            };
            match is_several {
                false => self.look_into(element, place, out),
                true => {
                    if let Some(element) = self.unfinished(element) {
                        self.look_into(element, self.branch(place), out);
                    }
                }
            }
        }
        if count > MOST_ELEMENTS {
            self.open(place);
        }
    }

    /// The futures of `FuturesUnordered`: a list through all of its tasks.
    pub(super) fn unordered(&self, value: Value, place: Place<'_>, out: &mut Vec<AwaitFrame>) {
        let values = self.values();
        let place = match place.role {
            Role::Several => place,
            Role::Next => {
                let node = self.needs.borrow_mut().add(place.node, Kind::Any, place.content());
                Place { node, ..place }
            }
            Role::Single | Role::Branch => self.open(place),
        };
        let mut task = values.field(value, "head_all").and_then(|head| values.target(head));
        let mut count = 0;
        while let Some(now) = task {
            let future = values.field(now, "future").map(|future| values.unwrapped(future));
            match future {
                Some(future) => {
                    if let Some(future) = self.unfinished(future) {
                        self.look_into(future, self.branch(place), out);
                    }
                }
                None => {
                    self.open(place);
                }
            }
            count += 1;
            if count >= MOST_ELEMENTS || self.left.get() == 0 {
                self.open(place);
                return out.push(lost("", "too many futures"));
            }
            task = values.field(now, "next_all").and_then(|next| values.target(next));
        }
    }
}
