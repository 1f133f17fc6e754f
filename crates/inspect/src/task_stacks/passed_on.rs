//! Which frames between two `async` functions only pass a poll on.
//!
//! The stack of a thread has them: `join!` calls a closure, which calls a library's future, which polls the next function. An await
//! stack has none of them. So that polls and waits of a function are in one place of a tree, they are left out. What is left says
//! as much: one function polls the other, in one poll of the task.
//!
//! A function that is no future and calls `block_on` looks much the same. Its frames stay: it holds up its worker.

use super::calls::Call;
use stackglass_profile::runtimes::COMBINATIONS;

/// Parts of names of functions that drive futures on their own.
const DRIVERS: [&str; 8] = [
    "block_on",
    "block_in_place",
    "enter_runtime",
    "now_or_never",
    "run",
    "run_until",
    "run_until_stalled",
    "try_run_one",
];
/// Folders of sources that are not the reader's own.
const LIBRARIES: [&str; 5] =
    ["/registry/src/", "/git/checkouts/", "/.cargo/", "/rustlib/src/rust/library/", "/vendor/"];
/// Crates of the standard library.
const STD: [&str; 3] = ["core", "alloc", "std"];

/// Whether all of these calls, made by the body of `outer`, only pass a poll on.
pub(super) fn are_passed_on<'c>(calls: impl IntoIterator<Item = &'c Call>, outer: &str) -> bool {
    calls.into_iter().all(|call| {
        !is_driver(&call.function)
            && (is_closure_of(&call.function, outer) || is_poll(&call.function) || is_of_library(call, outer))
    })
}

/// Whether a task of this type has the type as a frame of its own, if it is no `async` function.
pub(super) fn is_combination(name: &str) -> bool {
    COMBINATIONS.iter().any(|begin| name.starts_with(begin))
}

fn is_driver(function: &str) -> bool {
    function.split("::").any(|part| DRIVERS.contains(&part))
}

/// Whether a function is a closure in the same function as a body, as macros make them.
fn is_closure_of(function: &str, outer: &str) -> bool {
    let base = outer.split("::{").next().unwrap_or(outer);
    let rest = function.strip_prefix(base).and_then(|rest| rest.strip_prefix("::"));
    rest.is_some_and(|rest| rest.split("::").all(|part| part.starts_with("{closure")))
}

/// Whether a function is that of a future, a stream or the like, by its name, or a closure in one.
fn is_poll(function: &str) -> bool {
    let named = function.rsplit("::").find(|part| !part.starts_with('{'));
    named.is_some_and(|name| name == "poll" || name.starts_with("poll_"))
}

fn is_of_library(call: &Call, outer: &str) -> bool {
    let krate = |path: &str| path.split("::").next().unwrap_or(path).to_owned();
    match &*call.file {
        _ if STD.contains(&&*krate(&call.function)) => true,
        // Only dependencies have no lines where the program's own crate has types.
        "" => krate(&call.function) != krate(outer),
        file => file.starts_with("/rustc/") || LIBRARIES.iter().any(|folder| file.contains(folder)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn are_passed(calls: &[(&str, &str)]) -> bool {
        let call = |(function, file): &(&str, &str)| Call {
            function: (*function).into(),
            file: (*file).into(),
            line: 1,
            is_body: false,
        };
        let calls: Vec<Call> = calls.iter().map(call).collect();
        are_passed_on(&calls, "app::both::{async block#0}")
    }

    #[test]
    fn polls_of_libraries_are_passed_on() {
        let (own, registry) =
            ("/home/me/app/src/main.rs", "/root/.cargo/registry/src/a/tokio-1.54.1/src/x.rs");
        assert!(are_passed(&[]));
        assert!(are_passed(&[
            ("core::future::poll_fn::PollFn::poll", "/rustc/1/library/core/src/future/poll_fn.rs"),
            ("app::both::{closure}::{closure}", own),
            ("tokio::future::maybe_done::MaybeDone::poll", registry),
            ("tower::util::oneshot::Oneshot::advance", ""),
            ("app::Hand::poll", own),
            ("app::Hand::poll_next::{closure}", own),
        ]));
        // Functions of the reader's own, and what drives other futures meanwhile.
        assert!(!are_passed(&[("app::helper", own)]));
        assert!(!are_passed(&[("app::both", own)]));
        assert!(!are_passed(&[("app::both_of::{closure}", own)]));
        assert!(!are_passed(&[("app::both::inner::{closure}", own)]));
        assert!(!are_passed(&[("tokio::runtime::park::CachedParkThread::block_on::{closure}", registry)]));
        assert!(!are_passed(&[("futures_executor::local_pool::LocalPool::run_until", "")]));
    }
}
