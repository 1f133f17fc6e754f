//! Allocators that are part of an executable: those that are not reached through `malloc` of another library.
//!
//! A recording of allocations sees what goes through the dynamic linker. The symbols of an executable tell whether it contains an
//! allocator of its own, and `__rust_alloc` tells whether Rust code uses it. [`takeover`] proves which of its functions can be
//! redirected.

mod breakpoints;
mod code;
mod entries;
mod families;
mod takeover;

pub use breakpoints::cheap_breakpoint;
pub use entries::{FunctionEntry, function_entries};
pub use takeover::{MovableFunction, MovableStart, MovedDistance, movable_functions};

use code::Code;
use families::Family;
use object::LittleEndian;
use object::elf;
use object::read::elf::Sym;
use stackglass_debug_info::elf::{Elf, Table};
use stackglass_debug_info::mapped::Mapped;
use std::path::Path;

const LITTLE: LittleEndian = LittleEndian;

/// An allocator that is part of an executable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkedAllocator {
    /// Its name, if it is a known one: `mimalloc`.
    pub name: Option<&'static str>,
    /// The symbol that shows it.
    pub symbol: String,
    /// The executable itself defines `malloc`, for its libraries as well.
    pub replaces_malloc: bool,
    /// The executable contains Rust code that allocates.
    pub is_rust: bool,
}

/// The allocator that is part of an executable; `None` if it uses `malloc` of the C library, or of another library, as far as
/// its symbols tell.
pub fn linked_allocator(path: &Path) -> Option<LinkedAllocator> {
    let file = Mapped::open(path).ok()?;
    let elf = Elf::parse(&file).ok()?;
    let symbols = Symbols::from_elf(&elf);
    let linked = |name, symbol: &str, replaces_malloc| {
        let is_rust = symbols.rust_alloc.is_some();
        Some(LinkedAllocator { name, symbol: symbol.to_owned(), replaces_malloc, is_rust })
    };
    if symbols.defines_malloc {
        return linked(symbols.family.map(|family| family.name), "malloc", true);
    }
    if let Some(family) = symbols.family {
        return linked(Some(family.name), &symbols.family_symbol, false);
    }
    let rust_alloc = symbols.rust_alloc?;
    code::never_reaches_malloc(&Code::from_elf(&elf), rust_alloc)
        .then(|| linked(None, "__rust_alloc", false))?
}

/// What the symbol tables tell of allocators.
#[derive(Default)]
struct Symbols {
    /// A function `malloc` that other libraries see, too.
    defines_malloc: bool,
    family: Option<&'static Family>,
    /// The symbol that shows the family.
    family_symbol: String,
    /// Address of `__rust_alloc`.
    rust_alloc: Option<u64>,
    /// The Python interpreter contains mimalloc, and uses it only on request.
    is_python: bool,
}

impl Symbols {
    fn from_elf(elf: &Elf<'_>) -> Symbols {
        let mut found = Symbols::default();
        for table in [Table::Dynamic, Table::Full] {
            let Some(symbols) = elf.symbols(table) else { continue };
            for symbol in symbols.iter() {
                // Imports from libraries often have no type.
                let is_defined = symbol.st_shndx.get(LITTLE) != elf::SHN_UNDEF;
                let is_function = matches!(symbol.st_type(), elf::STT_FUNC | elf::STT_NOTYPE);
                if !is_function {
                    continue;
                }
                let Ok(name) = symbols.symbol_name(LITTLE, symbol) else { continue };
                found.add(name, symbol.st_value(LITTLE), is_defined, table);
            }
        }
        if found.is_python {
            found.family = None;
        }
        found
    }

    fn add(&mut self, name: &[u8], value: u64, is_defined: bool, table: Table) {
        if is_defined && table == Table::Dynamic && name == b"malloc" {
            self.defines_malloc = true;
        } else if is_defined && name == b"PyObject_Malloc" {
            self.is_python = true;
        } else if is_defined && self.rust_alloc.is_none() && is_rust_alloc(name) {
            self.rust_alloc = Some(value);
        } else if self.family.is_none()
            && let Some(family) = families::shown_by(name)
        {
            self.family = Some(family);
            self.family_symbol = String::from_utf8_lossy(name).into_owned();
        }
    }
}

/// Whether a symbol is the function `__rust_alloc`, mangled or not.
fn is_rust_alloc(name: &[u8]) -> bool {
    std::str::from_utf8(name).is_ok_and(|name| rust_allocator_function(name) == Some("__rust_alloc"))
}

/// The functions through which all Rust code of a program allocates, in front of any `#[global_allocator]`.
///
/// Source: compiler/rustc_ast/src/expand/allocator.rs, `ALLOCATOR_METHODS`.
const RUST_FUNCTIONS: [&str; 4] = ["__rust_alloc", "__rust_alloc_zeroed", "__rust_realloc", "__rust_dealloc"];

/// Which of `__rust_alloc`, `__rust_alloc_zeroed`, `__rust_realloc` and `__rust_dealloc` a symbol is, mangled or not.
pub fn rust_allocator_function(symbol: &str) -> Option<&'static str> {
    let name = RUST_FUNCTIONS.into_iter().find(|name| symbol.ends_with(name))?;
    let plain = format!("{:#}", rustc_demangle::demangle(symbol));
    (plain.strip_prefix("__rustc::").unwrap_or(&plain) == name).then_some(name)
}
