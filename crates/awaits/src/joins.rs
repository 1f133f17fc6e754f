//! Futures that wait for all of their parts: `join!`, `join_all` and others. A task cannot go on without any of them.
//!
//! Those whose names begin with `try_` end early if a part fails.

/// Which parts are needed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// All.
    All,
    /// All, unless one fails.
    Try,
}

/// The kind of a macro of tokio, by the file that it is in.
pub(crate) fn of_macro(file: &str) -> Option<Kind> {
    let (path, name) = file.rsplit_once("/src/macros/")?;
    let package = path.rsplit('/').next().unwrap_or(path);
    match name {
        _ if package != "tokio" && !package.starts_with("tokio-1.") => None,
        "join.rs" => Some(Kind::All),
        "try_join.rs" => Some(Kind::Try),
        _ => None,
    }
}

/// The kind of a future by its type.
pub(crate) fn kind(name: &str) -> Option<Kind> {
    let own = name.strip_prefix("futures_util::future::")?;
    let is = |types: &[&str]| types.iter().any(|begin| own.starts_with(begin));
    match () {
        () if is(&["join_all::JoinAll<", "join::Join<", "join::Join3<", "join::Join4<", "join::Join5<"]) => {
            Some(Kind::All)
        }
        () if is(&["try_join_all::TryJoinAll<", "try_join::TryJoin<", "try_join::TryJoin3<"]) => {
            Some(Kind::Try)
        }
        () => None,
    }
}

/// Whether parts of a type with this name belong to the future around it.
pub(crate) fn passes_on(name: &str) -> bool {
    const PASSES: [&str; 11] = [
        "core::future::poll_fn::PollFn<",
        "core::cell::UnsafeCell<",
        "core::option::Option<",
        "tokio::future::maybe_done::MaybeDone<",
        "futures_util::future::maybe_done::MaybeDone<",
        "futures_util::future::try_maybe_done::TryMaybeDone<",
        "futures_util::future::join_all::",
        "futures_util::future::try_join_all::",
        "futures_util::stream::stream::collect::Collect<",
        "futures_util::stream::futures_ordered::",
        "futures_util::stream::futures_unordered::",
    ];
    // The macros poll their branches in a closure.
    let is_closure = || {
        let own = name.rsplit("::").next().unwrap_or(name);
        own.starts_with("{closure_env#")
    };
    PASSES.iter().any(|begin| name.starts_with(begin)) || is_closure()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn macros_by_their_files() {
        let file = |file| format!("/home/me/.cargo/registry/src/index/{file}");
        assert_eq!(of_macro(&file("tokio-1.54.1/src/macros/join.rs")), Some(Kind::All));
        assert_eq!(of_macro(&file("tokio-1.54.1/src/macros/try_join.rs")), Some(Kind::Try));
        assert_eq!(of_macro(&file("tokio-1.54.1/src/macros/select.rs")), None);
        assert_eq!(of_macro(&file("tokio-more-1.0.0/src/macros/join.rs")), None);
        assert_eq!(of_macro("/home/me/race/src/macros/join.rs"), None);
    }

    #[test]
    fn futures_by_their_types() {
        assert_eq!(
            kind("futures_util::future::join_all::JoinAll<app::f::{async_fn_env#0}>"),
            Some(Kind::All)
        );
        assert_eq!(kind("futures_util::future::select_all::SelectAll<app::F>"), None);
        assert!(passes_on("app::f::{async_fn#0}::{closure_env#0}"));
        assert!(!passes_on("tokio::time::timeout::Timeout<core::option::Option<u8>>"));
    }
}
