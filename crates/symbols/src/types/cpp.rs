//! Types of blocks in C and C++ programs: where a template of the standard library names them. What `new` makes has the type of what
//! receives it ([`receivers`](crate::receivers)).

use super::arguments::split;
use super::display::short;
use super::rules::Family;
use super::stack::{Contents, Decision, Layer};

/// Functions that allocate for their caller.
const TRANSPARENT: &[&str] = &[
    "operator new",
    "operator new[]",
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "aligned_alloc",
    "memalign",
    "posix_memalign",
    "std::__detail::_Hashtable_alloc::_M_allocate_node",
    "std::__1::__libcpp_allocate",
    "std::__1::__libcpp_operator_new",
];

/// Prefixes of the functions of linked allocators.
const ALLOCATORS: &[&str] = &["mi_", "_mi_", "je_", "_rjem_", "tc_", "rpmalloc", "sn_rust_"];

/// Functions of the C library that return a text of their own.
const TEXTS: &[&str] = &["strdup", "strndup", "getline", "getdelim"];

/// Methods of `basic_string` that allocate, and run no code of the program.
const STRING: &[&str] = &[
    "_M_create",
    "_M_assign",
    "_M_mutate",
    "_M_append",
    "_M_replace",
    "_M_replace_aux",
    "_M_construct",
    "basic_string",
    "reserve",
    "resize",
    "push_back",
];

/// The layer of a frame that was not compiled from Rust. `full` is its name with template arguments; `complete` tells that
/// inlined calls are known.
pub(crate) fn layer(path: &str, full: &str, complete: bool) -> Layer {
    let path = without_result(path);
    let bare = path.trim_start_matches('_');
    if TRANSPARENT.contains(&path)
        || TRANSPARENT.contains(&bare)
        || ALLOCATORS.iter().any(|start| path.starts_with(start))
    {
        return Layer::Transparent;
    }
    let (owner, function) = path.rsplit_once("::").unwrap_or(("", path));
    let in_std = owner.starts_with("std::") || owner.starts_with("__gnu_cxx::") || owner == "std";
    let argument = match function {
        "allocate" if in_std && owner.ends_with("allocator") => first_argument(full, "allocator<"),
        function if in_std && owner.ends_with("basic_string") && STRING.contains(&function) => {
            first_argument(full, "basic_string<")
        }
        // A function object that does not fit into a `std::function`.
        "_M_create" if in_std && full.contains("_Base_manager<") => {
            return match first_argument(full, "_Base_manager<") {
                Some(a_type) => Layer::Known(Decision { name: short(a_type), contents: None }),
                None => Layer::Other,
            };
        }
        _ if TEXTS.contains(&bare.trim_start_matches("GI_").trim_start_matches('_')) => Some("char"),
        "make_unique" if complete && owner == "std" => {
            return match first_argument(full, "make_unique<") {
                Some(a_type) if !a_type.ends_with(']') => {
                    let contents = Contents { family: Family::Box, a_type: a_type.to_owned() };
                    Layer::Known(Decision { name: short(a_type), contents: Some(contents) })
                }
                // The elements may begin behind their number.
                Some(a_type) => {
                    let name = short(a_type).replace(" []", "[]");
                    Layer::Known(Decision { name, contents: None })
                }
                None => Layer::Other,
            };
        }
        // Others pass the request on; their allocator is in a frame further inside if it is known at all.
        _ => None,
    };
    argument.map_or(Layer::Other, |a_type| Layer::Known(block(a_type)))
}

/// The path of a function behind the type of its result, which the names of instances of templates begin with.
fn without_result(path: &str) -> &str {
    match path.rsplit_once(' ') {
        Some((before, path)) if !before.ends_with("operator") => path,
        _ => path,
    }
}

/// The first template argument behind `start`.
fn first_argument<'name>(full: &'name str, start: &str) -> Option<&'name str> {
    let at = full.find(start)? + start.len();
    let list = &full[at..at + end_of_list(&full[at..])?];
    split(list).first().copied().filter(|first| !first.is_empty())
}

fn end_of_list(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'<' | b'(' => depth += 1,
            b'>' | b')' if depth > 0 => depth -= 1,
            b'>' => return Some(at),
            _ => {}
        }
    }
    None
}

/// A block of elements, or a node of a container.
fn block(element: &str) -> Decision {
    let (family, name) = named(element);
    Decision { name, contents: Some(Contents { family, a_type: element.to_owned() }) }
}

fn named(element: &str) -> (Family, String) {
    match node(element) {
        Some(name) => (Family::Box, name),
        None => (Family::Array, format!("{}[]", short(element))),
    }
}

/// The name of a node of a container of the standard library, by its type.
pub fn node(a_type: &str) -> Option<String> {
    let (path, list) = a_type.split_once('<')?;
    let arguments = end_of_list(list).map(|end| split(&list[..end])).unwrap_or_default();
    let name = path.rsplit("::").next().unwrap_or_default();
    let first = arguments.first().filter(|_| path.starts_with("std::"))?;
    Some(match name {
        "_Rb_tree_node" | "__tree_node" => format!("{} node", entry(first, "map", "set")),
        "_Hash_node" | "__hash_node" => format!("{} node", entry(first, "unordered_map", "unordered_set")),
        "_List_node" | "__list_node" => format!("list<{}> node", short(first)),
        "_Fwd_list_node" => format!("forward_list<{}> node", short(first)),
        "_Sp_counted_ptr" | "_Sp_counted_deleter" | "__shared_ptr_pointer" => {
            let pointee = first.trim_end().strip_suffix('*').unwrap_or(first);
            format!("shared_ptr<{}> control block", short(pointee.trim_end()))
        }
        "_Sp_counted_ptr_inplace" | "__shared_ptr_emplace" => format!("shared_ptr<{}>", short(first)),
        _ => return None,
    })
}

/// `map<K, V>` for a pair, else `set<T>`.
fn entry(element: &str, map: &str, set: &str) -> String {
    let pair = element.strip_prefix("std::pair<").and_then(|rest| rest.trim_end().strip_suffix('>'));
    match pair.map(split).as_deref() {
        Some([key, value]) => {
            let key = key.trim_end().strip_suffix("const").unwrap_or(key);
            format!("{map}<{}, {}>", short(key.trim()), short(value.trim()))
        }
        _ => format!("{set}<{}>", short(element)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(layer: Layer) -> String {
        match layer {
            Layer::Known(decision) => decision.name,
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn templates_name_the_type() {
        let allocate = |element: &str| {
            let full = format!("std::__new_allocator<{element}>::allocate(unsigned long, void const*)");
            name(layer("std::__new_allocator::allocate", &full, false))
        };
        for (element, expected) in [
            ("int", "int[]"),
            ("std::vector<int, std::allocator<int> >", "vector<int>[]"),
            ("std::_Rb_tree_node<std::pair<int const, app::Item> >", "map<int, Item> node"),
            ("std::_Rb_tree_node<int>", "set<int> node"),
            (
                "std::__detail::_Hash_node<std::pair<unsigned long const, std::shared_ptr<app::Item> >, false>",
                "unordered_map<unsigned long, shared_ptr<Item>> node",
            ),
            ("std::__detail::_Hash_node_base*", "_Hash_node_base*[]"),
            ("std::_List_node<app::Item>", "list<Item> node"),
            (
                "std::_Sp_counted_ptr_inplace<app::Item, std::allocator<void>, (__gnu_cxx::_Lock_policy)2>",
                "shared_ptr<Item>",
            ),
            (
                "std::_Sp_counted_ptr<app::Item*, (__gnu_cxx::_Lock_policy)2>",
                "shared_ptr<Item> control block",
            ),
        ] {
            assert_eq!(allocate(element), expected, "{element}");
        }
        let string = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >::_M_create(unsigned long&, unsigned long)";
        assert_eq!(name(layer("std::__cxx11::basic_string::_M_create", string, false)), "char[]");
        let construct = "void std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >::_M_construct<char*>(char*, char*, std::forward_iterator_tag)";
        assert_eq!(name(layer("void std::__cxx11::basic_string::_M_construct", construct, false)), "char[]");
        let array = "std::_MakeUniq<int []>::__array std::make_unique<int []>(unsigned long)";
        assert_eq!(name(layer("std::_MakeUniq::__array std::make_unique", array, true)), "int[]");
        let function = "void std::_Function_base::_Base_manager<main::{lambda()#1}>::_M_create<main::{lambda()#1}>(std::_Any_data&, main::{lambda()#1}&&, std::integral_constant<bool, false>)";
        let made = name(layer("void std::_Function_base::_Base_manager::_M_create", function, false));
        assert_eq!(made, "main::{lambda()}");
        for text in ["strdup", "__strdup", "__GI___strdup", "strndup"] {
            assert_eq!(name(layer(text, text, false)), "char[]");
        }
        let unique = "std::_MakeUniq<app::Item>::__single_object std::make_unique<app::Item, int>(int&&)";
        let path = "std::_MakeUniq::__single_object std::make_unique";
        assert_eq!(name(layer(path, unique, true)), "Item");
        assert_eq!(layer(path, unique, false), Layer::Other);
    }

    #[test]
    fn other_functions_do_not() {
        assert_eq!(layer("operator new", "operator new(unsigned long)", false), Layer::Transparent);
        assert_eq!(layer("mi_malloc", "mi_malloc", false), Layer::Transparent);
        assert_eq!(layer("read_config", "read_config", true), Layer::Other);
        assert_eq!(layer("app::allocator::allocate", "app::allocator<int>::allocate()", true), Layer::Other);
    }

    proptest::proptest! {
        #[test]
        fn any_name_is_read(full in "(std::allocator<)?[a-z<>:&(){}, *-]{0,40}") {
            layer("std::allocator::allocate", &full, true);
        }
    }
}
