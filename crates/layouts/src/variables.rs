//! Variables with static storage and thread-local variables: by debug information and by symbols.

use super::entries::Entry;
use super::{ModuleData, Variable};
use gimli::{AttributeValue, Operation, UnitRef};
use object::LittleEndian;
use object::elf;
use object::read::elf::Sym;
use stackglass_debug_info::elf::{Elf, Table};
use stackglass_debug_info::naming::name_of_symbol;
use stackglass_debug_info::sections::Reader;
use std::sync::Arc;

/// Where a variable is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// Address in the file.
    Static(u64),
    /// Offset in the module's thread-local storage.
    ThreadLocal(u64),
}

/// Where a variable is, if it has a fixed place.
pub(super) fn place(entry: &Entry<'_>, unit: UnitRef<'_, Reader<'_>>) -> Option<Place> {
    let Some(AttributeValue::Exprloc(expression)) = entry.location else { return None };
    let mut operations = expression.operations(unit.encoding());
    let value = match operations.next().ok()?? {
        Operation::Address { address } => address,
        Operation::AddressIndex { index } | Operation::ConstantIndex { index } => unit.address(index).ok()?,
        Operation::UnsignedConstant { value } => value,
        Operation::SignedConstant { value } => value.cast_unsigned(),
        _ => return None,
    };
    let is_constant = !matches!(expression.0.slice().first(), Some(first) if *first == gimli::DW_OP_addr.0 || *first == gimli::DW_OP_addrx.0 || *first == gimli::DW_OP_GNU_addr_index.0);
    match operations.next().ok()? {
        None if !is_constant => Some(Place::Static(value)),
        Some(Operation::PlusConstant { value: more }) if !is_constant && operations.next() == Ok(None) => {
            Some(Place::Static(value.wrapping_add(more)))
        }
        Some(Operation::TLS) => Some(Place::ThreadLocal(value)),
        _ => None,
    }
}

/// A symbol of a variable.
struct Symbol<'data> {
    address: u64,
    size: u64,
    name: &'data [u8],
}

/// Leaves out variables that the linker dropped.
pub(super) fn retain_linked(data: &mut ModuleData, elf: &Elf<'_>) {
    data.statics.retain(|variable| elf.is_loaded(variable.address));
    let storage = elf.thread_locals();
    for variable in &mut data.thread_locals {
        // GCC writes addresses instead of offsets into split debug information.
        if storage.contains(&variable.address) {
            variable.address -= storage.start;
        }
    }
    data.thread_locals.retain(|variable| variable.address < storage.end - storage.start);
}

/// Adds the variables that only symbols name, and brings all into order.
pub(super) fn complete(data: &mut ModuleData, symbols: Option<(Elf<'_>, Table)>) {
    let mut thread_locals = Vec::new();
    let mut statics = Vec::new();
    if let Some((elf, table)) = symbols
        && let Some(symbols) = elf.symbols(table)
    {
        for symbol in symbols.iter() {
            let is_object = symbol.st_type() == elf::STT_OBJECT && elf.is_writable(symbol);
            let is_local = symbol.st_type() == elf::STT_TLS;
            let size = symbol.st_size(LittleEndian);
            if !(is_object || is_local) || size == 0 || symbol.st_shndx.get(LittleEndian) == elf::SHN_UNDEF {
                continue;
            }
            let Ok(name) = symbols.symbol_name(LittleEndian, symbol) else { continue };
            let list = if is_local { &mut thread_locals } else { &mut statics };
            list.push(Symbol { address: symbol.st_value(LittleEndian), size, name });
        }
    }
    // Variables that the linker dropped have the offset 0.
    let has_symbols = !thread_locals.is_empty();
    let at_start = |symbol: &Symbol<'_>| symbol.address == 0;
    if has_symbols && !thread_locals.iter().any(at_start) {
        data.thread_locals.retain(|variable| variable.address != 0);
    }
    merge(&mut data.statics, statics);
    merge(&mut data.thread_locals, thread_locals);
}

/// Sorts by address. Where several have one address, the one like the symbol there counts.
fn merge(variables: &mut Vec<Variable>, mut symbols: Vec<Symbol<'_>>) {
    symbols.sort_by_key(|symbol| (symbol.address, symbol.size, symbol.name));
    symbols.dedup_by_key(|symbol| symbol.address);
    let symbol_at = |address: u64| {
        symbols.binary_search_by_key(&address, |symbol| symbol.address).ok().map(|at| &symbols[at])
    };
    for variable in variables.iter_mut() {
        let Some(symbol) = symbol_at(variable.address) else { continue };
        if variable.size == 0 {
            variable.size = symbol.size;
        }
        if variable.name.is_empty() {
            let (path, full) = name_of(symbol);
            variable.name = full.unwrap_or_else(|| display_name(&path).into());
        }
    }
    for variable in variables.iter_mut().filter(|variable| variable.name.is_empty()) {
        variable.name = "(unnamed)".into();
    }
    variables.sort_by_cached_key(|variable| {
        let differs = symbol_at(variable.address).map(|symbol| {
            let (path, _) = name_of(symbol);
            (display_name(&path) != &*variable.name, symbol.size != variable.size)
        });
        (variable.address, differs, variable.type_id.is_none(), std::cmp::Reverse(variable.size))
    });
    variables.dedup_by_key(|variable| variable.address);
    // Entries that complete others may lack the path.
    for variable in variables.iter_mut().filter(|variable| !variable.name.contains("::")) {
        if let Some(symbol) = symbol_at(variable.address) {
            let (path, _) = name_of(symbol);
            if path.strip_suffix(&*variable.name).is_some_and(|scope| scope.ends_with("::")) {
                variable.name = path;
            }
        }
    }
    let known = variables.len();
    for symbol in symbols {
        if variables[..known].binary_search_by_key(&symbol.address, |variable| variable.address).is_err() {
            let (path, full) = name_of(&symbol);
            let name = full.unwrap_or_else(|| display_name(&path).into());
            variables.push(Variable { name, address: symbol.address, type_id: None, size: symbol.size });
        }
    }
    variables.sort_by_key(|variable| variable.address);
}

/// The path of a variable, and its full name if it is not Rust's.
fn name_of(symbol: &Symbol<'_>) -> (Arc<str>, Option<Arc<str>>) {
    let text = String::from_utf8_lossy(symbol.name);
    let named = name_of_symbol(text.split('@').next().unwrap_or_default());
    (named.func, named.spec.filter(|_| named.foreign))
}

/// The name of a variable, without the parts that `thread_local!` and other macros put behind it.
pub(super) fn display_name(path: &str) -> &str {
    path.find("::{constant#").map_or(path, |end| &path[..end])
}
