//! Which functions of the standard libraries allocate what: the table of rules, by the paths of functions.
//!
//! | block | seen in the stack as | type |
//! | --- | --- | --- |
//! | buffer of `Vec`, `VecDeque`, `String`, `Box<[T]>` | `RawVec<T>::…` | `[T]` |
//! | `Box<T>` | `Box<T>::new…` | `T` |
//! | `Rc<T>`, `Arc<T>` | `Box<RcInner<T>>::new`, `Rc<T>::allocate_for_…` | `Rc<T>` |
//! | node of a `BTreeMap` or `LinkedList` | `Box<LeafNode<K, V>>::new…` | `BTreeMap<K, V> leaf` |
//! | table of a `HashMap` or `HashSet` | `RawTable<(K, V)>::…` | `HashMap<K, V> table` |
//! | containers of C++ | `std::allocator<T>::allocate` | `T[]`, `map<K, V> node` |
//!
//! # Which frame decides
//!
//! The walk goes from the innermost frame outwards. Frames of [`TRANSPARENT`] functions are skipped: they allocate for
//! their caller and do not know the type. The first other frame must match a rule. If it does not, it called the
//! allocator itself, and frames further out belong to other blocks: the type is unknown.
//!
//! # Folded code
//!
//! Compilers and linkers merge functions with identical code: `RawVec<A>::grow_one` may run for a `Vec<B>`. Then the name
//! of the function is that of any of them. Two things reveal it: several symbols with different types at one address, or a
//! caller whose type differs. The caller then decides, but only if the call is on its own block:
//!
//! - `RawVec<T>`, `RawTable<T>` and the methods listed as [`Role::Closed`] never run code of their elements. So a direct
//!   call from a method of the same family is on the caller's own buffer, and both have the same `T`.
//! - [`Role::Open`] methods (`clone`, `from_iter`, `extend`) may run code of elements, which may be the same method of
//!   another type: `Vec<Vec<A>>::clone` calls `Vec<A>::clone`. They are evidence as callers, never as callees.
//! - Without debug information, inlined frames are missing, so code of elements may be part of an open method. Open methods
//!   then do not decide, unless their symbols name no types but those of `core`, which allocate nothing:
//!   `<Vec<u64>>::from_iter::<Range<u64>>`.

use stackglass_profile::frame::is_rust_allocation;
use std::borrow::Cow;

/// What a block is, apart from its type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// A buffer of elements.
    Array,
    /// One value, or a node.
    Box,
    /// A value with its counters.
    Rc,
    /// The same for threads.
    Arc,
    /// A hash table.
    Table,
    /// A node of a tree, of any kind.
    Node,
    /// A leaf of a tree.
    Leaf,
    /// An internal node of a tree.
    Internal,
    /// A node of a list.
    List,
}

/// What a function may call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// Runs no code of the elements' type and no closures of the program.
    Closed,
    /// May run any code.
    Open,
}

/// Where the type is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Argument {
    /// A generic argument of the function in debug information, or of the method's type in symbols.
    Number(usize),
    /// The same, as the element of a slice. Symbols have the slice.
    Slice,
    /// The first argument, which is an array, as the type of its elements.
    ElementOfArray,
    /// The type that the function is a method of, in symbols.
    Own,
    /// The key and the value of a node, in symbols.
    Entry,
    /// Always this type.
    Fixed(&'static str),
}

/// A rule for the functions of one type or module.
#[derive(Debug)]
pub(crate) struct Rule {
    /// Path of the type or module.
    pub owner: &'static str,
    /// Its functions; empty for all.
    pub functions: &'static [&'static str],
    pub family: Family,
    pub role: Role,
    pub argument: Argument,
}

const fn rule(
    owner: &'static str,
    functions: &'static [&'static str],
    family: Family,
    role: Role,
    argument: Argument,
) -> Rule {
    Rule { owner, functions, family, role, argument }
}

use Argument::{ElementOfArray, Entry, Fixed, Number, Own, Slice};
use Family::{Arc, Array, Box, Internal, Leaf, List, Node, Rc, Table};
use Role::{Closed, Open};

/// Constructors of `Box`.
const NEW: &[&str] = &[
    "new",
    "new_in",
    "try_new",
    "try_new_in",
    "new_uninit",
    "new_uninit_in",
    "try_new_uninit",
    "try_new_uninit_in",
    "new_zeroed",
    "new_zeroed_in",
    "try_new_zeroed",
    "try_new_zeroed_in",
    "pin",
    "pin_in",
];

/// The rules. The first that matches counts.
pub(crate) static RULES: &[Rule] = &[
    rule("alloc::raw_vec::RawVec", &[], Array, Closed, Number(0)),
    rule(
        "alloc::vec::Vec",
        &[
            "with_capacity",
            "with_capacity_in",
            "try_with_capacity",
            "try_with_capacity_in",
            "reserve",
            "reserve_exact",
            "try_reserve",
            "try_reserve_exact",
            "push",
            "push_mut",
            "insert",
            "insert_mut",
            "append",
            "append_elements",
            "shrink_to_fit",
            "shrink_to",
            "into_boxed_slice",
            "split_off",
        ],
        Array,
        Closed,
        Number(0),
    ),
    // The destination is the second parameter.
    rule("alloc::vec::in_place_collect", &["from_iter_in_place"], Array, Open, Number(1)),
    rule(
        "alloc::vec::Vec",
        &[
            "from_iter",
            "from_iter_exact",
            "from_elem",
            "extend",
            "extend_desugared",
            "extend_from_slice",
            "extend_from_within",
            "extend_trusted",
            "extend_with",
            "resize",
            "resize_with",
            "spec_extend",
            "clone",
        ],
        Array,
        Open,
        Number(0),
    ),
    rule("alloc::vec", &["from_elem"], Array, Open, Number(0)),
    // Implemented for the element itself.
    rule("alloc::vec::spec_from_elem::SpecFromElem", &["from_elem"], Array, Open, Own),
    rule("alloc::slice::to_vec_in::ConvertVec", &["to_vec"], Array, Open, Own),
    rule("core::slice::to_vec_in::ConvertVec", &["to_vec"], Array, Open, Own),
    rule("alloc::slice", &["to_vec", "to_vec_in"], Array, Open, Number(0)),
    rule(
        "alloc::collections::vec_deque::VecDeque",
        &[
            "with_capacity",
            "with_capacity_in",
            "reserve",
            "reserve_exact",
            "try_reserve",
            "grow",
            "push_back",
            "push_front",
            "push_back_mut",
            "push_front_mut",
            "insert",
            "append",
        ],
        Array,
        Closed,
        Number(0),
    ),
    rule("alloc::boxed", &["box_new"], Box, Closed, Number(0)),
    rule("alloc::boxed::Box", NEW, Box, Closed, Number(0)),
    rule(
        "alloc::boxed::Box",
        &["clone_from_ref", "clone_from_ref_in", "try_clone_from_ref", "try_clone_from_ref_in"],
        Box,
        Open,
        Number(0),
    ),
    rule("alloc::rc::Rc", &["copy_from_slice"], Rc, Closed, Slice),
    rule("alloc::sync::Arc", &["copy_from_slice"], Arc, Closed, Slice),
    rule("alloc::rc::Rc", &["from_iter_exact"], Rc, Open, Slice),
    rule("alloc::sync::Arc", &["from_iter_exact"], Arc, Open, Slice),
    rule("alloc::rc::Rc", &["new"], Rc, Closed, Number(0)),
    rule("alloc::sync::Arc", &["new"], Arc, Closed, Number(0)),
    rule("alloc::rc::Rc", &["allocate_for_slice", "allocate_for_slice_in"], Rc, Closed, Slice),
    rule(
        "alloc::rc::Rc",
        &["allocate_for_layout", "try_allocate_for_layout", "allocate_for_ptr", "allocate_for_ptr_in"],
        Rc,
        Closed,
        Number(0),
    ),
    rule("alloc::sync::Arc", &["allocate_for_slice", "allocate_for_slice_in"], Arc, Closed, Slice),
    rule(
        "alloc::sync::Arc",
        &["allocate_for_layout", "try_allocate_for_layout", "allocate_for_ptr", "allocate_for_ptr_in"],
        Arc,
        Closed,
        Number(0),
    ),
    rule(
        "hashbrown::raw::RawTable",
        &[
            "new_uninitialized",
            "with_capacity",
            "with_capacity_in",
            "try_with_capacity",
            "try_with_capacity_in",
            "fallible_with_capacity",
            "reserve",
            "try_reserve",
            "reserve_rehash",
            "resize",
            "shrink_to",
            "insert",
        ],
        Table,
        Closed,
        Number(0),
    ),
    rule("hashbrown::raw::RawTable", &[], Table, Open, Number(0)),
    rule("hashbrown::raw", &["reserve_rehash"], Table, Closed, Number(0)),
    rule(
        "smallvec::SmallVec",
        &["try_grow", "grow", "try_reserve", "reserve", "reserve_one_unchecked", "push", "shrink_to_fit"],
        Array,
        Closed,
        ElementOfArray,
    ),
    rule("smallvec::SmallVec", &[], Array, Open, ElementOfArray),
    // Nodes: these matter without debug information. With it, the box inside decides.
    rule("alloc::collections::btree::node::NodeRef", &["new_leaf"], Leaf, Closed, Entry),
    rule(
        "alloc::collections::btree::node::NodeRef",
        &["new_internal", "push_internal_level"],
        Internal,
        Closed,
        Entry,
    ),
    rule("alloc::collections::btree::node::NodeRef", &["bulk_push"], Node, Open, Entry),
    rule(
        "alloc::collections::btree::node::Handle",
        &["insert_recursing", "insert", "split"],
        Node,
        Closed,
        Entry,
    ),
    rule(
        "alloc::collections::btree::map::entry::VacantEntry",
        &["insert_entry", "insert"],
        Node,
        Closed,
        Entry,
    ),
    rule("alloc::collections::btree::map::entry::Entry", &["or_insert"], Node, Closed, Entry),
    rule(
        "alloc::collections::linked_list::LinkedList",
        &["push_back", "push_front"],
        List,
        Closed,
        Number(0),
    ),
    rule(
        "alloc::collections::linked_list::LinkedList",
        &["from_iter", "extend", "clone"],
        List,
        Open,
        Number(0),
    ),
    rule("std::io::error::Error", &["_new"], Box, Closed, Fixed("std::io::error::Custom")),
    // Bytes: these matter without debug information. With it, the buffer inside decides.
    rule(
        "alloc::string::String",
        &[
            "with_capacity",
            "reserve",
            "reserve_exact",
            "push",
            "push_str",
            "insert",
            "insert_str",
            "clone",
            "write_str",
            "write_char",
            "from",
            "from_utf8_lossy",
        ],
        Array,
        Closed,
        Fixed("u8"),
    ),
    rule("alloc::fmt", &["format_inner"], Array, Closed, Fixed("u8")),
    rule("alloc::fmt::format", &["format_inner"], Array, Closed, Fixed("u8")),
    rule("alloc::str", &["to_lowercase", "to_uppercase", "repeat"], Array, Closed, Fixed("u8")),
    rule("std::path::PathBuf", &["push", "_push", "clone", "from", "reserve"], Array, Closed, Fixed("u8")),
    rule("std::path::Path", &["to_path_buf", "join", "_join", "to_owned"], Array, Closed, Fixed("u8")),
    rule("std::ffi::os_str::OsString", &["push", "clone", "from", "reserve"], Array, Closed, Fixed("u8")),
    rule("std::ffi::os_str::OsStr", &["to_os_string", "to_owned"], Array, Closed, Fixed("u8")),
    rule(
        "alloc::ffi::c_str::CString",
        &["new", "from", "_from_vec_unchecked", "clone"],
        Array,
        Closed,
        Fixed("u8"),
    ),
];

/// Functions that allocate for their caller and do not know the type.
const TRANSPARENT: &[&str] = &[
    "alloc::alloc",
    "std::alloc",
    "core::alloc",
    "std::sys::alloc",
    "alloc::boxed::box_new_uninit",
    "alloc::raw_vec::RawVecInner",
    "alloc::raw_vec::finish_grow",
    "hashbrown::raw::RawTableInner",
    "hashbrown::raw::alloc",
    "hashbrown::alloc",
    "hashbrown::scopeguard",
    "allocator_api2::alloc",
    "allocator_api2::stable::alloc",
    "stackglass_heap",
    "__rustc",
];

/// A path without a module that hashbrown has in some versions, up to 0.14, depending on its features.
fn uniform(path: &str) -> Cow<'_, str> {
    match path.strip_prefix("hashbrown::raw::inner::") {
        Some(rest) => format!("hashbrown::raw::{rest}").into(),
        None => path.into(),
    }
}

/// The rule for a function, by its path.
pub(crate) fn find(path: &str) -> Option<&'static Rule> {
    let path = uniform(path);
    let (owner, function) = path.rsplit_once("::")?;
    RULES.iter().find(|rule| {
        rule.owner == owner
            && (rule.functions.is_empty() || rule.functions.contains(&function))
            && !function.starts_with('{')
    })
}

/// Whether a function allocates for its caller. `full` is its name with the trait.
pub(crate) fn is_transparent(path: &str, full: &str) -> bool {
    let path = &*uniform(path);
    let under =
        |name: &&str| path.strip_prefix(*name).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"));
    TRANSPARENT.iter().any(under)
        || is_rust_allocation(path)
        || full.contains("alloc::global::GlobalAlloc>::")
        // The closures that a counted pointer passes to its own constructor.
        || path.ends_with("::{closure}")
            && ["alloc::rc::", "alloc::sync::", "alloc::raw_vec::"].iter().any(|start| path.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_is_found_by_its_functions() {
        for rule in RULES {
            let functions = if rule.functions.is_empty() { &["anything"] } else { rule.functions };
            for function in functions {
                let path = format!("{}::{function}", rule.owner);
                let found = find(&path).unwrap();
                assert_eq!((found.family, found.argument), (rule.family, rule.argument), "{path}");
                assert!(!is_transparent(&path, &path), "{path}");
            }
        }
    }

    #[test]
    fn other_functions_have_no_rule() {
        let inner = find("hashbrown::raw::inner::RawTable::reserve_rehash").unwrap();
        assert_eq!((inner.family, inner.role), (Family::Table, Role::Closed));
        assert!(is_transparent("hashbrown::raw::inner::RawTableInner::resize", ""));
        for path in
            ["alloc::raw_vec::RawVecInner::grow_one", "app::Vec::push", "push", "alloc::vec::Vec::retain", ""]
        {
            assert!(find(path).is_none(), "{path}");
        }
        assert!(is_transparent("alloc::raw_vec::RawVecInner::grow_amortized", ""));
        assert!(is_transparent(
            "app::Counting::alloc",
            "<app::Counting as core::alloc::global::GlobalAlloc>::alloc"
        ));
        assert!(is_transparent("alloc::rc::Rc::allocate_for_slice::{closure}", ""));
        assert!(!is_transparent("alloc::allocator", ""));
        assert!(!is_transparent("app::alloc", "app::alloc"));
    }
}
