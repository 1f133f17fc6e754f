//! Names of futures as a programmer writes them.

use stackglass_layouts::Coroutines;
use std::sync::Arc;

/// The function of a coroutine: `app::main::{async_fn_env#0}<T>` is `app::main`.
pub(crate) fn function(coroutine: &str, coroutines: &Coroutines) -> Arc<str> {
    let path = without_arguments(coroutine);
    let (function, own) = path.rsplit_once("::").unwrap_or(("", path));
    let written = coroutines.written_path(function);
    // A block in an `async` function is in the function's coroutine, which has no name of its own.
    let function = &*written.as_deref().unwrap_or(function).replace("::{async_fn#0}", "");
    let kind = own.trim_start_matches('{').split("_env#").next().unwrap_or(own);
    let number = own.split("_env#").nth(1).map_or("", |number| number.trim_end_matches('}'));
    match kind {
        "async_fn" => function.into(),
        "async_block" => format!("{function}::{{async block#{number}}}").into(),
        "async_closure" => format!("{function}::{{async closure#{number}}}").into(),
        _ => path.into(),
    }
}

/// A closure as the function that has it: `app::main::{closure_env#1}` is `app::main::{closure#1}`.
pub(crate) fn closure(name: &str) -> Arc<str> {
    without_arguments(name).replace("{closure_env#", "{closure#").replace("::{async_fn#0}", "").into()
}

/// A type without its arguments: `tokio::sync::oneshot::Receiver<u32>` is `tokio::sync::oneshot::Receiver`.
pub(crate) fn without_arguments(name: &str) -> &str {
    match name.strip_suffix('>') {
        // Arguments end the name; the bracket that opens them is the first outside of braces and other brackets.
        Some(_) => {
            let mut depth = 0usize;
            let bytes = name.as_bytes();
            for at in (0..bytes.len()).rev() {
                match bytes[at] {
                    b'>' if at > 0 && bytes[at - 1] == b'-' => {}
                    b'>' => depth += 1,
                    b'<' => {
                        depth = depth.saturating_sub(1);
                        if depth == 0 {
                            return if at == 0 { name } else { &name[..at] };
                        }
                    }
                    _ => {}
                }
            }
            name
        }
        None => name,
    }
}

/// `F` of `block_on<F, S>`.
pub(crate) fn first_argument(name: &str) -> &str {
    let Some((_, arguments)) = name.split_once('<') else { return "" };
    let mut depth = 0usize;
    let bytes = arguments.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'<' | b'(' | b'[' => depth += 1,
            // `->` is no bracket.
            b'>' if at > 0 && bytes[at - 1] == b'-' => {}
            b'>' | b',' if depth == 0 => return &arguments[..at],
            b'>' | b')' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    ""
}

/// The path of a source file from its package on: without the folder of a registry.
pub(crate) fn file_in_crate(path: &str) -> &str {
    let in_registry = path.split_once("/registry/src/").and_then(|(_, rest)| rest.split_once('/'));
    in_registry.map_or(path, |(_, file)| file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_coroutines() {
        let function = |name| function(name, &Coroutines::default());
        assert_eq!(&*function("app::main::{async_fn_env#0}"), "app::main");
        assert_eq!(
            &*function("app::{impl#2}::go::{async_fn_env#0}<fn(u8) -> a::B, x::Y<Z>>"),
            "app::{impl#2}::go"
        );
        assert_eq!(&*function("app::main::{async_block_env#3}<T>"), "app::main::{async block#3}");
        assert_eq!(
            &*function("app::main::{async_block#0}::{async_closure_env#1}"),
            "app::main::{async_block#0}::{async closure#1}"
        );
    }

    #[test]
    fn arguments_are_left_out() {
        assert_eq!(without_arguments("a::B<c::D<E>, F>"), "a::B");
        assert_eq!(without_arguments("a::B"), "a::B");
        assert_eq!(without_arguments("&mut a::B<c>"), "&mut a::B");
        assert_eq!(without_arguments("<>"), "<>");
        assert_eq!(without_arguments(">"), ">");
    }

    #[test]
    fn files_in_crates() {
        let in_registry = "/root/.cargo/registry/src/index.crates.io-1949/hyper-1.6.0/src/lib.rs";
        assert_eq!(file_in_crate(in_registry), "hyper-1.6.0/src/lib.rs");
        assert_eq!(file_in_crate("src/main.rs"), "src/main.rs");
    }

    #[test]
    fn arguments_of_functions() {
        assert_eq!(
            first_argument("block_on<app::main::{async_block_env#0}>"),
            "app::main::{async_block_env#0}"
        );
        assert_eq!(
            first_argument("poll<app::f::{async_fn_env#0}<(u8, u8), fn(u8) -> B>, S>"),
            "app::f::{async_fn_env#0}<(u8, u8), fn(u8) -> B>"
        );
        assert_eq!(first_argument("block_on"), "");
        assert_eq!(first_argument("block_on<"), "");
    }
}
