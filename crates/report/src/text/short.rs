//! Names of functions and locations, shortened to the available columns. The last parts of a path say the most.

use crate::text::columns::{cut_left, cut_right, width};
use stackglass_profile::frame::file_name;
use stackglass_profile::{ShortPath, sanitize};

/// A function's path, shortened to the last parts that fit.
pub(crate) fn short_function(name: &str, room: usize) -> String {
    if width(name) <= room {
        return name.to_owned();
    }
    let mut rest = name;
    while let Some((_, inner)) = rest.split_once("::") {
        rest = inner;
        if width(rest) < room {
            return format!("…{rest}");
        }
    }
    cut_name(rest, room)
}

/// The whole name in lines, broken between its parts where that is possible: the first of at most `room` columns, the others of
/// `below`.
pub(crate) fn broken_name(name: &str, room: usize, below: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = name;
    let mut room = room;
    while width(rest) > room {
        let mut used = 0;
        let fits = |(_, char): &(usize, char)| {
            used += width(char.encode_utf8(&mut [0; 4]));
            used <= room
        };
        let end = rest.char_indices().take_while(fits).last().map_or(0, |(at, char)| at + char.len_utf8());
        // A character that is wider than the room.
        let end = if end == 0 { rest.chars().next().map_or(rest.len(), char::len_utf8) } else { end };
        let fallback = if rest[..end].ends_with(':') && rest[end..].starts_with(':') { end - 1 } else { end };
        // Before a space or a bracket, a path is better.
        let breaks = ["::", "<", " "].iter().filter_map(|mark| Some(rest[..end].rfind(mark)? + mark.len()));
        let at = breaks.into_iter().find(|at| *at > end / 3).unwrap_or(fallback.max(1));
        if at == rest.len() {
            break;
        }
        room = below;
        lines.push(rest[..at].to_owned());
        rest = &rest[at..];
    }
    lines.push(rest.to_owned());
    lines
}

/// A name cut at the end. A start address behind a module is kept: `libcla…+0x12f0`.
pub(crate) fn cut_name(name: &str, room: usize) -> String {
    let start = name.rfind("+0x").filter(|at| name[at + 3..].bytes().all(|byte| byte.is_ascii_hexdigit()));
    match start.map(|at| name.split_at(at)) {
        Some((module, start)) if width(name) > room && start.len() < room => {
            format!("{}{start}", cut_right(module, room - start.len()))
        }
        _ => cut_right(name, room).into_owned(),
    }
}

/// The name shown for code without names in a module: `[xz]`.
pub(crate) fn in_brackets(module: &str) -> String {
    format!("[{}]", sanitize(file_name(module).trim_matches(['[', ']'])))
}

/// The last two named parts of a function's path: `Condvar::wait`, `score::run::{closure}`.
pub(crate) fn tail(name: &str) -> &str {
    last_names(name, 2)
}

/// The last named part: `wait`, `run::{closure}`.
pub(crate) fn last_name(name: &str) -> &str {
    last_names(name, 1)
}

fn last_names(name: &str, count: usize) -> &str {
    let mut named = 0;
    for (at, _) in name.rmatch_indices("::") {
        named += usize::from(!name[at + 2..].starts_with('{'));
        if named == count {
            return &name[at + 2..];
        }
    }
    name
}

/// `@crate/src/file.rs:41` if it fits, otherwise `file.rs:41`.
pub(crate) fn location_text(short: Option<&ShortPath>, file: &str, line: i64, room: usize) -> String {
    let number = if line > 0 { line.to_string() } else { "?".to_owned() };
    let long = match short {
        Some(short) if !short.prefix.is_empty() => {
            let slash = if short.rest.starts_with('/') { "" } else { "/" };
            format!("{}{slash}{}:{number}", sanitize(&short.prefix), sanitize(&short.rest))
        }
        Some(short) => format!("{}:{number}", sanitize(&short.rest)),
        // For other files the folder may be useful, but not the whole path on the build machine.
        None => {
            let parts = file.rmatch_indices('/').nth(1);
            format!("{}:{number}", sanitize(parts.map_or(file, |(at, _)| &file[at + 1..])))
        }
    };
    if width(&long) <= room {
        return long;
    }
    let name = shortest_location(file, line);
    if width(&name) <= room { name } else { cut_left(&name, room).into_owned() }
}

/// `file.rs:41`.
pub(crate) fn shortest_location(file: &str, line: i64) -> String {
    let number = if line > 0 { line.to_string() } else { "?".to_owned() };
    format!("{}:{number}", sanitize(file_name(file)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_have_two_names() {
        assert_eq!(tail("std::sync::Condvar::wait"), "Condvar::wait");
        assert_eq!(tail("demo::score::{closure}::{closure}"), "demo::score::{closure}::{closure}");
        assert_eq!(tail("a::demo::score::{closure}"), "demo::score::{closure}");
        assert_eq!(tail("main"), "main");
        assert_eq!(last_name("a::demo::score::{closure}::{closure}"), "score::{closure}::{closure}");
        assert_eq!(last_name("std::sync::Condvar::wait"), "wait");
    }

    #[test]
    fn long_names_are_broken_between_their_parts() {
        assert_eq!(broken_name("serde_json::de::from_str", 24, 22), ["serde_json::de::from_str"]);
        assert_eq!(broken_name("serde_json::de::from_str", 18, 16), ["serde_json::de::", "from_str"]);
        assert_eq!(broken_name("a::<alloc::boxed::Box<b>>", 12, 10), ["a::<alloc::", "boxed::", "Box<b>>"]);
        assert_eq!(broken_name("app::f::{async block#0}", 18, 16), ["app::f::", "{async block#0}"]);
        assert_eq!(broken_name("abcd::e", 5, 3), ["abcd", "::e"]);
        assert_eq!(broken_name("abcdefghij", 4, 2), ["abcd", "ef", "gh", "ij"]);
        assert_eq!(broken_name("漢字", 1, 0), ["漢", "字"]);
        assert_eq!(broken_name("", 4, 2), [""]);
    }

    #[test]
    fn functions_keep_their_last_parts() {
        assert_eq!(short_function("serde_json::de::from_str", 14), "…de::from_str");
        assert_eq!(short_function("serde_json::de::from_str", 6), "from_…");
        assert_eq!(short_function("libstdc++.so.6+0x12f0", 16), "libstdc+…+0x12f0");
        assert_eq!(short_function("libstdc++.so.6+0x12f0", 21), "libstdc++.so.6+0x12f0");
        assert_eq!(short_function("libstdc++.so.6+0x12f0", 5), "libs…");
    }
}
