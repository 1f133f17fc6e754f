//! The future of a vtable that no debug information describes: the symbols of its functions name it.
//!
//! The compiler merges functions with the same code, so a symbol may be that of another type. The function that polls a coroutine is
//! never merged with that of another function's: its panics name its own line. Any other future is named only if the function that
//! drops it has the same type in its symbol.

use crate::Layouts;
use object::LittleEndian;
use object::elf;
use object::read::elf::Sym;
use stackglass_debug_info::Options;
use stackglass_debug_info::locate::{self, Files};
use stackglass_debug_info::naming::name_of_symbol;
use stackglass_symbols::{PolledFuture, polled_futures};
use std::sync::Arc;

/// The method that polls a future, after its type.
const POLL: &str = " as core::future::future::Future>::poll";
/// The function that drops a value, before its type. The two manglings write it differently.
const DROPS: [&str; 2] = ["core::ptr::drop_in_place::<", "core::ptr::drop_in_place<"];

impl Layouts {
    /// The future that these functions of a module drop and poll, without its type arguments. The addresses are those in the file;
    /// `drop` is `None` if dropping it does nothing. Reads the module's symbols, which takes some milliseconds.
    pub fn future_of_functions(&self, module: usize, drop: Option<u64>, poll: u64) -> Option<Arc<str>> {
        let files = self.files_of(module)?;
        let (elf, table) = files.symbols()?;
        let symbols = elf.symbols(table)?;
        let (mut polled, mut dropped) = (Vec::new(), Vec::new());
        for symbol in symbols.iter() {
            let start = symbol.st_value(LittleEndian);
            let (is_poll, is_drop) = (start == poll, drop == Some(start));
            if !is_poll && !is_drop
                || symbol.st_type() != elf::STT_FUNC
                || symbol.st_shndx.get(LittleEndian) == elf::SHN_UNDEF
            {
                continue;
            }
            let name = symbols.symbol_name(LittleEndian, symbol).ok();
            let name = name_of_symbol(std::str::from_utf8(name?).ok()?);
            let full = name.spec.unwrap_or(name.func);
            if is_poll {
                polled.push(Arc::clone(&full));
            }
            if is_drop {
                dropped.push(full);
            }
        }
        future_of(&polled, &dropped).map(Arc::from)
    }

    /// The futures that these functions of a module poll for tokio, by its symbols and its code. The addresses are those in the
    /// file. Reads the module's symbols, which takes some milliseconds.
    pub fn polled_futures(&self, module: usize, polls: &[u64]) -> Vec<PolledFuture> {
        let files = self.files_of(module).unwrap_or_default();
        polled_futures(&files, polls)
    }

    fn files_of(&self, module: usize) -> Option<Files> {
        let (modules, options) = self.sources.as_deref()?;
        let options = Options { debuginfod: None, ..options.clone() };
        Some(locate::files_of(modules.get(module)?, &options))
    }
}

/// The future that functions with these symbols poll and drop.
fn future_of(polled: &[Arc<str>], dropped: &[Arc<str>]) -> Option<String> {
    let mut coroutines = polled.iter().map(|name| coroutine(name));
    if let Some(Some(first)) = coroutines.next()
        && coroutines.all(|other| other.as_ref() == Some(&first))
    {
        return Some(first);
    }
    let futures = polled.iter().map(|name| without_arguments(name.strip_prefix('<')?.strip_suffix(POLL)?));
    let drops = dropped.iter().map(|name| {
        let owner = DROPS.iter().find_map(|drop| name.strip_prefix(drop))?;
        without_arguments(owner.strip_suffix('>')?)
    });
    let mut all = futures.chain(drops);
    let first = all.next()??;
    (!polled.is_empty() && !dropped.is_empty() && all.all(|other| other == Some(first)))
        .then(|| first.to_owned())
}

/// The `async` function or block of a coroutine, by the symbol of its code.
fn coroutine(name: &str) -> Option<String> {
    let (function, own) = name.rsplit_once("::")?;
    let is_closure = own == "{{closure}}" || own.starts_with("{closure#");
    (is_closure && !function.is_empty()).then(|| name_of_path(function))
}

/// A path without type arguments, which both manglings may have in its middle.
fn name_of_path(path: &str) -> String {
    let mut out = String::new();
    let (mut depth, mut before) = (0usize, ' ');
    for char in path.chars() {
        match char {
            '<' => depth += 1,
            '>' if before != '-' => depth = depth.saturating_sub(1),
            _ if depth == 0 => out.push(char),
            _ => {}
        }
        before = char;
    }
    // `<T as Trait>::method` would lose its type.
    match path.starts_with('<') {
        true => path.to_owned(),
        false => out.replace("::::", "::").trim_end_matches("::").to_owned(),
    }
}

/// A type without its arguments. `None` if it has no path, as a reference or a `dyn` type.
fn without_arguments(name: &str) -> Option<&str> {
    let path = name.split('<').next().unwrap_or(name);
    let is_path = path.chars().all(|char| char.is_alphanumeric() || matches!(char, '_' | ':'));
    (is_path && path.contains("::")).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(polled: &[&str], dropped: &[&str]) -> Option<String> {
        let texts = |names: &[&str]| names.iter().map(|name| Arc::from(*name)).collect::<Vec<Arc<str>>>();
        future_of(&texts(polled), &texts(dropped))
    }

    #[test]
    fn coroutines_are_named_by_their_code() {
        assert_eq!(of(&["app::Pool::get::{{closure}}"], &[]).as_deref(), Some("app::Pool::get"));
        assert_eq!(of(&["app::get::<u8>::{closure#0}"], &[]).as_deref(), Some("app::get"));
        assert_eq!(of(&["app::get::{{closure}}", "app::put::{{closure}}"], &[]), None);
        assert_eq!(of(&["app::get"], &[]), None);
    }

    #[test]
    fn other_futures_need_both_functions() {
        let poll = "<app::Wait<T> as core::future::future::Future>::poll";
        assert_eq!(of(&[poll], &["core::ptr::drop_in_place<app::Wait<u8>>"]).as_deref(), Some("app::Wait"));
        assert_eq!(of(&[poll], &["core::ptr::drop_in_place::<app::Wait<u8>>"]).as_deref(), Some("app::Wait"));
        // Merged code: one of the names is that of another type.
        assert_eq!(of(&[poll], &["core::ptr::drop_in_place<app::Other>"]), None);
        assert_eq!(of(&[poll], &[]), None);
        assert_eq!(of(&[], &["core::ptr::drop_in_place<app::Wait<u8>>"]), None);
    }
}
