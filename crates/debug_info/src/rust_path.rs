//! From a demangled Rust name to its path in source form.
//!
//! | demangled | path |
//! | --- | --- |
//! | `serde_json::de::from_str::<T>` | `serde_json::de::from_str` |
//! | `<alloc::vec::Vec<T, A> as core::ops::drop::Drop>::drop` | `alloc::vec::Vec::drop` |
//! | `<&T as core::fmt::Debug>::fmt`, `<T as …>` | `core::fmt::Debug::fmt` |
//! | `core::fmt::num::<impl core::fmt::Debug for u32>::fmt` | `core::fmt::Debug::fmt` |
//! | `core::str::<impl str>::parse`, `<str>::parse` | `core::str::parse` |
//! | `app::main::{closure#0}`, `app::main::{{closure}}` | `app::main::{closure}` |
//! | `core::iter::adapters::map::{impl#2}::next<…>` | `core::iter::adapters::map::next` |
//!
//! A method belongs to its type if that has a path, else to its trait.

/// The path of a demangled function name.
pub fn path(name: &str) -> String {
    let mut path = String::with_capacity(name.len().min(256));
    // The pieces not read so far; the innermost qualified type is read first.
    let mut rest: Vec<&str> = vec![name];
    while let Some(text) = rest.pop() {
        read(text, &mut path, &mut rest);
    }
    path
}

/// Reads a piece of a name up to its end, or to a qualified type, which stays in `rest`.
fn read<'name>(text: &'name str, path: &mut String, rest: &mut Vec<&'name str>) {
    let mut text = text;
    loop {
        text = text.trim_start_matches("::");
        let Some(first) = text.chars().next() else { return };
        if first == '<' {
            let (inside, after) = bracketed(text);
            if let Some(implementation) = inside.strip_prefix("impl ") {
                let (a_trait, a_type) = match split_top(implementation, " for ") {
                    Some((a_trait, a_type)) => (Some(a_trait), a_type),
                    None => (None, implementation),
                };
                if let Some(owner) = owner(a_trait, a_type) {
                    path.clear();
                    rest.push(after);
                    rest.push(owner);
                    return;
                }
            } else if path.is_empty() {
                let (a_type, a_trait) = match split_top(inside, " as ") {
                    Some((a_type, a_trait)) => (a_type, Some(a_trait)),
                    None => (inside, None),
                };
                rest.push(after);
                match owner(a_trait, a_type) {
                    Some(owner) => rest.push(owner),
                    None => path.push_str(home_of_primitive(a_type)),
                }
                return;
            }
            // Otherwise generic arguments, which are left out.
            text = after;
            continue;
        }
        let (segment, after) = segment(text);
        let segment = plain(segment);
        if !segment.is_empty() {
            if !path.is_empty() {
                path.push_str("::");
            }
            path.push_str(&segment);
        }
        if after.len() == text.len() {
            return;
        }
        text = after;
    }
}

/// The path of an implementation: the type's if it has one, else the trait's.
fn owner<'name>(a_trait: Option<&'name str>, a_type: &'name str) -> Option<&'name str> {
    let target = pointee(a_type);
    if target.starts_with('<') || split_top(target, "::").is_some() {
        return Some(target);
    }
    a_trait
}

/// The type behind references, pointers and `dyn`.
fn pointee(mut a_type: &str) -> &str {
    loop {
        let before = a_type;
        for prefix in ["&", "*const ", "*mut ", "mut ", "dyn "] {
            a_type = a_type.strip_prefix(prefix).unwrap_or(a_type).trim_start();
        }
        if a_type.starts_with('\'') {
            a_type = a_type.split_once(' ').map_or("", |(_, after)| after);
        }
        if a_type == before {
            // In `dyn A + Send`, the first bound counts.
            return split_top(a_type, " + ").map_or(a_type, |(first, _)| first);
        }
    }
}

/// The module with the methods of a type without a path.
fn home_of_primitive(a_type: &str) -> &str {
    match a_type {
        "str" => "core::str",
        "char" => "core::char",
        "i8" | "i16" | "i32" | "i64" | "i128" | "isize" | "u8" | "u16" | "u32" | "u64" | "u128" | "usize" => {
            "core::num"
        }
        _ if a_type.starts_with("*const ") => "core::ptr::const_ptr",
        _ if a_type.starts_with("*mut ") => "core::ptr::mut_ptr",
        _ if a_type.starts_with('[') => "core::slice",
        _ => segment(pointee(a_type)).0,
    }
}

/// A segment of a path, without suffixes.
fn segment(text: &str) -> (&str, &str) {
    let mut depth = 0usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return text.split_at(at + 1);
                }
            }
            b':' | b'<' | b'.' | b' ' | b'(' | b'[' if depth == 0 => {
                // A suffix such as `.cold` or `[abc]` ends the name.
                return match byte {
                    b':' | b'<' => text.split_at(at),
                    _ => (&text[..at], ""),
                };
            }
            _ => {}
        }
    }
    (text, "")
}

/// `{{closure}}`, `{closure#0}`, `{closure_env#0}`: `{closure}`. `{impl#2}`: nothing.
fn plain(segment: &str) -> std::borrow::Cow<'_, str> {
    if !segment.starts_with('{') {
        return segment.trim_start_matches(':').into();
    }
    let inside = segment.trim_start_matches('{');
    let word = inside.split(['#', ':', '}']).next().unwrap_or_default();
    let word = word.strip_suffix("_env").unwrap_or(word);
    if word == "impl" || word.is_empty() { "".into() } else { format!("{{{word}}}").into() }
}

/// The contents of the bracket at the start of `text`, and the rest.
pub fn bracketed(text: &str) -> (&str, &str) {
    let mut depth = 0usize;
    let mut before = 0;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'<' => depth += 1,
            // The arrow of a function type is no bracket.
            b'>' if before != b'-' => {
                depth -= 1;
                if depth == 0 {
                    return (&text[1..at], &text[at + 1..]);
                }
            }
            _ => {}
        }
        before = byte;
    }
    (&text[1..], "")
}

/// Splits at the first `separator` outside of all brackets.
pub fn split_top<'name>(text: &'name str, separator: &str) -> Option<(&'name str, &'name str)> {
    let mut depth = 0usize;
    let mut before = 0;
    for (at, byte) in text.bytes().enumerate() {
        if depth == 0 && text.as_bytes()[at..].starts_with(separator.as_bytes()) {
            return Some((&text[..at], &text[at + separator.len()..]));
        }
        match byte {
            b'<' | b'(' | b'[' | b'{' => depth += 1,
            b'>' if before == b'-' => {}
            b'>' | b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        before = byte;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::path;

    #[test]
    fn names_become_paths() {
        for (name, expected) in [
            ("main", "main"),
            ("serde_json::de::from_str", "serde_json::de::from_str"),
            ("serde_json::de::from_str::<app::Config>", "serde_json::de::from_str"),
            ("core::ptr::drop_in_place<alloc::vec::Vec<u8>>", "core::ptr::drop_in_place"),
            ("<alloc::vec::Vec<T,A> as core::ops::drop::Drop>::drop", "alloc::vec::Vec::drop"),
            ("<alloc::vec::Vec<u8>>::push", "alloc::vec::Vec::push"),
            ("alloc::vec::Vec<T,A>::push", "alloc::vec::Vec::push"),
            ("<&T as core::fmt::Debug>::fmt", "core::fmt::Debug::fmt"),
            (
                "<&mut W as core::fmt::Write::write_fmt::SpecWriteFmt>::spec",
                "core::fmt::Write::write_fmt::SpecWriteFmt::spec",
            ),
            (
                "<&mut alloc::string::String as core::fmt::Write>::write_str",
                "alloc::string::String::write_str",
            ),
            ("core::fmt::num::<impl core::fmt::Debug for u32>::fmt", "core::fmt::Debug::fmt"),
            ("<u32 as core::fmt::Debug>::fmt", "core::fmt::Debug::fmt"),
            ("std::io::impls::<impl std::io::Read for &[u8]>::read", "std::io::Read::read"),
            (
                "alloc::slice::<impl alloc::borrow::ToOwned for [T]>::to_owned",
                "alloc::borrow::ToOwned::to_owned",
            ),
            ("core::str::<impl str>::parse", "core::str::parse"),
            ("<str>::parse::<u32>", "core::str::parse"),
            ("<[T]>::iter", "core::slice::iter"),
            ("<*const T>::add", "core::ptr::const_ptr::add"),
            ("<dyn core::any::Any>::downcast_ref::<T>", "core::any::Any::downcast_ref"),
            ("app::main::{{closure}}", "app::main::{closure}"),
            ("app::main::{closure#0}::{closure#2}", "app::main::{closure}::{closure}"),
            ("{closure#0}<u8, fn(u8) -> u32>", "{closure}"),
            (
                "core::ops::function::FnOnce::call_once{{vtable.shim}}",
                "core::ops::function::FnOnce::call_once{{vtable.shim}}",
            ),
            (
                "<app::main::{closure#0} as core::ops::function::FnOnce<()>>::call_once::{shim:vtable#0}",
                "app::main::{closure}::call_once::{shim}",
            ),
            ("core::iter::adapters::map::{impl#2}::next<u8, fn() -> u8>", "core::iter::adapters::map::next"),
            ("<<T as a::Tr>::Out as b::Other<fn(&u8) -> bool>>::run", "a::Tr::Out::run"),
            (
                "<F as core::str::pattern::Pattern>::is_contained_in",
                "core::str::pattern::Pattern::is_contained_in",
            ),
            (
                "<alloc::boxed::Box<dyn core::ops::function::Fn() -> u8 + core::marker::Send> as core::ops::function::FnOnce<()>>::call_once",
                "alloc::boxed::Box::call_once",
            ),
            ("app::work.cold", "app::work"),
            ("<(A, B) as app::Both<x::Y>>::both", "app::Both::both"),
            ("", ""),
            ("<", ""),
            ("<>", ""),
            (">::x", ">::x"),
        ] {
            assert_eq!(path(name), expected, "{name}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_has_a_path(text in "[a-zé<>:&(){}\\[\\] #+.'-]{0,60}|.{0,20}") {
            proptest::prop_assert!(path(&text).len() <= 4 * text.len() + 32);
        }
    }
}
