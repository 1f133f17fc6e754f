//! Types as a programmer writes them: paths become their last part, default arguments are left out, and blocks of
//! containers are named by the container.
//!
//! | in the file | shown |
//! | --- | --- |
//! | `alloc::vec::Vec<alloc::string::String, alloc::alloc::Global>` | `Vec<String>` |
//! | `app::main::{closure_env#0}` | `main::{closure}` |
//! | a box of `alloc::rc::RcInner<app::Node>` | `Rc<Node>` |
//! | a box of `alloc::collections::btree::node::LeafNode<u64, u8>` | `BTreeMap<u64, u8> leaf` |
//! | a table of `(u64, alloc::string::String)` | `HashMap<u64, String> table` |

use super::arguments::{last, split};
use super::rules::Family;

/// Arguments with these types are defaults that nobody writes.
const DEFAULTS: &[&str] = &[
    "alloc::alloc::Global",
    "std::alloc::System",
    "hashbrown::raw::alloc::inner::Global",
    "hashbrown::alloc::inner::Global",
    "allocator_api2::stable::alloc::global::Global",
    "std::hash::random::RandomState",
    "std::collections::hash::map::RandomState",
];

/// Arguments of these C++ templates are defaults, mostly.
const CPP_DEFAULTS: &[&str] = &[
    "std::allocator<",
    "std::less<",
    "std::char_traits<",
    "std::hash<",
    "std::equal_to<",
    "std::default_delete<",
];

/// The name of a block of a Rust program by its type in the file.
pub fn block(family: Family, a_type: &str) -> String {
    let a_type = initialized(a_type);
    match family {
        Family::Array => format!("[{}]", short(a_type)),
        Family::Rc => format!("Rc<{}>", short(a_type)),
        Family::Arc => format!("Arc<{}>", short(a_type)),
        Family::Table => table(a_type),
        Family::Box => node(a_type).unwrap_or_else(|| short(a_type)),
        Family::Node => tree(a_type, "node"),
        Family::List => format!("LinkedList<{}> node", short(a_type)),
        Family::Leaf => tree(a_type, "leaf"),
        Family::Internal => tree(a_type, "internal"),
    }
}

/// The name of a block whose container alone is known.
pub(crate) fn container(family: Family) -> &'static str {
    match family {
        Family::Array => "Vec<?> buffer",
        Family::Box => "Box<?>",
        Family::Rc => "Rc<?>",
        Family::Arc => "Arc<?>",
        Family::Table => "HashMap<?> table",
        Family::List => "LinkedList<?> node",
        Family::Node | Family::Leaf | Family::Internal => "BTreeMap<?> node",
    }
}

/// The type without the wrapper for memory that is not written yet.
pub fn initialized(a_type: &str) -> &str {
    let inside =
        a_type.strip_prefix("core::mem::maybe_uninit::MaybeUninit<").and_then(|rest| rest.strip_suffix('>'));
    inside.filter(|inside| split(inside).len() == 1).unwrap_or(a_type)
}

fn table(entry: &str) -> String {
    let pair = entry.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).map(split);
    match pair.as_deref() {
        Some([key, "()"]) => format!("HashSet<{}> table", short(key)),
        Some([key, value]) => format!("HashMap<{}, {}> table", short(key), short(value)),
        _ => format!("HashTable<{}> table", short(entry)),
    }
}

/// A node of a tree, by a type whose arguments are key and value.
fn tree(a_type: &str, place: &str) -> String {
    match last(a_type)[..] {
        [key, "alloc::collections::btree::set_val::SetValZST", ..] => {
            format!("BTreeSet<{}> {place}", short(key))
        }
        [key, value, ..] => format!("BTreeMap<{}, {}> {place}", short(key), short(value)),
        _ => format!("BTreeMap {place}"),
    }
}

/// The container of a type that only containers use.
fn node(a_type: &str) -> Option<String> {
    let (path, _) = a_type.split_once('<')?;
    let arguments = last(a_type);
    let first = arguments.first().copied()?;
    Some(match path {
        "alloc::rc::RcInner" | "alloc::rc::RcBox" => format!("Rc<{}>", short(initialized(first))),
        "alloc::sync::ArcInner" => format!("Arc<{}>", short(initialized(first))),
        "alloc::collections::btree::node::LeafNode" => tree(a_type, "leaf"),
        "alloc::collections::btree::node::InternalNode" => tree(a_type, "internal"),
        "alloc::collections::linked_list::Node" => format!("LinkedList<{}> node", short(first)),
        _ => return None,
    })
}

/// Deepest nesting of arguments; deeper ones are cut.
const DEEPEST: usize = 64;

/// Longest name whose arguments are shown. Each level of arguments is read again for those within it, and nobody reads as much.
const LONGEST: usize = 16 << 10;

/// A type with the last parts of its paths, without default arguments.
pub fn short(a_type: &str) -> String {
    if a_type.len() > LONGEST {
        let path = &a_type[..end_of_path(a_type)];
        return format!("{}<…>", last_names(path));
    }
    short_inside(a_type, 0)
}

/// Whether this is the short name of a type, and cheaper than to make it: most names already begin otherwise.
pub fn is_short(name: &str, a_type: &str) -> bool {
    let begins_so = match a_type.chars().next() {
        // The last part of the path comes first, except for closures, which have the part before as well.
        Some(first) if is_part(first) => {
            let last = a_type[..end_of_path(a_type)].rsplit("::").next().unwrap_or_default();
            last.starts_with('{') || name.starts_with(last)
        }
        Some(first) => name.starts_with(first),
        None => true,
    };
    // What is too long begins with another path.
    (begins_so || a_type.len() > LONGEST) && short(a_type) == name
}

fn short_inside(a_type: &str, depth: usize) -> String {
    if depth > DEEPEST {
        return "…".to_owned();
    }
    let mut text = String::with_capacity(a_type.len().min(256));
    let mut rest = a_type;
    while let Some(first) = rest.chars().next() {
        if is_part(first) {
            let end = end_of_path(rest);
            let (path, after) = rest.split_at(end);
            text.push_str(&last_names(path));
            rest = after;
            if let Some(list) = rest.strip_prefix('<') {
                let end = end_of_list(list);
                let kept: Vec<String> = split(&list[..end])
                    .into_iter()
                    .filter(|one| !is_default(one))
                    .map(|one| short_inside(one, depth + 1))
                    .collect();
                if !kept.is_empty() {
                    text.push_str(&format!("<{}>", kept.join(", ")));
                }
                rest = list[end..].strip_prefix('>').unwrap_or_default();
                // The path goes on: `A<B>::C`.
                if rest.starts_with("::") {
                    text.push_str("::");
                    rest = rest.trim_start_matches(':');
                }
            }
        } else {
            text.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    text
}

fn is_part(char: char) -> bool {
    char.is_alphanumeric() || matches!(char, '_' | '{' | '\'')
}

/// The end of a path at the start of `text`. Braces belong to it: `app::main::{closure_env#0}`.
fn end_of_path(text: &str) -> usize {
    let mut depth = 0usize;
    for (at, char) in text.char_indices() {
        match char {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ':' if depth == 0 => {
                let path = text[at..].starts_with("::") || text[..at].ends_with(':');
                if !path {
                    return at;
                }
            }
            _ if depth > 0 || is_part(char) => {}
            _ => return at,
        }
    }
    text.len()
}

fn end_of_list(text: &str) -> usize {
    let (mut depth, mut before) = (0usize, 0);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'<' | b'(' | b'[' => depth += 1,
            b'>' if before == b'-' => {}
            b'>' if depth == 0 => return at,
            b'>' | b')' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        before = byte;
    }
    text.len()
}

fn is_default(argument: &str) -> bool {
    DEFAULTS.contains(&argument) || CPP_DEFAULTS.iter().any(|start| argument.starts_with(start))
}

/// The last named part of a path, with the closures in it: `main::{closure}`.
fn last_names(path: &str) -> String {
    let mut parts = Vec::new();
    for part in path.rsplit("::") {
        if !part.starts_with('{') {
            parts.push(part.to_owned());
            break;
        }
        let word = part.trim_start_matches('{').split(['#', ':', '}']).next().unwrap_or_default();
        let word = word.strip_suffix("_env").unwrap_or(word);
        if word != "impl" {
            parts.push(format!("{{{word}}}"));
        }
    }
    parts.reverse();
    parts.join("::")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_short() {
        for (a_type, expected) in [
            ("u8", "u8"),
            ("alloc::vec::Vec<alloc::string::String, alloc::alloc::Global>", "Vec<String>"),
            (
                "std::collections::hash::map::HashMap<u64, &[a::B], std::hash::random::RandomState>",
                "HashMap<u64, &[B]>",
            ),
            (
                "alloc::sync::Arc<std::sync::mutex::Mutex<app::State>, alloc::alloc::Global>",
                "Arc<Mutex<State>>",
            ),
            ("app::main::{closure_env#0}", "main::{closure}"),
            ("app::{impl#3}::run::{async_fn_env#0}<u8>", "run::{async_fn}<u8>"),
            ("(u64, core::option::Option<&str>)", "(u64, Option<&str>)"),
            ("[app::Cell<4>; 16]", "[Cell<4>; 16]"),
            (
                "alloc::boxed::Box<(dyn core::ops::function::FnOnce<(), Output=()> + core::marker::Send), alloc::alloc::Global>",
                "Box<(dyn FnOnce<(), Output=()> + Send)>",
            ),
            ("fn(app::A) -> app::B", "fn(A) -> B"),
            ("*const &'static app::A", "*const &'static A"),
            ("<a::B as c::D>::E", "<B as D>::E"),
            ("a::B<u8>::C", "B<u8>::C"),
            ("", ""),
        ] {
            assert_eq!(short(a_type), expected, "{a_type}");
            assert!(is_short(expected, a_type), "{a_type}");
            assert!(!is_short(&format!("{expected}x"), a_type) && !is_short("x", a_type), "{a_type}");
        }
    }

    #[test]
    fn names_that_are_too_long_are_known_as_well() {
        let long = "a::B, ".repeat(LONGEST);
        for a_type in [format!("x::A<{long}>"), format!("({long})"), format!("x::{{closure#0}}<{long}>")] {
            assert!(is_short(&short(&a_type), &a_type), "{}", short(&a_type));
        }
    }

    #[test]
    fn blocks_are_named_by_their_container() {
        let tree = "alloc::collections::btree::node";
        for (family, a_type, expected) in [
            (Family::Array, "alloc::string::String", "[String]"),
            (Family::Box, "app::Node", "Node"),
            (Family::Box, "alloc::rc::RcInner<app::Node>", "Rc<Node>"),
            (Family::Box, "alloc::sync::ArcInner<std::sync::mutex::Mutex<u8>>", "Arc<Mutex<u8>>"),
            (Family::Box, &format!("{tree}::LeafNode<u64, app::A>"), "BTreeMap<u64, A> leaf"),
            (Family::Box, &format!("{tree}::InternalNode<u64, app::A>"), "BTreeMap<u64, A> internal"),
            (
                Family::Box,
                &format!("{tree}::LeafNode<u64, alloc::collections::btree::set_val::SetValZST>"),
                "BTreeSet<u64> leaf",
            ),
            (Family::Box, "alloc::collections::linked_list::Node<u8>", "LinkedList<u8> node"),
            (Family::Rc, "[app::Node]", "Rc<[Node]>"),
            (Family::Arc, "core::mem::maybe_uninit::MaybeUninit<app::Node>", "Arc<Node>"),
            (Family::Table, "(u64, alloc::string::String)", "HashMap<u64, String> table"),
            (Family::Table, "(app::Key, ())", "HashSet<Key> table"),
            (Family::Table, "usize", "HashTable<usize> table"),
        ] {
            assert_eq!(block(family, a_type), expected, "{a_type}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_shown(text in "[a-zé<>:&(){}\\[\\], #-]{0,60}|.{0,20}") {
            proptest::prop_assert!(short(&text).len() <= 4 * text.len() + 8);
        }

        #[test]
        fn short_names_are_known(a_type in "[a-cé<>:&(){}\\[\\], #-]{0,40}|.{0,20}", name in "[a-cé<>:{]{0,3}") {
            proptest::prop_assert!(is_short(&short(&a_type), &a_type));
            proptest::prop_assert_eq!(is_short(&name, &a_type), short(&a_type) == name);
        }
    }
}
