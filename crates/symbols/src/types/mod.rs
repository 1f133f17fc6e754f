//! Types of allocations, by the functions in their stacks.
//!
//! Rust does not pass types to the allocator, but the containers that call it are generic: the frame
//! `RawVec<String>::grow_one` allocates strings. A table of rules (`rules`) tells which functions of the standard
//! libraries allocate what; their generic arguments are in debug information and in new symbols (`arguments`); one
//! frame of the stack decides (`stack`), and its type is shortened to what a programmer writes (`display`). C++ has
//! its own rules (`cpp`).

mod arguments;
mod cpp;
mod display;
mod rules;
mod stack;

pub use cpp::node as cpp_node;
pub use display::{block as named_block, initialized, is_short, short};
pub use rules::Family;
pub use stack::Contents;

use foldhash::{HashMap, HashSet};
use rules::{Argument, Role, Rule};
use stack::{Container, Layer, Place};
use stackglass_debug_info::naming::name_of_symbol;
use stackglass_debug_info::rust_path;
use stackglass_profile::{AllocationKind, Frame, LocationId, Recording, StackId};
use std::sync::Arc;

/// What is known of the code at a location, besides its frames.
#[derive(Debug, Default)]
pub(crate) struct Details {
    /// Names of the frames with generic arguments. Empty without debug information.
    pub arguments: Vec<Option<Arc<str>>>,
    /// Symbols of the function with the code, if there are several.
    pub names: Vec<String>,
}

/// The locations in stacks of allocations whose type is unknown.
pub(crate) fn locations(recording: &Recording) -> HashSet<LocationId> {
    let mut found = HashSet::default();
    for stack in stacks(recording) {
        found.extend(recording.stacks.walk(stack));
    }
    found
}

/// Stacks of blocks whose type is unknown, without duplicates.
fn stacks(recording: &Recording) -> Vec<StackId> {
    let blocks = recording.allocations.groups.iter().filter(|group| group.kind == AllocationKind::Block);
    let mut stacks: Vec<StackId> = blocks.map(|group| group.stack).collect();
    stacks.sort_unstable();
    stacks.dedup();
    stacks.retain(|stack| recording.symbols.allocated_type(*stack).is_none());
    stacks
}

/// Sets the types of all allocations that the frames of their stacks tell, and returns what the blocks contain.
pub(crate) fn set(
    recording: &mut Recording,
    details: &HashMap<LocationId, Details>,
) -> Vec<(StackId, Contents)> {
    let mut places: HashMap<LocationId, Place> = HashMap::default();
    let mut names: HashSet<Arc<str>> = HashSet::default();
    let mut near = Vec::new();
    let mut known = Vec::new();
    for stack in stacks(recording) {
        near.clear();
        for location in recording.stacks.walk(stack) {
            let place = places.entry(location).or_insert_with(|| {
                let frames = recording.symbols.frames_of(location);
                place(frames, details.get(&location).unwrap_or(&Details::default()))
            });
            near.push(location);
            // Nothing further out can decide.
            if place.layers.iter().any(|layer| matches!(layer, Layer::Other)) {
                break;
            }
        }
        let Some(decision) = stack::decide(near.iter().map(|location| &places[location])) else { continue };
        known.extend(decision.contents.map(|contents| (stack, contents)));
        let name = decision.name;
        let name = match names.get(&*name) {
            Some(known) => known.clone(),
            None => {
                let name: Arc<str> = Arc::from(name);
                names.insert(name.clone());
                name
            }
        };
        recording.symbols.set_allocated_type(stack, name);
    }
    known
}

fn place<'frames>(frames: impl Iterator<Item = &'frames Frame>, details: &Details) -> Place {
    let complete = !details.arguments.is_empty();
    let layers: Vec<Layer> = frames
        .enumerate()
        .map(|(at, frame)| {
            let arguments = details.arguments.get(at).and_then(|name| name.as_deref());
            let full = frame.spec.as_deref().unwrap_or(&frame.func);
            layer(&frame.func, full, frame.foreign, arguments, complete)
        })
        .collect();
    Place { layers, complete, folded: is_folded(&details.names) }
}

fn layer(path: &str, full: &str, foreign: bool, arguments: Option<&str>, complete: bool) -> Layer {
    if foreign {
        return cpp::layer(path, full, complete);
    }
    if rules::is_transparent(path, full) {
        return Layer::Transparent;
    }
    match rules::find(path) {
        Some(rule) => Layer::Container(Container {
            family: rule.family,
            role: rule.role,
            alone: rule.role == Role::Closed || is_alone(full),
            a_type: type_by(rule, full, arguments),
        }),
        None => Layer::Other,
    }
}

/// Whether the function allocates for one container alone: it runs no code of other types but those of `core`, which
/// allocate nothing.
fn is_alone(full: &str) -> bool {
    let starts = |path: &str, starts: &[&str]| starts.iter().any(|start| path.starts_with(start));
    // A container may be an element of another.
    let containers = [
        "alloc::vec::",
        "alloc::slice::",
        "alloc::rc::Rc",
        "alloc::sync::Arc",
        "alloc::collections::linked_list::",
        "hashbrown::raw::",
    ];
    let helpers = [
        "core::",
        "alloc::vec::spec_",
        "alloc::vec::into_iter::",
        "alloc::collections::btree::",
        "alloc::alloc::Global",
    ];
    let (mut count, mut others) = (0, false);
    for path in arguments::paths(full) {
        if path.contains('{') {
            others = true;
        } else if !starts(path, &helpers) {
            count += 1;
            others |= !starts(path, &containers);
        }
    }
    count <= 1 && !others && !full.contains("dyn ") && !full.contains("fn(") && arguments::is_concrete(full)
}

/// The type at the place that the rule names: in debug information if possible, else in the symbol.
fn type_by(rule: &Rule, full: &str, arguments: Option<&str>) -> Option<String> {
    let number = match rule.argument {
        Argument::Fixed(name) => return Some(name.to_owned()),
        Argument::Number(number) => number,
        Argument::Slice | Argument::ElementOfArray => 0,
        Argument::Entry => return entry(full),
        Argument::Own => {
            let own = arguments::self_type(full).filter(|own| arguments::is_concrete(own));
            return own.map(str::to_owned);
        }
    };
    let usable = |text: &&str| arguments::is_concrete(text) && !text.starts_with("alloc::alloc::Global");
    let listed = arguments.map(arguments::last).unwrap_or_default();
    if let Some(found) = listed.get(number).copied().filter(usable) {
        return match rule.argument {
            Argument::Slice => Some(format!("[{found}]")),
            Argument::ElementOfArray => element(found),
            _ => Some(found.to_owned()),
        };
    }
    let listed = match arguments::self_type(full) {
        Some(a_type) if rust_path::path(a_type) == rule.owner => arguments::last(a_type),
        Some(_) => return None,
        None => arguments::last(full),
    };
    let found = listed.get(number).copied().filter(usable)?;
    if rule.argument == Argument::ElementOfArray { element(found) } else { Some(found.to_owned()) }
}

/// `T` of `[T; 4]`.
fn element(array: &str) -> Option<String> {
    let (element, _) = array.strip_prefix('[')?.strip_suffix(']')?.rsplit_once("; ")?;
    Some(element.to_owned())
}

/// Key and value in the type of a method of trees: `<NodeRef<Mut, u64, app::A, Leaf>>::push`.
fn entry(full: &str) -> Option<String> {
    let own = arguments::self_type(full)?;
    let node = own.find("::NodeRef<").map(|at| &own[at..]);
    let listed = match node {
        Some(node) => arguments::first(node).into_iter().skip(1).collect(),
        None => arguments::first(own),
    };
    let [key, value, ..] = listed[..] else { return None };
    [key, value].iter().all(|one| arguments::is_concrete(one)).then(|| format!("<{key}, {value}>"))
}

/// Whether several functions have the same code. If all allocate the same type, they count as one.
fn is_folded(symbols: &[String]) -> bool {
    let mangled = |name: &&String| name.starts_with("_Z") || name.starts_with("_R");
    let mut distinct: Vec<(String, Layer)> = Vec::new();
    for symbol in symbols.iter().filter(mangled) {
        let named = name_of_symbol(symbol);
        let full = named.spec.as_deref().unwrap_or(&named.func);
        // Hashes of old symbols are all that differs between instances.
        let hash = symbol.rfind("17h").filter(|_| !named.foreign && symbol.starts_with("_ZN"));
        let hash = hash.and_then(|at| symbol.get(at..at + 19)).unwrap_or_default();
        distinct.push((format!("{full}{hash}"), layer(&named.func, full, named.foreign, None, false)));
    }
    let Some(((name, layer), others)) = distinct.split_first() else { return false };
    let known = match layer {
        Layer::Container(container) => container.a_type.is_some(),
        Layer::Known(_) => true,
        _ => false,
    };
    let same = |other: &(String, Layer)| match (&other.1, layer) {
        (Layer::Container(one), Layer::Container(other)) => {
            known && one.a_type == other.a_type && one.family == other.family
        }
        (one, other) => known && one == other,
    };
    others.iter().any(|other| other.0 != *name && !same(other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rules::Family;

    fn container(path: &str, full: &str, arguments: Option<&str>) -> Option<(Family, Role, Option<String>)> {
        match layer(path, full, false, arguments, arguments.is_some()) {
            Layer::Container(found) => Some((found.family, found.role, found.a_type)),
            _ => None,
        }
    }

    #[test]
    fn types_come_from_debug_information_or_symbols() {
        let grow = "alloc::raw_vec::RawVec::grow_one";
        for (full, arguments, expected) in [
            (
                "alloc::raw_vec::RawVec<T,A>::grow_one",
                Some("grow_one<app::A, alloc::alloc::Global>"),
                Some("app::A"),
            ),
            ("<alloc::raw_vec::RawVec<app::A>>::grow_one", None, Some("app::A")),
            ("alloc::raw_vec::RawVec<T,A>::grow_one", None, None),
            ("alloc::raw_vec::RawVec<T,A>::grow_one", Some("grow_one"), None),
        ] {
            let found = container(grow, full, arguments).unwrap();
            assert_eq!(found, (Family::Array, Role::Closed, expected.map(str::to_owned)), "{full}");
        }
        let small = "smallvec::SmallVec::try_grow";
        let expected = Some((Family::Array, Role::Closed, Some("app::A<[u8; 2]>".to_owned())));
        assert_eq!(container(small, "", Some("try_grow<[app::A<[u8; 2]>; 4]>")), expected);
        assert_eq!(container(small, "<smallvec::SmallVec<[app::A<[u8; 2]>; 4]>>::try_grow", None), expected);
        let slice = "alloc::rc::Rc::allocate_for_slice";
        let expected = Some((Family::Rc, Role::Closed, Some("[app::A]".to_owned())));
        assert_eq!(container(slice, "", Some("allocate_for_slice<app::A, alloc::alloc::Global>")), expected);
        assert_eq!(container(slice, "<alloc::rc::Rc<[app::A]>>::allocate_for_slice", None), expected);
    }

    #[test]
    fn instances_with_one_code_are_folded() {
        let of = |names: &[&str]| is_folded(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        let first = "_ZN5alloc7raw_vec19RawVec$LT$T$C$A$GT$8grow_one17h0123456789abcdefE";
        let second = "_ZN5alloc7raw_vec19RawVec$LT$T$C$A$GT$8grow_one17hfedcba9876543210E";
        assert!(of(&[first, second]));
        assert!(!of(&[first]) && !of(&[]) && !of(&["malloc", "__libc_malloc"]));
        assert!(!of(&["_ZN3FooC1Ev", "_ZN3FooC2Ev"]));
    }
}
