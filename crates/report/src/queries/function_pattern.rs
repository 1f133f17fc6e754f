//! Patterns for functions, by names as reports show them: the last parts of a path, with or without generic arguments,
//! a module in brackets, or the exported name of a C function.

use crate::text::short::in_brackets;
use stackglass_profile::Frame;
use std::borrow::Cow;

/// What reports show for code without a name in any module.
const NAMELESS: &[&str] = &[
    "[unknown functions]",
    "[unknown function]",
    "[unknown code]",
    "[unknown stackframe]",
    "[any unknown stackframes]",
];

/// A function name as given by the user.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct FunctionPattern {
    text: String,
    /// The name without generic arguments, if any arguments match.
    path: Option<String>,
}

impl FunctionPattern {
    pub(crate) fn new(name: &str) -> FunctionPattern {
        // A cut path begins with an ellipsis.
        let text = one_brace(name.trim_start_matches(['…', ':'])).into_owned();
        let given = arguments(&text);
        let path = given.filter(|(path, arguments)| {
            !path.is_empty() && arguments.iter().all(|one| one.contains('…') || one.contains("..."))
        });
        FunctionPattern { path: path.map(|(path, _)| path), text }
    }

    pub(crate) fn matches(&self, frame: &Frame) -> bool {
        if frame.func.is_empty() {
            let of_module = || self.text == in_brackets(&frame.module);
            return self.text.is_empty() || NAMELESS.contains(&&*self.text) || of_module();
        }
        let func = one_brace(&frame.func);
        ends(&func, &self.text)
            || self.path.as_ref().is_some_and(|path| ends(&func, path))
            || frame.spec.as_ref().is_some_and(|spec| self.is_in_full(&one_brace(spec)))
            || is_alias(&frame.func, &self.text)
    }

    /// Whether the full form of a name ends with the text, or continues where the text was cut.
    fn is_in_full(&self, spec: &str) -> bool {
        let spec = spec.replace("::<", "<");
        let text = self.text.replace("::<", "<");
        match text.strip_suffix('…') {
            Some("") => false,
            Some(cut) => {
                let mut places = spec.match_indices(cut);
                places.any(|(at, _)| at == 0 || spec[..at].ends_with("::"))
            }
            None => ends(&spec, &text),
        }
    }
}

/// Whether a path ends with these whole parts.
fn ends(name: &str, parts: &str) -> bool {
    name.strip_suffix(parts).is_some_and(|rest| rest.is_empty() || rest.ends_with("::"))
}

/// `{closure}` for `{{closure}}`, `{closure#0}` and `{closure_env#0}`, as in paths.
fn one_brace(name: &str) -> Cow<'_, str> {
    if !name.contains("{{") && !name.contains('#') {
        return Cow::Borrowed(name);
    }
    let mut plain = String::with_capacity(name.len());
    for part in name.replace("{{", "{").replace("}}", "}").split_inclusive('}') {
        let number = part.rsplit_once('#').and_then(|(before, rest)| Some((before, rest.strip_suffix('}')?)));
        match number {
            Some((before, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
                plain.push_str(before.strip_suffix("_env").unwrap_or(before));
                plain.push('}');
            }
            _ => plain.push_str(part),
        }
    }
    Cow::Owned(plain)
}

/// A name without its generic arguments, and the arguments. `None` if brackets do not match, or enclose the type or
/// trait that a method belongs to.
fn arguments(name: &str) -> Option<(String, Vec<&str>)> {
    if name.starts_with('<') || name.contains("<impl ") {
        return None;
    }
    let (mut path, mut found, mut depth, mut start) = (String::new(), Vec::new(), 0_usize, 0);
    let mut before = ' ';
    for (at, c) in name.char_indices() {
        match c {
            '<' => {
                if depth == 0 {
                    path.truncate(path.trim_end_matches("::").len());
                    start = at + 1;
                }
                depth += 1;
            }
            '>' if before != '-' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    found.push(&name[start..at]);
                }
            }
            c if depth == 0 => path.push(c),
            _ => {}
        }
        before = c;
    }
    (depth == 0).then_some((path, found))
}

/// Whether programs call a C symbol by this name: `qsort_r` is `__GI___qsort_r`.
fn is_alias(symbol: &str, name: &str) -> bool {
    if symbol.contains("::") || name.is_empty() {
        return false;
    }
    let symbol = symbol.split('@').next().unwrap_or(symbol);
    let exported = symbol.strip_prefix("__GI_").unwrap_or(symbol);
    let exported = exported.strip_suffix("_impl").unwrap_or(exported);
    let plain = exported.strip_prefix("__libc_").or_else(|| exported.strip_prefix("__"));
    [Some(symbol), Some(exported), plain].contains(&Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, func: &str, spec: Option<&str>) -> bool {
        let frame = Frame { func: func.into(), spec: spec.map(Into::into), ..Frame::unknown(0) };
        FunctionPattern::new(pattern).matches(&frame)
    }

    #[test]
    fn suffixes_are_whole_parts() {
        for func in ["serde_json::de::from_str", "de::from_str"] {
            assert!(matches("de::from_str", func, None) && matches("…de::from_str", func, None));
            assert!(matches("::de::from_str", func, None));
        }
        for func in ["code::from_str", "from_str", ""] {
            assert!(!matches("de::from_str", func, None), "{func}");
        }
    }

    #[test]
    fn names_are_taken_as_trees_show_them() {
        let closure = |pattern: &str| {
            matches(pattern, "std::rt::lang_start::{closure}", Some("std::rt::lang_start::<()>::{closure#0}"))
        };
        for pattern in [
            "lang_start::{{closure}}",
            "lang_start::{closure}",
            "{closure#0}",
            "lang_start::<()>::{closure#0}",
            "std::rt::lang_start::<()>::{{clos…",
            "lang_start::<…>::{{closure}}",
        ] {
            assert!(closure(pattern), "{pattern}");
        }
        assert!(!closure("lang_start") && !closure("start::{closure}") && !closure("…"));
        let generic = |pattern: &str| {
            matches(pattern, "std::panic::catch_unwind", Some("std::panic::catch_unwind::<isize>"))
        };
        for pattern in ["catch_unwind", "catch_unwind::<isize>", "catch_unwind<isize>", "catch_unwind::<…>"]
        {
            assert!(generic(pattern), "{pattern}");
        }
        for pattern in ["catch_unwind::<u8>", "unwind::<isize>", "catch_unwind::<", "<…>"] {
            assert!(!generic(pattern), "{pattern}");
        }
        let method =
            |pattern: &str| matches(pattern, "a::B::next", Some("<a::B as core::iter::Iterator>::next"));
        assert!(
            method("<a::B as core::iter::Iterator>::next") && !method("<a::C as core::iter::Iterator>::next")
        );
        let higher = |pattern: &str| matches(pattern, "a::run", Some("a::run::<fn(u8) -> u8>"));
        assert!(higher("run::<fn(u8) -> u8>") && !higher("run::<fn(u8) -> u16>"));
    }

    #[test]
    fn nameless_code_goes_by_its_module() {
        let nameless = |pattern: &str, module: &str| {
            FunctionPattern::new(pattern).matches(&Frame { module: module.into(), ..Frame::unknown(0) })
        };
        assert!(nameless("[xz]", "xz") && nameless("[xz]", "/usr/bin/xz") && nameless("[vdso]", "[vdso]"));
        assert!(!nameless("[xz]", "unxz") && !nameless("xz", "xz"));
        assert!(nameless("[unknown functions]", "xz") && nameless("[unknown functions]", ""));
        assert!(!matches("[unknown functions]", "main", None));
    }

    #[test]
    fn the_c_library_has_the_names_that_programs_know() {
        for (name, symbol) in [
            ("malloc", "__GI___libc_malloc"),
            ("qsort_r", "__qsort_r"),
            ("qsort_r", "__GI___qsort_r"),
            ("__qsort_r", "__GI___qsort_r"),
            ("read", "__libc_read"),
            ("memcpy", "memcpy@@GLIBC_2.14"),
            ("__libc_start_main", "__libc_start_main_impl"),
        ] {
            assert!(matches(name, symbol, None), "{name} is {symbol}");
        }
        for (name, symbol) in
            [("malloc", "my_malloc"), ("qsort", "__qsort_r"), ("read", "a::__read"), ("", "__")]
        {
            assert!(!matches(name, symbol, None), "{name} is not {symbol}");
        }
    }
}
