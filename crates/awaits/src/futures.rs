//! Which types lead to futures, and which to guards of locks. Others are never looked into.

use crate::ends;
use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};
use stackglass_layouts::{Field, Layouts, Shape, TypeId, Variant, is_coroutine};
use stackglass_profile::runtimes::{
    BLOCKING_GUARDS, OTHER_MUTEXES, RECEIVING, SENDING, futures, is_generic, tokio,
};
use std::cell::RefCell;

/// What a value may contain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    /// A coroutine, or a `dyn Future`.
    Future = 1,
    /// A guard of a lock.
    Guard = 2,
    /// A future that is no coroutine: [`Form::Leaf`].
    Leaf = 4,
    /// A future where it is not followed: behind an `Arc`, an `Rc` or a raw pointer, or in a union.
    Hidden = 8,
    /// An end of a channel, or a `Notify` or `Barrier`, also behind an `Arc`.
    End = 16,
}

const BOTH: u8 = Part::Future as u8 | Part::Guard as u8;
const ALL: u8 = BOTH | Part::Leaf as u8 | Part::Hidden as u8 | Part::End as u8;

/// What of a type's parts counts for it.
#[derive(Clone, Copy)]
enum Pass {
    /// What has these bits.
    Bits(u8),
    /// A future in it is hidden.
    Hides,
}

impl Pass {
    fn of(self, parts: u8) -> u8 {
        match self {
            Pass::Bits(bits) => parts & bits,
            Pass::Hides if parts & (Part::Future as u8 | Part::Hidden as u8) != 0 => Part::Hidden as u8,
            Pass::Hides => 0,
        }
    }
}

/// How a type is looked into.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    Coroutine,
    /// A guard of a lock.
    Guard,
    /// A future that is no coroutine, but of which it is known what it waits for.
    Leaf,
    /// A pointer to a `dyn` future or stream.
    Dynamic,
    /// A boxed slice.
    Slice,
    /// `FuturesUnordered`.
    Unordered,
    /// A `Vec` of elements of this type.
    Vector(TypeId),
    Other,
}

/// Types that lead to futures or guards.
pub(crate) struct Futures<'a> {
    layouts: &'a Layouts,
    known: RefCell<HashMap<TypeId, u8>>,
}

impl<'a> Futures<'a> {
    pub fn new(layouts: &'a Layouts) -> Futures<'a> {
        Futures { layouts, known: RefCell::new(HashMap::new()) }
    }

    /// With what was found for these layouts before.
    pub fn known(layouts: &'a Layouts, known: HashMap<TypeId, u8>) -> Futures<'a> {
        Futures { layouts, known: RefCell::new(known) }
    }

    /// What was found.
    pub fn into_known(self) -> HashMap<TypeId, u8> {
        self.known.into_inner()
    }

    /// Whether a value of this type may contain such a part.
    pub fn lead_to(&self, part: Part, type_id: TypeId) -> bool {
        if let Some(known) = self.known.borrow().get(&type_id) {
            return known & part as u8 != 0;
        }
        self.find(type_id);
        self.known.borrow().get(&type_id).is_some_and(|known| known & part as u8 != 0)
    }

    /// Finds what all types within a type lead to. Types may contain pointers to each other, so what is found is passed on
    /// until nothing changes.
    fn find(&self, root: TypeId) {
        let mut known = self.known.borrow_mut();
        let mut found: HashMap<TypeId, u8> = HashMap::new();
        let mut users: HashMap<TypeId, Vec<(TypeId, Pass)>> = HashMap::new();
        let mut open = vec![root];
        let mut seen = HashSet::new();
        let mut changed = Vec::new();
        while let Some(type_id) = open.pop() {
            if !seen.insert(type_id) {
                continue;
            }
            if let Some(known) = known.get(&type_id) {
                found.insert(type_id, *known);
                changed.push(type_id);
                continue;
            }
            let own = self.parts_of(type_id, &mut |part, pass| {
                users.entry(part).or_default().push((type_id, pass));
                open.push(part);
            });
            found.insert(type_id, own);
            changed.push(type_id);
        }
        while let Some(type_id) = changed.pop() {
            let parts = found.get(&type_id).copied().unwrap_or(0);
            for (user, pass) in users.get(&type_id).into_iter().flatten() {
                let of_user = found.entry(*user).or_insert(0);
                let passed = pass.of(parts);
                if *of_user | passed != *of_user {
                    *of_user |= passed;
                    changed.push(*user);
                }
            }
        }
        known.extend(found);
    }

    /// What a type is by itself. `visit` receives the types of its parts, and what of them counts.
    fn parts_of(&self, type_id: TypeId, visit: &mut dyn FnMut(TypeId, Pass)) -> u8 {
        let layout = self.layouts.get(type_id);
        if ends::role(&layout.name).is_some() {
            let leaf = if form(self.layouts, type_id) == Form::Leaf { Part::Leaf as u8 } else { 0 };
            return Part::End as u8 | leaf;
        }
        let mut own = 0;
        // What the runtime and its channels share belongs to no task.
        let all =
            Pass::Bits(if layout.name.starts_with(tokio::CRATE) { ALL & !(Part::Hidden as u8) } else { ALL });
        match form(self.layouts, type_id) {
            Form::Coroutine if shadows(&layout.shape) => own = BOTH,
            Form::Coroutine => own = Part::Future as u8,
            Form::Guard => return Part::Guard as u8,
            Form::Leaf => return Part::Leaf as u8,
            Form::Dynamic => return BOTH | Part::End as u8,
            Form::Unordered => {
                layout.arguments.iter().for_each(|(_, argument)| visit(*argument, all));
                return Part::Future as u8;
            }
            Form::Vector(element) => {
                visit(element, all);
                return 0;
            }
            Form::Slice => {
                if let Some(element) = element_of(self.layouts, type_id) {
                    visit(element, all);
                }
                return 0;
            }
            Form::Other => {}
        }
        if is_shared(&layout.name) {
            layout.arguments.iter().for_each(|(_, argument)| visit(*argument, Pass::Bits(Part::End as u8)));
        }
        match &layout.shape {
            Shape::Struct(fields) => fields.iter().for_each(|field| visit(field.type_id, all)),
            Shape::Enum { variants, .. } => {
                let fields = variants.iter().flat_map(|variant| &variant.fields);
                fields.for_each(|field| visit(field.type_id, all));
            }
            // What a task borrows exclusively belongs to it as well: macros borrow the futures that they poll.
            Shape::Pointer { target: Some(target) }
                if is_owner(&layout.name) || layout.name.starts_with("&mut ") =>
            {
                visit(*target, all);
            }
            Shape::Pointer { target: Some(target) } if layout.name.starts_with('*') => {
                visit(*target, Pass::Hides);
            }
            Shape::Union(fields) => fields.iter().for_each(|field| visit(field.type_id, Pass::Hides)),
            Shape::Array { element, .. } => visit(*element, all),
            _ => {}
        }
        own
    }
}

/// How a type is looked into.
pub(crate) fn form(layouts: &Layouts, type_id: TypeId) -> Form {
    let layout = layouts.get(type_id);
    let name = &*layout.name;
    if is_coroutine(name) {
        return Form::Coroutine;
    }
    if is_leaf(name) {
        return Form::Leaf;
    }
    let Shape::Struct(fields) = &layout.shape else { return Form::Other };
    let has = |wanted: &str| fields.iter().any(|field| &*field.name == wanted);
    if has("vtable") && fields.len() == 2 {
        let is_future =
            is_dyn_future(name) || fields.iter().any(|field| is_dyn_future(&layouts.get(field.type_id).name));
        return match is_future {
            true => Form::Dynamic,
            false => Form::Other,
        };
    }
    if has("data_ptr") && has("length") {
        return match is_owner(name) || name.starts_with("&mut ") {
            true => Form::Slice,
            false => Form::Other,
        };
    }
    if name.starts_with("alloc::vec::Vec<") {
        let element = layout.arguments.iter().find(|(name, _)| &**name == "T");
        return element.map_or(Form::Other, |(_, element)| Form::Vector(*element));
    }
    if is_generic(name, futures::UNORDERED) {
        return Form::Unordered;
    }
    if is_guard(name) {
        return Form::Guard;
    }
    Form::Other
}

/// Whether a pointer with this name is to a `dyn` future or stream. Another trait may have a future as an associated type, as that of
/// services: `dyn Service<…, Future=Pin<Box<dyn Future>>>`.
fn is_dyn_future(name: &str) -> bool {
    let Some((_, of_trait)) = name.split_once("dyn ") else { return false };
    let path = of_trait.split(['<', ' ', '+', ')', ',', '>']).next().unwrap_or(of_trait);
    path.ends_with("future::Future") || path.ends_with("stream::Stream")
}

/// Whether this is a future that is no coroutine, but of which it is known what it waits for.
fn is_leaf(name: &str) -> bool {
    matches!(name, tokio::ACQUIRE | tokio::NOTIFIED | tokio::SLEEP)
        || is_generic(name, tokio::JOIN_HANDLE)
        || is_generic(name, tokio::ONESHOT_RECEIVER)
        || RECEIVING.iter().chain(&SENDING).any(|path| is_generic(name, path))
        || OTHER_MUTEXES.iter().any(|(_, future, _)| is_generic(name, future))
}

/// Whether a value of a type with this name shares what it points to.
pub(crate) fn is_shared(name: &str) -> bool {
    name.starts_with("alloc::sync::Arc<")
}

/// Whether values of a type with this name own what they point to, and wake it.
fn is_owner(name: &str) -> bool {
    name.starts_with("alloc::boxed::Box<") || name.starts_with("core::pin::Pin<")
}

/// Whether this is a guard of `Mutex`, `RwLock` or `Semaphore`.
fn is_guard(name: &str) -> bool {
    if OTHER_MUTEXES.iter().any(|(.., guards)| name.starts_with(guards))
        || BLOCKING_GUARDS.iter().any(|(guards, ..)| name.starts_with(guards))
    {
        return true;
    }
    let Some(rest) = name.strip_prefix(tokio::SYNC) else { return false };
    let path = rest.split('<').next().unwrap_or(rest);
    let last = path.rsplit("::").next().unwrap_or(path);
    last.ends_with("Guard") || matches!(last, "SemaphorePermit" | "OwnedSemaphorePermit")
}

/// Whether a state of a coroutine has a variable that shadows another: rustc 1.95 describes both like the first one, so that the
/// second is somewhere in the bytes that belong to no variable.
fn shadows(coroutine: &Shape) -> bool {
    let Shape::Enum { variants, .. } = coroutine else { return false };
    variants.iter().any(has_hidden_variable)
}

/// The same, for one state.
pub(crate) fn has_hidden_variable(state: &Variant) -> bool {
    let fields = state.fields.iter().enumerate();
    fields.clone().any(|(at, field)| {
        let is_same = |other: &Field| other.name == field.name && other.offset == field.offset;
        state.fields[at + 1..].iter().any(is_same)
    })
}

/// The type of the elements of a boxed slice.
pub(crate) fn element_of(layouts: &Layouts, type_id: TypeId) -> Option<TypeId> {
    let Shape::Struct(fields) = &layouts.get(type_id).shape else { return None };
    let pointer = fields.iter().find(|field| &*field.name == "data_ptr")?;
    match layouts.get(pointer.type_id).shape {
        Shape::Pointer { target } => target,
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::is_dyn_future;

    #[test]
    fn only_the_trait_itself_makes_a_future() {
        let future = "dyn core::future::future::Future<Output=()>";
        assert!(is_dyn_future(&format!(
            "alloc::boxed::Box<({future} + core::marker::Send), alloc::alloc::Global>"
        )));
        assert!(is_dyn_future(&format!("*mut {future}")));
        assert!(is_dyn_future("&mut dyn futures_core::stream::Stream<Item=u8>"));
        let service =
            format!("dyn tower_service::Service<u8, Future=core::pin::Pin<alloc::boxed::Box<{future}>>>");
        assert!(!is_dyn_future(&format!("alloc::boxed::Box<{service}, alloc::alloc::Global>")));
        assert!(!is_dyn_future("*mut u8"));
    }
}
