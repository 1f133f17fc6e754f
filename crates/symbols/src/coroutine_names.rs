//! Names of the bodies of coroutines, as in await stacks.
//!
//! rustc compiles the body of an `async` function to a closure: its symbol is `app::serve::{{closure}}`. Debug information says
//! what it is: `{async_fn#0}`. In recordings with await stacks, the time in which a function runs and the time in which it waits
//! belong to one function, so the body has the function's name.

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
