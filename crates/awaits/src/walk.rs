//! Follows one future through memory: its await stack.

mod leaves;

use crate::futures::{Form, Futures, Part, form};
use crate::names;
use crate::tokio::Headers;
use crate::values::{Value, Values};
use crate::{hidden, joins, wrapped};
use foldhash::HashMap;
use stackglass_profile::task_dump::{AwaitFrame, AwaitPoint, Wait};
use stackglass_symbols::layouts::{Shape, TypeId, is_coroutine};
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// Deepest nesting of values.
const DEEPEST: u32 = 400;
/// Most values of one task.
const MOST_VALUES: u32 = 50_000;
/// Most elements of a list of futures.
const MOST_ELEMENTS: u64 = 10_000;
/// Name of the field of a suspended coroutine that holds what it awaits.
const AWAITED: &str = "__awaitee";

/// What walks need.
pub(crate) struct Walker<'a> {
    pub values: &'a Values<'a>,
    pub types: &'a Futures<'a>,
    /// Types by the address of their vtable, sorted.
    pub vtables: &'a [(u64, TypeId)],
    pub headers: Headers,
    /// Wrapped futures that are part of tasks in the dump.
    pub wrapped: RefCell<wrapped::Known>,
    /// Functions of coroutines, and types of leaves without their arguments, by type.
    names: RefCell<HashMap<TypeId, Arc<str>>>,
}

/// An await stack.
#[derive(Default)]
pub(crate) struct Walked {
    pub stack: Vec<AwaitFrame>,
    pub waits: Vec<Wait>,
    /// Addresses of the futures in our own wrappers.
    pub wrapped: Vec<u64>,
}

/// One walk.
struct Walk<'a, 'w> {
    walker: &'w Walker<'a>,
    left: Cell<u32>,
    waits: RefCell<Vec<Wait>>,
    wrapped: RefCell<Vec<u64>>,
}

/// Whether what is awaited is needed for the task to go on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    Always,
    /// Another branch of `try_join!` may fail.
    UnlessFails,
    /// A timeout or another branch may end the wait.
    No,
}

/// Where a walk is.
#[derive(Clone, Copy)]
struct Place<'n> {
    depth: u32,
    need: Need,
    /// Directly in a future that waits for all of its parts.
    joins: bool,
    /// Name of the coroutine that awaits.
    within: &'n str,
    /// What is looked for: coroutines, or in futures without any, leaves.
    part: Part,
}

impl Place<'_> {
    fn deeper(self) -> Self {
        Place { depth: self.depth + 1, joins: false, ..self }
    }

    fn among_others(self) -> Self {
        match self.joins {
            true => self.deeper(),
            false => Place { need: Need::No, ..self.deeper() },
        }
    }

    /// In a part of a struct with this name.
    fn in_part_of(self, name: &str) -> Self {
        match joins::kind(name) {
            Some(joins::Kind::All) => Place { joins: true, ..self.deeper() },
            Some(joins::Kind::Try) => Place { joins: true, ..self.deeper().unless_fails() },
            None if keeps_only(name) || self.joins && joins::passes_on(name) => {
                Place { joins: self.joins, ..self.deeper() }
            }
            None => Place { need: Need::No, ..self.deeper() },
        }
    }

    fn unless_fails(self) -> Self {
        Place { need: if self.need == Need::Always { Need::UnlessFails } else { self.need }, ..self }
    }
}

impl<'a> Walker<'a> {
    /// Nothing is walked yet.
    pub fn new(
        values: &'a Values<'a>,
        types: &'a Futures<'a>,
        vtables: &'a [(u64, TypeId)],
        headers: Headers,
    ) -> Walker<'a> {
        let (wrapped, names) = (RefCell::default(), RefCell::default());
        Walker { values, types, vtables, headers, wrapped, names }
    }

    /// What a frame of a future is called.
    fn name(&self, future: TypeId) -> Arc<str> {
        let name = || match &*self.values.layout(future).name {
            name if is_coroutine(name) => names::function(name, self.values.layouts.coroutines()),
            name => names::without_arguments(name).into(),
        };
        self.names.borrow_mut().entry(future).or_insert_with(name).clone()
    }

    /// The await stack of a future.
    pub fn walk(&self, future: Value) -> Walked {
        let walk = Walk {
            walker: self,
            left: Cell::new(MOST_VALUES),
            waits: RefCell::default(),
            wrapped: RefCell::default(),
        };
        let mut stack = Vec::new();
        let place = Place { depth: 0, need: Need::Always, joins: false, within: "", part: Part::Future };
        walk.future(future, place, &mut stack);
        Walked { stack, waits: walk.waits.into_inner(), wrapped: walk.wrapped.into_inner() }
    }

    /// The line in which a coroutine is suspended, by the index of its state.
    pub fn line(&self, coroutine: Value, state: usize) -> Option<(Arc<str>, u32)> {
        let Shape::Enum { variants, .. } = &self.values.layout(coroutine.type_id).shape else { return None };
        let awaited = variants.get(state)?.fields.iter().find(|field| &*field.name == AWAITED);
        let coroutines = self.values.layouts.coroutines();
        let mut line = coroutines.line(coroutine.type_id, state);
        // The body of a macro is in another file.
        if let (Some(field), Some(own), Some(found)) = (awaited, coroutines.line(coroutine.type_id, 0), line)
            && own.file != found.file
        {
            line = coroutines.macro_call(field.type_id).or(line);
        }
        line.map(|line| (line.file.clone(), line.line))
    }

    /// Which macro's code a coroutine is suspended in, if it waits for all of its branches.
    fn macro_kind(&self, coroutine: Value, state: usize) -> Option<joins::Kind> {
        let line = self.values.layouts.coroutines().line(coroutine.type_id, state)?;
        joins::of_macro(&line.file)
    }

    /// The future in a `Pin<Box<_>>`, as far as its type is known. `None` for all others.
    pub fn boxed(&self, mut future: Value) -> Option<Value> {
        let mut boxes = 0;
        while is_wrapper(self.values.name(future)) && boxes < 8 {
            future = match form(self.values.layouts, future.type_id) {
                Form::Dynamic => self.dynamic(future)?,
                _ => self.values.target(future)?,
            };
            boxes += 1;
        }
        (boxes > 0).then_some(future)
    }

    /// The type and the address of a value behind a `dyn` pointer.
    pub fn dynamic(&self, pointer: Value) -> Option<Value> {
        let Shape::Struct(fields) = &self.values.layout(pointer.type_id).shape else { return None };
        let vtable = self.values.word(self.values.field(pointer, "vtable")?)?;
        let data = fields.iter().find(|field| &*field.name != "vtable")?;
        let address = self.values.pages.word(pointer.address.checked_add(data.offset)?)?;
        let at = self.vtables.binary_search_by_key(&vtable, |(address, _)| *address).ok()?;
        Some(Value { type_id: self.vtables[at].1, address })
    }
}

impl<'a> Walk<'a, '_> {
    fn values(&self) -> &'a Values<'a> {
        self.walker.values
    }

    /// The frames of a future; a leaf if no coroutine is found in it.
    fn future(&self, value: Value, place: Place<'_>, out: &mut Vec<AwaitFrame>) {
        let before = out.len();
        let place = Place { part: Part::Future, ..place };
        self.look_into(value, place, out);
        if out.len() == before {
            let value = self.stripped(value);
            self.combination(value, place, out);
            if out.len() == before {
                out.push(self.leaf(value, place));
            }
        }
    }

    /// The parts of a future without coroutines that is known to combine others.
    fn combination(&self, value: Value, place: Place<'_>, out: &mut Vec<AwaitFrame>) {
        let values = self.values();
        let name = values.name(value);
        if place.depth > DEEPEST || self.left.get() == 0 {
            return;
        }
        if name.starts_with("tokio::time::timeout::Timeout<") {
            let (value, delay) = (values.field(value, "value"), values.field(value, "delay"));
            // In tokio 1.54 it is an `Option`.
            let delay = delay.and_then(|delay| self.unfinished(delay));
            for part in [value, delay].into_iter().flatten() {
                self.future(part, Place { need: Need::No, ..place.deeper() }, out);
            }
        } else if name.starts_with(hidden::SHARED) {
            match hidden::shared_future(values, value) {
                Some(Ok(future)) => {
                    let mut frame = self.leaf(value, place);
                    frame.point = AwaitPoint::Leaf;
                    self.future(future, place.deeper(), &mut frame.children);
                    out.push(frame);
                }
                Some(Err(why)) => out.push(lost(names::without_arguments(name), why)),
                None => {}
            }
        } else if place.joins && name.starts_with("core::future::poll_fn::PollFn<") {
            // `join!` of futures without coroutines: its closure borrows a tuple of them.
            if let Some(tuple) = self.borrowed_tuple(value) {
                self.branches(tuple, place, out);
            }
        } else if name.starts_with("futures_util::") {
            self.look_into(value, Place { part: Part::Leaf, ..place }, out);
        }
    }

    /// The tuple to which a closure in `PollFn` has a reference.
    fn borrowed_tuple(&self, poll_fn: Value) -> Option<Value> {
        let values = self.values();
        let mut open = vec![poll_fn];
        for _ in 0..32 {
            let value = open.pop()?;
            match &values.layout(value.type_id).shape {
                Shape::Struct(fields) => open.extend(fields.iter().filter_map(|field| value.part(field))),
                Shape::Pointer { .. } => {
                    let tuple = values.target(value);
                    let tuple = tuple.filter(|tuple| is_tuple(values.name(*tuple)));
                    if tuple.is_some() {
                        return tuple;
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// The frames of all coroutines in a value.
    fn look_into(&self, value: Value, place: Place<'_>, out: &mut Vec<AwaitFrame>) {
        if !self.walker.types.lead_to(place.part, value.type_id) {
            return;
        }
        let left = self.left.get();
        if place.depth > DEEPEST || left == 0 {
            out.push(lost("", if left == 0 { "too many values" } else { "nested too deep" }));
            return;
        }
        self.left.set(left - 1);
        let values = self.values();
        let layout = values.layout(value.type_id);
        match form(values.layouts, value.type_id) {
            Form::Coroutine => return out.push(self.coroutine(value, place)),
            Form::Dynamic => {
                return match self.walker.dynamic(value) {
                    Some(inner) => self.future(inner, place.deeper(), out),
                    None => out.push(lost(&layout.name, "its type is not in the debug information")),
                };
            }
            Form::Slice => {
                let Some((first, count)) = values.slice(value) else { return };
                return self.elements(first, count, place, out);
            }
            Form::Vector(element) => {
                let Some((first, count)) = values.vector(value, element) else { return };
                return self.elements(first, count, place, out);
            }
            Form::Unordered => return self.unordered(value, place, out),
            Form::Leaf if place.part == Part::Leaf => return out.push(self.leaf(value, place)),
            // Only libraries that are known poll all that they have.
            _ if place.part == Part::Leaf && !is_known_to_poll(&layout.name) => return,
            Form::Leaf | Form::Guard | Form::Other => {}
        }
        match &layout.shape {
            Shape::Struct(fields) => {
                self.note_wrapper(value);
                let place = place.in_part_of(&layout.name);
                for part in fields.iter().filter_map(|field| value.part(field)) {
                    self.look_into(part, place, out);
                }
            }
            Shape::Enum { .. } => {
                let Some((_, variant)) = values.active(value) else { return };
                let place = place.in_part_of(&layout.name);
                for part in variant.fields.iter().filter_map(|field| value.part(field)) {
                    self.look_into(part, place, out);
                }
            }
            Shape::Array { element, count } => {
                self.elements(Value { type_id: *element, ..value }, *count, place, out);
            }
            Shape::Pointer { .. } => match values.target(value) {
                Some(target) if is_tuple(&values.layout(target.type_id).name) => {
                    self.branches(target, place, out);
                }
                Some(target) => self.look_into(target, Place { joins: place.joins, ..place.deeper() }, out),
                None => out.push(lost(&layout.name, "the pointer is not valid")),
            },
            _ => {}
        }
    }

    /// Notes the future of our own wrapper.
    fn note_wrapper(&self, value: Value) {
        let values = self.values();
        if wrapped::is_wrapper(values.name(value))
            && let Some(future) = values.field(value, "future")
        {
            self.wrapped.borrow_mut().push(future.address);
        }
    }

    fn elements(&self, first: Value, count: u64, place: Place<'_>, out: &mut Vec<AwaitFrame>) {
        for number in 0..count.min(MOST_ELEMENTS) {
            let Some(element) = self.values().element(first, number) else { return };
            let place = match place.joins {
                true => Place { joins: true, ..place.deeper() },
                false => place.among_others(),
            };
            self.look_into(element, place, out);
            if self.left.get() == 0 {
                return;
            }
        }
    }

    /// A coroutine: the line in which it is suspended, and what it awaits.
    fn coroutine(&self, value: Value, place: Place<'_>) -> AwaitFrame {
        let values = self.values();
        let layout = values.layout(value.type_id);
        let function = self.walker.name(value.type_id);
        let Some((index, variant)) = values.active(value) else {
            return lost(&function, "its state is not valid");
        };
        // rustc's order: not started, returned, panicked, suspended at the first await, …
        match index {
            0 => return AwaitFrame { function, point: AwaitPoint::NotStarted, children: Vec::new() },
            1 | 2 => return AwaitFrame { function, point: AwaitPoint::Finished, children: Vec::new() },
            _ => {}
        }
        let awaited = variant.fields.iter().find(|field| &*field.name == AWAITED);
        let line = self.walker.line(value, index);
        let mut children = Vec::new();
        match awaited {
            Some(field) => {
                if let Some(inner) = value.part(field) {
                    let place = Place { within: &layout.name, ..place.deeper() };
                    let place = match self.walker.macro_kind(value, index) {
                        Some(joins::Kind::All) => Place { joins: true, ..place },
                        Some(joins::Kind::Try) => Place { joins: true, ..place.unless_fails() },
                        None => place,
                    };
                    self.future(inner, place, &mut children);
                }
            }
            None => children.push(lost("", "the awaited future is not in the debug information")),
        }
        AwaitFrame { function, point: AwaitPoint::Await(line), children }
    }

    /// The futures of `select!` and `join!`: each element of a tuple is one. Those that have finished are left out.
    fn branches(&self, tuple: Value, place: Place<'_>, out: &mut Vec<AwaitFrame>) {
        let values = self.values();
        let Shape::Struct(fields) = &values.layout(tuple.type_id).shape else { return };
        for field in fields {
            if let Some(branch) = tuple.part(field).and_then(|branch| self.unfinished(branch)) {
                self.future(branch, place.among_others(), out);
            }
        }
    }

    /// The future in a `MaybeDone`. Its other variants have no future.
    fn unfinished(&self, mut value: Value) -> Option<Value> {
        let values = self.values();
        for _ in 0..8 {
            let is_coroutine = form(values.layouts, value.type_id) == Form::Coroutine;
            if is_coroutine || !matches!(values.layout(value.type_id).shape, Shape::Enum { .. }) {
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

    /// The futures of `FuturesUnordered`: a list through all of its tasks.
    fn unordered(&self, value: Value, place: Place<'_>, out: &mut Vec<AwaitFrame>) {
        let values = self.values();
        let mut task = values.field(value, "head_all").and_then(|head| values.target(head));
        let mut count = 0;
        while let Some(now) = task {
            if let Some(future) = values.field(now, "future") {
                let place = match place.joins {
                    true => Place { joins: true, ..place.deeper() },
                    false => place.among_others(),
                };
                self.look_into(future, place, out);
            }
            count += 1;
            if count >= MOST_ELEMENTS || self.left.get() == 0 {
                return out.push(lost("", "too many futures"));
            }
            task = values.field(now, "next_all").and_then(|next| values.target(next));
        }
    }
}

/// Whether a struct only passes on what its one future does.
fn keeps_only(name: &str) -> bool {
    is_wrapper(name) || wrapped::is_wrapper(name) || name.starts_with("tracing::instrument::Instrumented<")
}

fn is_wrapper(name: &str) -> bool {
    name.starts_with("core::pin::Pin<")
        || name.starts_with("alloc::boxed::Box<")
        || name.starts_with("tokio::task::coop::Coop<")
        || name.starts_with("core::mem::manually_drop::ManuallyDrop<")
}

/// Whether a future or a part of one with this name polls all futures in it.
fn is_known_to_poll(name: &str) -> bool {
    ["futures_util::", "tokio::time::timeout::", "core::", "alloc::", "&mut ", "["]
        .iter()
        .any(|begin| name.starts_with(begin))
}

fn is_tuple(name: &str) -> bool {
    name.starts_with('(')
}

fn lost(function: &str, why: &'static str) -> AwaitFrame {
    AwaitFrame { function: function.into(), point: AwaitPoint::Lost(why), children: Vec::new() }
}
