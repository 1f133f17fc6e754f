//! Vtables of C++ classes, which symbols name: `vtable for app::Node`. A check of those of Rust, which debug information
//! describes.
//!
//! Source: Itanium C++ ABI §2.5. A vtable begins with the offset of the value and its type information; the pointer in a
//! value is behind them. The parts for base classes at other offsets follow in the same symbol.

use super::{Layouts, Shape, Vtable};
use crate::elf::Elf;
use crate::locate::Files;
use crate::naming::name_of_symbol;
use object::LittleEndian;
use object::elf;
use object::read::elf::Sym;

/// Bytes before the address that values hold: offset of the value, type information.
const PREFIX: u64 = 16;

/// Whether a vtable of Rust can be that of a type with this size. It begins with a function, the size and the alignment.
pub(super) fn has_size(vtable: &Vtable, size: u64, file: Option<&Elf<'_>>) -> bool {
    let word = vtable.address.checked_add(8).and_then(|at| file?.bytes_at(at)?.first_chunk::<8>());
    word.is_none_or(|word| u64::from_le_bytes(*word) == size)
}

/// Finds the vtables of classes that are known.
pub(super) fn of_symbols(layouts: &Layouts, files: &Files) -> Vec<Vtable> {
    let Some((elf, table)) = files.symbols() else { return Vec::new() };
    let Some(symbols) = elf.symbols(table) else { return Vec::new() };
    let program = files.program.as_ref().and_then(|file| Elf::parse(file).ok());
    let mut found = Vec::new();
    for symbol in symbols.iter() {
        if symbol.st_shndx.get(LittleEndian) == elf::SHN_UNDEF || symbol.st_type() != elf::STT_OBJECT {
            continue;
        }
        let Ok(name) = symbols.symbol_name(LittleEndian, symbol) else { continue };
        let Some(name) = std::str::from_utf8(name).ok().filter(|name| name.starts_with("_ZTV")) else {
            continue;
        };
        let named = name_of_symbol(name.split('@').next().unwrap_or_default());
        let full = named.spec.unwrap_or(named.func);
        let Some(class) = full.strip_prefix("vtable for ").or(full.strip_prefix("{vtable(")) else {
            continue;
        };
        let Some(type_id) = layouts.by_cpp_name(class.trim_end_matches(")}")) else { continue };
        let start = symbol.st_value(LittleEndian);
        found.push(Vtable { address: start.saturating_add(PREFIX), type_id, offset: 0 });
        let layout = layouts.get(type_id);
        let Shape::Struct(fields) = &layout.shape else { continue };
        if layout.partial || fields.is_empty() {
            continue;
        }
        // Addresses are filled in when the program starts, but offsets are in the file.
        let size = usize::try_from(symbol.st_size(LittleEndian)).unwrap_or(0);
        let bytes = program.as_ref().and_then(|elf| elf.bytes_at(start)).unwrap_or_default();
        let words = bytes.get(..size).unwrap_or_default().chunks_exact(8);
        for (index, word) in words.enumerate().skip(2) {
            let word = i64::from_le_bytes(word.try_into().unwrap_or_default());
            let offset = word.unsigned_abs();
            if word < 0 && offset < layout.size && offset % 8 == 0 {
                let address = start.saturating_add(8 * index as u64 + PREFIX);
                found.push(Vtable { address, type_id, offset });
            }
        }
    }
    found
}
