//! Follows one future through memory: its await stack, and what it needs to go on.

mod branches;
mod leaves;
mod services;
mod timers;

use crate::futures::{Form, Part, form};
use crate::needs::{Content, Kind, Needs, NodeId};
use crate::values::{Value, Values};
use crate::walker::{AWAITED, Walker, is_box};
use crate::{joins, names, opaque_futures, wrapper};
use stackglass_layouts::Shape;
use stackglass_profile::Nanos;
use stackglass_profile::runtimes::{INSTRUMENTED, futures, is_generic, tokio};
use stackglass_profile::task_dump::{AwaitFrame, AwaitPoint, SharedKind, WaitTarget};
use std::cell::{Cell, RefCell};

/// Deepest nesting of values.
const DEEPEST: u32 = 400;
/// Most values of one task.
const MOST_VALUES: u32 = 50_000;

/// An await stack.
#[derive(Default)]
pub(crate) struct Walked {
    pub stack: Vec<AwaitFrame>,
    pub waits: Vec<WaitTarget>,
    pub needs: Needs,
    /// When the first timer fires for which it waits (CLOCK_MONOTONIC).
    pub fires_at: Option<Nanos>,
    /// Addresses of the futures in our own wrappers.
    pub wrapped: Vec<u64>,
}

/// One walk.
struct Walk<'a, 'w> {
    walker: &'w Walker<'a>,
    left: Cell<u32>,
    waits: RefCell<Vec<WaitTarget>>,
    needs: RefCell<Needs>,
    fires_at: Cell<Option<Nanos>>,
    wrapped: RefCell<Vec<u64>>,
}

/// What the values on the way are parts of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Of a future that awaits one other.
    Single,
    /// Of one that has several branches: elements of a list are branches.
    Several,
    /// Of one of these branches.
    Branch,
    /// Of one that awaits the next result of a stream.
    Next,
}

/// Where a walk is.
#[derive(Clone, Copy)]
struct Place<'n> {
    depth: u32,
    /// What awaits.
    node: NodeId,
    role: Role,
    /// The value belongs to the coroutine or branch that awaits it: it is not borrowed.
    is_own: bool,
    /// Name of the coroutine that awaits.
    within: &'n str,
    /// What the function around it waits for, if that is known.
    shared: Option<(SharedKind, u64)>,
    /// What is looked for: coroutines, or in futures without any, leaves.
    part: Part,
}

impl Place<'_> {
    fn deeper(self) -> Self {
        Place { depth: self.depth + 1, role: Role::Single, ..self }
    }

    fn with_role(self, role: Role) -> Self {
        Place { role, ..self.deeper() }
    }

    /// What a future here has besides its parts: what a coroutine owns belongs to that.
    fn content(self) -> Content {
        if self.is_own { Content::Nothing } else { Content::Unknown }
    }
}

impl Walker<'_> {
    /// The await stack of a future.
    pub fn walk(&self, future: Value) -> Walked {
        let walk = Walk {
            walker: self,
            left: Cell::new(MOST_VALUES),
            waits: RefCell::default(),
            needs: RefCell::new(Needs::new()),
            fires_at: Cell::new(None),
            wrapped: RefCell::default(),
        };
        let mut stack = Vec::new();
        let (node, role) = (Needs::ROOT, Role::Single);
        let place =
            Place { depth: 0, node, role, is_own: true, within: "", shared: None, part: Part::Future };
        walk.future(future, place, &mut stack);
        Walked {
            stack,
            waits: walk.waits.into_inner(),
            needs: walk.needs.into_inner(),
            fires_at: walk.fires_at.get(),
            wrapped: walk.wrapped.into_inner(),
        }
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
        let known = self.needs.borrow().nodes.len();
        self.look_into(value, place, out);
        if out.len() == before {
            self.needs.borrow_mut().nodes.truncate(known);
            let (value, is_borrowed) = self.stripped(value);
            let place = Place { is_own: place.is_own && !is_borrowed, ..place };
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
        if is_generic(name, tokio::TIMEOUT) {
            self.timeout(value, self.open(place), out);
        } else if is_generic(name, futures::SHARED) {
            match opaque_futures::shared_future(values, value) {
                Some(Ok(future)) => {
                    let mut frame = self.leaf(value, place);
                    frame.point = AwaitPoint::Leaf;
                    self.future(future, place.deeper(), &mut frame.children);
                    out.push(frame);
                }
                Some(Err(why)) => {
                    self.open(place);
                    out.push(lost(names::without_arguments(name), why));
                }
                None => {}
            }
        } else if name.starts_with(futures::UTIL) {
            self.look_into(value, Place { part: Part::Leaf, ..place }, out);
        }
    }

    /// The frames of all coroutines in a value.
    fn look_into(&self, value: Value, place: Place<'_>, out: &mut Vec<AwaitFrame>) {
        if !self.walker.types.lead_to(place.part, value.type_id) {
            return;
        }
        let left = self.left.get();
        if place.depth > DEEPEST || left == 0 {
            self.open(place);
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
                    Some(inner) => {
                        let is_own = place.is_own && !layout.name.contains("&mut ");
                        self.future(inner, Place { is_own, ..place.deeper() }, out);
                    }
                    None => {
                        self.open(place);
                        let name = self.walker.name_by_symbols(value);
                        let name = name.as_deref().unwrap_or(&layout.name);
                        out.push(lost(name, "its type is not in the debug information"));
                    }
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
                if services::is_oneshot(&layout.name)
                    && let Some(service) = self.not_ready(value)
                {
                    return self.waits_for_service(value, service, place, out);
                }
                if is_generic(&layout.name, tokio::TIMEOUT) {
                    return self.timeout(value, self.in_part_of(&layout.name, place), out);
                }
                if let Some((kind, parts)) = joins::kind(&layout.name) {
                    return self.combination_of(value, kind, parts, place, out);
                }
                let place = self.in_part_of(&layout.name, place);
                for part in fields.iter().filter_map(|field| value.part(field)) {
                    self.look_into(part, place, out);
                }
            }
            Shape::Enum { .. } => {
                if services::is_oneshot(&layout.name)
                    && let Some(service) = self.not_ready(value)
                {
                    return self.waits_for_service(value, service, place, out);
                }
                let Some((_, variant)) = values.active(value) else {
                    self.open(place);
                    return;
                };
                let place = self.in_part_of(&layout.name, place);
                for part in variant.fields.iter().filter_map(|field| value.part(field)) {
                    self.look_into(part, place, out);
                }
            }
            Shape::Array { element, count } => {
                self.elements(Value { type_id: *element, ..value }, *count, place, out);
            }
            Shape::Pointer { .. } => {
                let is_own = place.is_own && !layout.name.starts_with("&mut ");
                match values.target(value) {
                    Some(target) if is_tuple(&values.layout(target.type_id).name) => {
                        self.branches(target, Place { is_own, ..self.open(place) }, out);
                    }
                    Some(target) => {
                        self.look_into(target, Place { is_own, ..place.with_role(place.role) }, out);
                    }
                    None => {
                        self.open(place);
                        out.push(lost(&layout.name, "the pointer is not valid"));
                    }
                }
            }
            _ => {}
        }
    }

    /// Where a walk goes on in a part of a struct or enum with this name.
    fn in_part_of<'n>(&self, name: &str, place: Place<'n>) -> Place<'n> {
        match place.role {
            _ if keeps_only(name) => place.with_role(place.role),
            Role::Several | Role::Branch if joins::passes_on(name) => place.with_role(place.role),
            _ if joins::is_next(name) => place.with_role(Role::Next),
            // It may have anything.
            _ => self.open(Place { is_own: false, ..place }),
        }
    }

    /// Where a walk goes on in something that may be able to go on by itself.
    fn open<'n>(&self, place: Place<'n>) -> Place<'n> {
        let mut needs = self.needs.borrow_mut();
        let content = place.content();
        let is_open = |node: &crate::needs::Node| node.kind == Kind::Open && node.content == content;
        let node = match needs.nodes.get(place.node).is_some_and(is_open) {
            true => place.node,
            false => needs.add(place.node, Kind::Open, content),
        };
        Place { node, ..place.deeper() }
    }

    /// Notes the future of our own wrapper.
    fn note_wrapper(&self, value: Value) {
        let values = self.values();
        if wrapper::is_wrapper(values.name(value))
            && let Some(future) = values.field(value, "future")
        {
            self.wrapped.borrow_mut().push(future.address);
        }
    }

    /// A coroutine: the line in which it is suspended, and what it awaits.
    fn coroutine(&self, value: Value, place: Place<'_>) -> AwaitFrame {
        let values = self.values();
        let layout = values.layout(value.type_id);
        let function = self.walker.name(value.type_id);
        let node = |kind| self.needs.borrow_mut().add(place.node, kind, Content::Coroutine(value));
        let Some((index, variant)) = values.active(value) else {
            node(Kind::Open);
            return lost(&function, "its state is not valid");
        };
        let place = Place {
            node: node(if index > 2 { Kind::All } else { Kind::Open }),
            within: &layout.name,
            shared: place.shared.or_else(|| self.shared_of(value, variant, &function)),
            is_own: true,
            ..place.deeper()
        };
        // rustc's order: not started, returned, panicked, suspended at the first await, …
        match index {
            0 => {
                return AwaitFrame {
                    function,
                    point: AwaitPoint::NotStarted,
                    children: Vec::new(),
                    is_race: false,
                };
            }
            1 | 2 => {
                return AwaitFrame {
                    function,
                    point: AwaitPoint::Finished,
                    children: Vec::new(),
                    is_race: false,
                };
            }
            _ => {}
        }
        let awaited = variant.fields.iter().find(|field| &*field.name == AWAITED);
        let line = self.walker.line(value, index);
        let (mut children, mut is_race) = (Vec::new(), false);
        match awaited {
            Some(field) => {
                if let Some(inner) = value.part(field) {
                    let kind = self.walker.macro_kind(value, index);
                    match kind.and_then(|kind| Some((kind, self.borrowed_tuple(inner)?))) {
                        Some((kind, tuple)) => {
                            is_race = kind == Kind::Any;
                            let node = self.needs.borrow_mut().add(place.node, kind, Content::Nothing);
                            self.branches(tuple, Place { node, ..place }, &mut children);
                        }
                        None => self.future(inner, place, &mut children),
                    }
                }
            }
            None => {
                self.open(place);
                children.push(lost("", "the awaited future is not in the debug information"));
            }
        }
        AwaitFrame { function, point: AwaitPoint::Await(line), children, is_race }
    }
}

/// Whether a struct only passes on what its one future does.
fn keeps_only(name: &str) -> bool {
    is_box(name)
        || wrapper::is_wrapper(name)
        || is_generic(name, INSTRUMENTED)
        || is_generic(name, futures::EITHER)
}

/// Whether a future or a part of one with this name polls all futures in it.
fn is_known_to_poll(name: &str) -> bool {
    [futures::UTIL, tokio::TIMEOUT_MODULE, "core::", "alloc::", "&mut ", "["]
        .iter()
        .any(|begin| name.starts_with(begin))
}

fn is_tuple(name: &str) -> bool {
    name.starts_with('(')
}

fn lost(function: &str, why: &'static str) -> AwaitFrame {
    AwaitFrame {
        function: function.into(),
        point: AwaitPoint::Lost(why),
        children: Vec::new(),
        is_race: false,
    }
}
