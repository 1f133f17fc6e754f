//! Names of functions for reports, from the raw names in symbol tables and debug information. Each thread demangles every
//! distinct raw name once.

use crate::dwarf::names::RawName;
use crate::module_path::Origin;
use crate::{cpp_path, module_path, rust_path};
use foldhash::HashMap;
use gimli::DwLang;
use std::fmt::{self, Write};
use std::sync::Arc;

/// Most bytes of a name: hostile manglings expand without end.
const LONGEST: usize = 16 * 1024;

/// A function's name in all its forms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Path without generic arguments, hashes and impl decoration: `serde_json::de::from_str`.
    pub func: Arc<str>,
    /// The full demangled form, if it differs.
    pub spec: Option<Arc<str>>,
    /// The crate; empty for foreign functions, and if unknown.
    pub krate: Arc<str>,
    /// Not compiled from Rust.
    pub foreign: bool,
}

/// The mangling of a raw name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Scheme {
    Rust,
    Cpp,
    Plain,
}

/// Names a function by its symbol: Rust (both mangling schemes), C++ or plain.
///
/// ```
/// let named = stackglass_debug_info::naming::name_of_symbol("_ZN10serde_json2de8from_str17h0123456789abcdefE");
/// assert_eq!(&*named.func, "serde_json::de::from_str");
/// assert_eq!(&*named.krate, "serde_json");
/// assert!(!named.foreign);
/// ```
pub fn name_of_symbol(symbol: &str) -> Named {
    let (scheme, text) = demangle(symbol);
    named(scheme, &text, scheme != Scheme::Rust)
}

fn named(scheme: Scheme, text: &str, foreign: bool) -> Named {
    let func = match scheme {
        Scheme::Rust => rust_path::path(text),
        Scheme::Cpp => cpp_path::path(text),
        Scheme::Plain => plain(text).to_owned(),
    };
    let func: Arc<str> = if func.is_empty() { Arc::from(text) } else { Arc::from(func) };
    let spec = (*func != *text).then(|| Arc::from(text));
    let krate: Arc<str> = Arc::from(if foreign { "" } else { crate_of(text, &func) });
    Named { func, spec, krate, foreign }
}

/// The crate of the source code: the first part of the demangled name, which is the module of an implementation if the
/// name has it; else that of the path.
fn crate_of<'a>(text: &'a str, func: &'a str) -> &'a str {
    let first = |text: &'a str| text.split_once("::").map_or("", |(first, _)| first);
    [first(text), first(func)].into_iter().find(|part| !part.is_empty() && is_identifier(part)).unwrap_or("")
}

fn is_identifier(text: &str) -> bool {
    text.chars().all(|char| char.is_alphanumeric() || char == '_')
}

/// A C name without the suffixes that compilers give to copies of a function.
fn plain(name: &str) -> &str {
    let marks = [".constprop.", ".isra.", ".part.", ".cold", ".lto_priv", ".llvm.", ".localalias"];
    let end = marks.iter().filter_map(|mark| name.find(mark)).min();
    &name[..end.filter(|end| *end > 0).unwrap_or(name.len())]
}

fn demangle(symbol: &str) -> (Scheme, String) {
    if looks_like_rust(symbol)
        && let Ok(name) = rustc_demangle::try_demangle(symbol)
    {
        return (Scheme::Rust, bounded(|text| write!(text, "{name:#}")));
    }
    if symbol.starts_with("_Z") || symbol.starts_with("__Z") {
        let options = cpp_demangle::DemangleOptions::new();
        if let Ok(name) = cpp_demangle::Symbol::new(symbol.as_bytes())
            && let text = bounded(|text| name.structured_demangle(text, &options))
            && !text.is_empty()
        {
            return (Scheme::Cpp, text);
        }
    }
    (Scheme::Plain, symbol.to_owned())
}

/// Rust's legacy scheme is C++'s with a hash as the last part (`17h` and 16 digits).
fn looks_like_rust(symbol: &str) -> bool {
    if symbol.starts_with("_R") {
        return true;
    }
    let Some(end) = symbol.rfind("17h").filter(|_| symbol.starts_with("_ZN")) else { return false };
    let hash = &symbol.as_bytes()[end + 3..];
    hash.len() > 16 && hash[..16].iter().all(u8::is_ascii_hexdigit) && hash[16] == b'E'
}

/// Text that does not grow beyond [`LONGEST`].
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > LONGEST {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

fn bounded(write: impl FnOnce(&mut Bounded) -> fmt::Result) -> String {
    let mut text = Bounded(String::new());
    // Text up to the bound is used.
    let _ = write(&mut text);
    text.0
}

/// Names functions, and caches the names.
#[derive(Default)]
pub struct Namer {
    symbols: HashMap<Box<[u8]>, Named>,
    paths: HashMap<String, Named>,
}

impl Namer {
    /// Names a function by its symbol.
    pub fn symbol(&mut self, symbol: &[u8]) -> Named {
        if let Some(known) = self.symbols.get(symbol) {
            return known.clone();
        }
        let named = name_of_symbol(&String::from_utf8_lossy(symbol));
        self.symbols.insert(symbol.into(), named.clone());
        named
    }

    /// Names a function by its entry in the debug information. `None` if it has no name.
    pub fn entry(&mut self, raw: &RawName<'_>, origin: Origin<'_>) -> Option<Named> {
        let rust = raw.language == Some(gimli::DW_LANG_Rust);
        let mut found = if let Some(linkage) = raw.linkage {
            self.symbol(linkage)
        } else {
            let name = String::from_utf8_lossy(raw.name?);
            let scheme = match raw.language {
                _ if rust => Scheme::Rust,
                Some(language) if is_plain(language) => Scheme::Plain,
                None => Scheme::Plain,
                Some(_) => Scheme::Cpp,
            };
            let mut text = String::new();
            for scope in &raw.scopes {
                text.push_str(&String::from_utf8_lossy(scope));
                text.push_str("::");
            }
            if rust && raw.scopes.is_empty() && !name.split('<').next().unwrap_or_default().contains("::") {
                // Line tables alone have the last part of the path only. The source file gives the rest.
                for part in module_path::from_origin(origin) {
                    text.push_str(&part);
                    text.push_str("::");
                }
            }
            text.push_str(&name);
            match self.paths.get(&text) {
                Some(known) => known.clone(),
                None => {
                    let named = named(scheme, &text, !rust);
                    self.paths.insert(text, named.clone());
                    named
                }
            }
        };
        if raw.language.is_some() {
            found.foreign = !rust;
        }
        if found.foreign {
            found.krate = Arc::from("");
        } else if found.krate.is_empty()
            && let Some(krate) = origin.unit.and_then(module_path::crate_of_unit)
        {
            found.krate = Arc::from(krate);
        }
        Some(found)
    }
}

fn is_plain(language: DwLang) -> bool {
    matches!(
        language,
        gimli::DW_LANG_C
            | gimli::DW_LANG_C89
            | gimli::DW_LANG_C99
            | gimli::DW_LANG_C11
            | gimli::DW_LANG_C17
            | gimli::DW_LANG_Mips_Assembler
            | gimli::DW_LANG_Go
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_of_all_schemes() {
        for (symbol, func, krate, foreign) in [
            ("_ZN4core3fmt5write17h01234567890abcdeE", "core::fmt::write", "core", false),
            (
                "_ZN50_$LT$$RF$mut$u20$W$u20$as$u20$core..fmt..Write$GT$9write_str17h0123456789abcdefE.llvm.77",
                "core::fmt::Write::write_str",
                "core",
                false,
            ),
            ("_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar", "mycrate", false),
            ("_RNCNvCsgStHSCytQ6I_7mycrate4main0B3_", "mycrate::main::{closure}", "mycrate", false),
            ("_ZNSt6vectorIiSaIiEE9push_backEOi", "std::vector::push_back", "", true),
            ("_ZN3foo3barEv", "foo::bar", "", true),
            ("memcpy", "memcpy", "", true),
            ("do_work.constprop.0", "do_work", "", true),
            ("_ZN3foo", "_ZN3foo", "", true),
            ("_R", "_R", "", true),
            ("", "", "", true),
        ] {
            let named = name_of_symbol(symbol);
            assert_eq!((&*named.func, &*named.krate, named.foreign), (func, krate, foreign), "{symbol}");
        }
        let full = name_of_symbol("_ZNSt6vectorIiSaIiEE9push_backEOi").spec.unwrap();
        assert!(full.contains("vector<int"), "{full}");
    }

    #[test]
    fn expanding_names_are_cut() {
        // Each substitution doubles what it refers to.
        let mut symbol = String::from("_Z1fI1AE");
        for seed in 0..60 {
            let digit = char::from_digit(seed % 36, 36).unwrap().to_ascii_uppercase();
            symbol.push_str(&format!("1gIS{digit}_S{digit}_E"));
        }
        assert!(name_of_symbol(&symbol).func.len() <= LONGEST);
    }

    proptest::proptest! {
        #[test]
        fn any_symbol_has_a_name(symbol in "(_ZN?|_R)[A-Za-z0-9_$.]{0,80}") {
            let named = name_of_symbol(&symbol);
            proptest::prop_assert!(!named.func.is_empty());
        }
    }
}
