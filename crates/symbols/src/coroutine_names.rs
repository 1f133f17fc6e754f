//! Names of the bodies of coroutines, as in await stacks.
//!
//! rustc compiles the body of an `async` function to a closure: its symbol is `app::serve::{{closure}}`. Debug information says
//! what it is: `{async_fn#0}`. In recordings with await stacks, the time in which a function runs and the time in which it waits
//! belong to one function, so the body has the function's name.

use stackglass_profile::Frame;
use std::sync::Arc;

/// The last part of names of closures.
pub(crate) const CLOSURE: &str = "::{closure}";

/// The function whose body has this name (as reports show it), this name in debug information, and these scopes around it.
/// `None` if it is not the body of a coroutine.
pub(crate) fn of_body(func: &str, name: &[u8], scopes: &[&[u8]]) -> Option<Arc<str>> {
    let name = std::str::from_utf8(name).ok()?;
    let own = own(name)?;
    let mut outer = func.strip_suffix(CLOSURE)?;
    // Closures around it have numbers in debug information.
    let mut around = Vec::new();
    for scope in scopes.iter().rev() {
        let Some(rest) = outer.strip_suffix(CLOSURE) else { break };
        let scope = std::str::from_utf8(scope).ok()?;
        around.push(scope.split('<').next().unwrap_or(scope));
        outer = rest;
    }
    let mut path = outer.to_owned();
    for scope in around.iter().rev().filter(|scope| **scope != "{async_fn#0}") {
        path.push_str("::");
        path.push_str(scope);
    }
    if let Some(own) = own {
        path.push_str("::");
        path.push_str(&own);
    }
    Some(path.into())
}

/// Whether a frame is the body of a coroutine, in a recording with await stacks: its function has the name of an `async` function,
/// block or closure, and its full name is still that of a closure.
pub fn is_coroutine_body(frame: &Frame) -> bool {
    let is_named = |last: &str| last.starts_with("{async ");
    match frame.func.rsplit_once("::") {
        Some((_, last)) if is_named(last) => true,
        Some((_, last)) if last.starts_with('{') => false,
        _ => frame.spec.as_deref().is_some_and(|spec| last_part(spec).starts_with('{')),
    }
}

/// The last part of a path, with its generic arguments.
fn last_part(path: &str) -> &str {
    let (mut depth, mut last) = (0usize, 0);
    let bytes = path.as_bytes();
    for at in 0..bytes.len() {
        match bytes[at] {
            b'<' | b'(' | b'[' => depth += 1,
            // The arrow of a function's type closes nothing.
            b'>' if at > 0 && bytes[at - 1] == b'-' => {}
            b'>' | b')' | b']' => depth = depth.saturating_sub(1),
            b':' if depth == 0 && at > 0 && bytes[at - 1] == b':' => last = at + 1,
            _ => {}
        }
    }
    path.get(last..).unwrap_or_default()
}

/// The last part of the name: nothing for a function, which names its body. `None` if it is no coroutine.
fn own(name: &str) -> Option<Option<String>> {
    let (kind, rest) = name.strip_prefix('{')?.split_once('#')?;
    let number = rest.split('}').next()?;
    match kind {
        "async_fn" => Some(None),
        "async_block" => Some(Some(format!("{{async block#{number}}}"))),
        "async_closure" => Some(Some(format!("{{async closure#{number}}}"))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_told_from_functions() {
        let is_body = |func: &str, spec: Option<&str>| {
            let spec = spec.map(Arc::from);
            is_coroutine_body(&Frame { func: func.into(), spec, ..Frame::unknown(0) })
        };
        assert!(is_body("app::go", Some("app::go::{{closure}}")));
        assert!(is_body("app::S::go", Some("<app::S as app::T>::go::{async_fn#0}<fn(u8) -> a::B>")));
        assert!(is_body("app::main::{async block#1}", Some("app::main::{{closure}}")));
        assert!(!is_body("app::main::{closure}", Some("app::main::{{closure}}")));
        assert!(!is_body("app::go", Some("app::go<app::main::{closure#0}>")));
        assert!(!is_body("app::go", None) && !is_body("", None));
        for odd in ["", "<<::", "é::é", "a::>>::{", "::"] {
            last_part(odd);
        }
    }

    #[test]
    fn bodies_have_the_names_of_await_stacks() {
        let body = |func: &str, name: &str, scopes: &[&str]| {
            let scopes: Vec<&[u8]> = scopes.iter().map(|scope| scope.as_bytes()).collect();
            of_body(func, name.as_bytes(), &scopes).map(|name| name.to_string())
        };
        let some = |name: &str| Some(name.to_owned());
        assert_eq!(body("app::go::{closure}", "{async_fn#0}<u8>", &["app", "go"]), some("app::go"));
        assert_eq!(
            body(
                "app::S::go::{closure}::{closure}",
                "{async_block#2}",
                &["app", "{impl#1}", "go", "{async_fn#0}"]
            ),
            some("app::S::go::{async block#2}")
        );
        assert_eq!(
            body(
                "app::main::{closure}::{closure}",
                "{async_block#0}<u8>",
                &["app", "main", "{closure#3}<u8>"]
            ),
            some("app::main::{closure#3}::{async block#0}")
        );
        assert_eq!(body("app::main::{closure}", "{closure#0}", &["app", "main"]), None);
        assert_eq!(body("app::main", "{async_fn#0}", &["app", "main"]), None);
        assert_eq!(body("", "", &[]), None);
    }
}
