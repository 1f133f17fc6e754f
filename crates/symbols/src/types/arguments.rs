//! Generic arguments in names of functions and types: of Rust, as in debug information (`push<u8, Global>`) and in
//! demangled symbols (`<alloc::vec::Vec<u8>>::push`), and of C++.

use stackglass_debug_info::rust_path::{bracketed, split_top};

/// Types without a path.
const PRIMITIVES: &[&str] = &[
    "bool", "char", "str", "i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16", "u32", "u64", "u128",
    "usize", "f16", "f32", "f64", "f128", "_",
];

/// Words in types that are no types.
const WORDS: &[&str] = &[
    "dyn", "mut", "const", "fn", "unsafe", "extern", "for", "as", "impl", "true", "false", "C", "Output",
    "Item",
];

/// The last list of arguments in angle brackets, if the name ends with it: `[u8, Global]` of `push<u8, Global>`.
pub(crate) fn last(name: &str) -> Vec<&str> {
    let Some(inside) = last_list(name) else { return Vec::new() };
    split(inside)
}

fn last_list(name: &str) -> Option<&str> {
    if !name.ends_with('>') || name.ends_with("->") {
        return None;
    }
    let (mut depth, mut before, mut open) = (0usize, 0, None);
    for (at, byte) in name.bytes().enumerate() {
        match byte {
            b'<' | b'(' | b'[' | b'{' => {
                if depth == 0 {
                    open = (byte == b'<').then_some(at);
                }
                depth += 1;
            }
            b'>' if before == b'-' || before == b'=' => {}
            b'>' | b')' | b']' | b'}' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        before = byte;
    }
    open.filter(|_| depth == 0).map(|at| &name[at + 1..name.len() - 1])
}

/// The parts of a list between commas outside of brackets.
pub(crate) fn split(list: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = list;
    while let Some((part, after)) = split_top(rest, ",") {
        parts.push(part.trim());
        rest = after;
    }
    if !rest.trim().is_empty() {
        parts.push(rest.trim());
    }
    parts
}

/// The type in front of a method in a demangled symbol: `alloc::vec::Vec<u8>` of `<alloc::vec::Vec<u8>>::push` and of
/// `<alloc::vec::Vec<u8> as core::clone::Clone>::clone`.
pub(crate) fn self_type(symbol: &str) -> Option<&str> {
    if !symbol.starts_with('<') {
        return None;
    }
    let (inside, _) = bracketed(symbol);
    Some(split_top(inside, " as ").map_or(inside, |(a_type, _)| a_type))
}

/// The first list of arguments in angle brackets: `[u8]` of `Vec<u8>` and of `Vec<u8>::Item<u16>`.
pub(crate) fn first(name: &str) -> Vec<&str> {
    let Some(at) = name.find('<') else { return Vec::new() };
    split(bracketed(&name[at..]).0)
}

/// The paths in a name or type.
pub(crate) fn paths(text: &str) -> impl Iterator<Item = &str> {
    // In `<A>::b`, `::b` is no path of its own.
    words(text).filter(|word| !word.starts_with("::") && word.contains("::"))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let part = |char: char| char.is_alphanumeric() || matches!(char, '_' | ':' | '{' | '}' | '#' | '\'');
    text.split(move |char| !part(char)).filter(|word| !word.is_empty())
}

/// Whether the text is a type with all its parameters known. Old symbols have parameters by name: `Vec<T,A>`.
pub(crate) fn is_concrete(text: &str) -> bool {
    let known = |word: &str| {
        word.contains("::")
            || PRIMITIVES.contains(&word)
            || WORDS.contains(&word)
            || word.starts_with(|first: char| first.is_ascii_digit() || first == '\'')
    };
    !text.is_empty() && words(text).all(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_split_outside_of_brackets() {
        for (name, expected) in [
            (
                "grow_one<alloc::string::String, alloc::alloc::Global>",
                &["alloc::string::String", "alloc::alloc::Global"][..],
            ),
            ("insert<(u8, u16), fn(u8, u8) -> u8>", &["(u8, u16)", "fn(u8, u8) -> u8"]),
            ("<a::B<u8>>::from::<[a::C; 4]>", &["[a::C; 4]"]),
            ("{closure#0}<u8>", &["u8"]),
            ("push", &[]),
            ("operator->", &[]),
            ("a<b", &[]),
            (">", &[]),
            ("", &[]),
        ] {
            assert_eq!(last(name), expected, "{name}");
        }
    }

    #[test]
    fn methods_have_a_type() {
        assert_eq!(self_type("<alloc::vec::Vec<u8>>::push"), Some("alloc::vec::Vec<u8>"));
        assert_eq!(self_type("<a::B<u8> as c::D<e::F>>::g"), Some("a::B<u8>"));
        assert_eq!(self_type("a::b"), None);
    }

    #[test]
    fn parameters_are_no_types() {
        for text in [
            "u8",
            "a::B<u8>",
            "(dyn a::B<(), Output=()> + a::Send)",
            "[a::B; 4]",
            "&'a mut str",
            "()",
            "a::{closure_env#0}<u8>",
        ] {
            assert!(is_concrete(text), "{text}");
        }
        for text in ["T", "alloc::vec::Vec<T>", "", "[T]", "core::option::Option<K>"] {
            assert!(!is_concrete(text), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read(text in "[a-z<>:&(){}\\[\\], =-]{0,40}|.{0,20}") {
            last(&text);
            self_type(&text);
            is_concrete(&text);
        }
    }
}
