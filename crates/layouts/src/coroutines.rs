//! Coroutines: the types that rustc makes of `async` functions, blocks and closures.
//!
//! Such a type is an enum whose variants are the points where the function may be suspended. The entry of a variant has the
//! source line of its `.await` (rust-lang/rust 73460). Macros like `tokio::select!` await inside of their own file; there, the
//! variable `__awaitee` in the function has the line of the macro's call.

use super::TypeId;
use stackglass_debug_info::naming::name_of_symbol;
use std::collections::HashMap;
use std::sync::Arc;

/// A source line.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SourceLine {
    /// Path of the file.
    pub file: Arc<str>,
    /// Number of the line, from 1.
    pub line: u32,
}

/// A function that polls the futures of one type for tokio.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PollFunction {
    /// Index of its module in the list that was read.
    pub module: usize,
    /// Its address in the file.
    pub address: u64,
    /// Bytes of its code.
    pub size: u64,
    /// Its name with type arguments: the future and the scheduler.
    pub name: Arc<str>,
}

/// What debug information says of coroutines.
#[derive(Clone, Debug, Default)]
pub struct Coroutines {
    /// By type, of each of the variants of its shape.
    pub(super) lines: HashMap<TypeId, Vec<Option<SourceLine>>>,
    /// By the type of the awaited future.
    pub(super) macro_calls: HashMap<TypeId, SourceLine>,
    pub(super) polls: Vec<PollFunction>,
    pub(super) block_ons: Vec<Arc<str>>,
    /// Paths of functions in implementations as a programmer writes them: by the path with the number of the implementation.
    functions: HashMap<String, Arc<str>>,
}

impl Coroutines {
    /// The line of a variant of a coroutine. For a suspended one, this is the line of its `.await`.
    pub fn line(&self, coroutine: TypeId, variant: usize) -> Option<&SourceLine> {
        self.lines.get(&coroutine)?.get(variant)?.as_ref()
    }

    /// The line where a macro was called that awaits a future of this type.
    pub fn macro_call(&self, awaited: TypeId) -> Option<&SourceLine> {
        self.macro_calls.get(&awaited)
    }

    /// Adds a function that became a coroutine, by its path and its symbol.
    pub(super) fn add_function(&mut self, path: String, symbol: &str) {
        self.functions.entry(path).or_insert_with_key(|path| {
            let named = name_of_symbol(symbol).func;
            // The last part of the symbol is the coroutine, that of the path the function.
            let function = named.rsplit_once("::").map_or(&*named, |(function, _)| function);
            let is_named = function.rsplit("::").next() == path.rsplit("::").next();
            if is_named { function.into() } else { path.as_str().into() }
        });
    }

    /// A path with numbers of implementations, `app::{impl#1}::go`, as a programmer writes it: `app::Service::go`.
    pub fn written_path(&self, path: &str) -> Option<String> {
        let ends = path.match_indices("::").map(|(at, _)| at).chain([path.len()]);
        let longest = ends.filter_map(|end| Some((end, self.functions.get(&path[..end])?))).last()?;
        Some(format!("{}{}", longest.1, &path[longest.0..]))
    }

    /// Paths of the files with coroutines.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.lines.values().filter_map(|lines| lines.iter().flatten().next()).map(|line| &*line.file)
    }

    /// Names of functions that wait for the end of a future, with type arguments: `block_on<app::main::{async_block_env#0}>`.
    pub fn block_ons(&self) -> &[Arc<str>] {
        &self.block_ons
    }

    /// The functions that poll tasks of tokio.
    pub fn polls(&self) -> &[PollFunction] {
        &self.polls
    }
}

/// Whether a type with this name is a coroutine: `app::main::{async_fn_env#0}`.
pub fn is_coroutine(name: &str) -> bool {
    // References and tuples of coroutines are none, nor are functions that return them.
    if ["fn(", "unsafe ", "extern "].iter().any(|begin| name.starts_with(begin))
        || !name.starts_with(|first: char| first.is_alphabetic() || matches!(first, '_' | '{' | '<'))
    {
        return false;
    }
    // Arguments of generic types follow the name.
    let own = own_name(name);
    own.starts_with("{async_") && own.contains("_env#")
}

/// The last part of a path, with its arguments.
fn own_name(name: &str) -> &str {
    let (mut depth, mut start) = (0usize, 0);
    let bytes = name.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'<' => depth += 1,
            // `->` is no bracket.
            b'>' if at > 0 && bytes[at - 1] != b'-' => depth = depth.saturating_sub(1),
            b':' if depth == 0 && at > 0 && bytes[at - 1] == b':' => start = at + 1,
            _ => {}
        }
    }
    &name[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coroutines_are_known_by_the_last_part_of_their_names() {
        assert!(is_coroutine("app::main::{async_fn_env#0}"));
        assert!(is_coroutine("app::{impl#1}::call::{async_block_env#12}<app::S, fn(u8) -> a::B>"));
        assert!(!is_coroutine("app::main::{async_fn_env#0}::Suspend0"));
        assert!(!is_coroutine("core::pin::Pin<app::main::{async_fn_env#0}>"));
        assert!(!is_coroutine("app::main::{closure_env#0}<app::main::{async_fn_env#0}>"));
        assert!(!is_coroutine("&mut app::main::{async_fn_env#0}"));
        assert!(!is_coroutine("(app::main::{async_fn_env#0}, u8)"));
        assert!(!is_coroutine("fn(u64) -> app::child::{async_fn_env#0}"));
        assert!(!is_coroutine(""));
    }
}
