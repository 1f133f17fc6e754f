//! Futures that wait for several others: for all of them, as `join!` and `join_all`, or for the first, as `select!`.
//!
//! Those whose names begin with `try_` end early if a part fails.

use crate::needs::Kind;
use stackglass_profile::runtimes::{futures, is_generic, tokio};

/// How the parts of a future are found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Parts {
    /// Each field of the struct is one.
    Fields,
    /// The elements of a tuple, as long as it is there.
    Pair,
    /// The elements of a list.
    List,
}

/// The kind of a macro of tokio, by the file that it is in.
pub(crate) fn of_macro(file: &str) -> Option<Kind> {
    let (path, name) = file.rsplit_once("/src/macros/")?;
    let package = path.rsplit('/').next().unwrap_or(path);
    match name {
        _ if package != "tokio" && !package.starts_with("tokio-1.") => None,
        "join.rs" => Some(Kind::All),
        "try_join.rs" => Some(Kind::Try),
        "select.rs" => Some(Kind::Any),
        _ => None,
    }
}

/// The kind of a future by its type.
pub(crate) fn kind(name: &str) -> Option<(Kind, Parts)> {
    let own = name.strip_prefix(futures::FUTURE)?;
    let is = |types: &[&str]| types.iter().any(|begin| own.starts_with(begin));
    match () {
        () if is(&["join::Join<", "join::Join3<", "join::Join4<", "join::Join5<"]) => {
            Some((Kind::All, Parts::Fields))
        }
        () if is(&["join_all::JoinAll<"]) => Some((Kind::All, Parts::List)),
        () if is(&["try_join_all::TryJoinAll<"]) => Some((Kind::Try, Parts::List)),
        () if is(&["try_join::TryJoin<", "try_join::TryJoin3<"]) => Some((Kind::Try, Parts::Fields)),
        () if is(&["select::Select<"]) => Some((Kind::Any, Parts::Pair)),
        () if is(&["select_all::SelectAll<"]) => Some((Kind::Any, Parts::List)),
        () => None,
    }
}

/// Whether a future with this name waits for the next result of the stream in it.
pub(crate) fn is_next(name: &str) -> bool {
    is_generic(name, futures::NEXT) || is_generic(name, tokio::STREAM_NEXT)
}

/// Whether parts of a type with this name belong to the future around it.
pub(crate) fn passes_on(name: &str) -> bool {
    const MODULES: [&str; 4] = [
        futures::JOIN_ALL_MODULE,
        futures::TRY_JOIN_ALL_MODULE,
        futures::ORDERED_MODULE,
        futures::UNORDERED_MODULE,
    ];
    is_maybe_done(name)
        || is_generic(name, "core::cell::UnsafeCell")
        || is_generic(name, futures::COLLECT)
        || MODULES.iter().any(|module| name.starts_with(module))
}

/// Whether an enum with this name has a future, or what is left of it.
pub(crate) fn is_maybe_done(name: &str) -> bool {
    [tokio::MAYBE_DONE, futures::MAYBE_DONE, futures::TRY_MAYBE_DONE, "core::option::Option"]
        .iter()
        .any(|path| is_generic(name, path))
}

/// Number of elements of a tuple, by its name.
pub(crate) fn elements_of_tuple(name: &str) -> Option<usize> {
    let inside = name.strip_prefix('(')?.strip_suffix(')')?;
    let (mut depth, mut count, mut is_begun) = (0usize, 0, false);
    let mut before = ' ';
    for char in inside.chars() {
        match char {
            '<' | '(' | '[' | '{' => depth += 1,
            // `->` is no bracket.
            '>' if before == '-' => {}
            '>' | ')' | ']' | '}' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        match char {
            ',' if depth == 0 => is_begun = false,
            ' ' => {}
            _ if !is_begun => {
                is_begun = true;
                count += 1;
            }
            _ => {}
        }
        before = char;
    }
    Some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn macros_by_their_files() {
        let file = |file| format!("/home/me/.cargo/registry/src/index/{file}");
        assert_eq!(of_macro(&file("tokio-1.54.1/src/macros/join.rs")), Some(Kind::All));
        assert_eq!(of_macro(&file("tokio-1.54.1/src/macros/try_join.rs")), Some(Kind::Try));
        assert_eq!(of_macro(&file("tokio-1.54.1/src/macros/select.rs")), Some(Kind::Any));
        assert_eq!(of_macro(&file("tokio-more-1.0.0/src/macros/join.rs")), None);
        assert_eq!(of_macro("/home/me/race/src/macros/join.rs"), None);
    }

    #[test]
    fn futures_by_their_types() {
        let of = |name: &str| kind(&format!("{}{name}", futures::FUTURE));
        assert_eq!(of("join_all::JoinAll<app::f::{async_fn_env#0}>"), Some((Kind::All, Parts::List)));
        assert_eq!(of("select_all::SelectAll<app::F>"), Some((Kind::Any, Parts::List)));
        assert_eq!(of("select::Select<app::F, app::G>"), Some((Kind::Any, Parts::Pair)));
        assert_eq!(kind("app::select::Select<app::F, app::G>"), None);
        assert!(!passes_on("tokio::time::timeout::Timeout<core::option::Option<u8>>"));
    }

    #[test]
    fn elements_of_tuples() {
        assert_eq!(elements_of_tuple("(app::f::{async_fn_env#0}<(u8, u8)>, fn(u8) -> (u8, B))"), Some(2));
        assert_eq!(elements_of_tuple("(u8,)"), Some(1));
        assert_eq!(elements_of_tuple("()"), Some(0));
        assert_eq!(elements_of_tuple("app::F"), None);
    }
}
