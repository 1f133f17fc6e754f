//! Variables with static storage and thread-local variables: by debug information and by symbols.

use super::entries::Entry;
use super::{ModuleData, Variable};
use crate::elf::{Elf, Table};
use crate::naming::name_of_symbol;
use crate::sections::Reader;
use gimli::{AttributeValue, Operation, UnitRef};
use object::LittleEndian;
use object::elf;
use object::read::elf::Sym;

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

/// Adds the variables that only symbols name, and brings all into order. Where several have one address, the first one with a
/// type counts.
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
            let address = symbol.st_value(LittleEndian);
            let list = if is_local { &mut thread_locals } else { &mut statics };
            list.push((address, size, name));
        }
    }
    merge(&mut data.statics, statics);
    merge(&mut data.thread_locals, thread_locals);
}

fn merge(variables: &mut Vec<Variable>, mut symbols: Vec<(u64, u64, &[u8])>) {
    // Larger ones first, and those with a type before others.
    variables.sort_by_key(|variable| {
        (variable.address, variable.type_id.is_none(), std::cmp::Reverse(variable.size))
    });
    variables.dedup_by_key(|variable| variable.address);
    symbols.sort_unstable();
    symbols.dedup_by_key(|(address, ..)| *address);
    let known = variables.len();
    for (address, size, name) in symbols {
        if variables[..known].binary_search_by_key(&address, |variable| variable.address).is_err() {
            let name = String::from_utf8_lossy(name);
            let name = name_of_symbol(name.split('@').next().unwrap_or_default());
            let name = name.spec.unwrap_or(name.func);
            variables.push(Variable { name, address, type_id: None, size });
        }
    }
    variables.sort_by_key(|variable| variable.address);
}

/// The name of a variable, without the parts that `thread_local!` and other macros put behind it.
pub(super) fn display_name(path: &str) -> &str {
    path.find("::{constant#").map_or(path, |end| &path[..end])
}
