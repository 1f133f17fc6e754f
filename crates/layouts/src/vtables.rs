//! Vtables of C++ classes, which symbols name: `vtable for app::Node`. A check of those of Rust, which debug information
//! describes.
//!
//! Source: Itanium C++ ABI §2.5. A vtable begins with offsets for virtual bases, if there are any. The offset of the value and
//! its type information follow; the pointer in a value leads behind them. The parts for base classes at other offsets follow
//! in the same symbol. Vtables for the time of construction have symbols of their own (`_ZTC`): no object keeps them.

use super::{Layouts, Vtable};
use foldhash::HashMap;
use object::elf::{self, Rela64};
use object::read::elf::Sym;
use object::{LittleEndian, SymbolIndex};
use stackglass_debug_info::elf::{Elf, Table};
use stackglass_debug_info::locate::Files;
use stackglass_debug_info::naming::name_of_symbol;

/// Begin of the symbols of vtables.
const VTABLE: &str = "_ZTV";
/// Begin of the symbols of type information.
const TYPEINFO: &str = "_ZTI";
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
    let mut typeinfos: HashMap<u64, &str> = HashMap::default();
    let mut vtables = Vec::new();
    for symbol in symbols.iter() {
        if symbol.st_shndx.get(LittleEndian) == elf::SHN_UNDEF || symbol.st_type() != elf::STT_OBJECT {
            continue;
        }
        let Some(name) = symbols.symbol_name(LittleEndian, symbol).ok().and_then(text) else { continue };
        let start = symbol.st_value(LittleEndian);
        if let Some(class) = name.strip_prefix(TYPEINFO) {
            typeinfos.insert(start, class);
        } else if let Some(class) = name.strip_prefix(VTABLE) {
            vtables.push((class, name, start, symbol.st_size(LittleEndian)));
        }
    }
    if vtables.is_empty() {
        return Vec::new();
    }
    let relocated = program.as_ref().map_or_else(HashMap::default, |elf| relocated(elf, &typeinfos));
    let mut found = Vec::new();
    for (class, symbol, start, size) in vtables {
        let named = name_of_symbol(symbol);
        let full = named.spec.unwrap_or(named.func);
        let Some(name) = full.strip_prefix("vtable for ").or(full.strip_prefix("{vtable(")) else {
            continue;
        };
        let Some(type_id) = layouts.by_cpp_name(name.trim_end_matches(")}")) else { continue };
        let layout = layouts.get(type_id);
        // Addresses are filled in when the program starts, but offsets are in the file.
        let bytes = program.as_ref().and_then(|elf| elf.bytes_at(start)).unwrap_or_default();
        let bytes = bytes.get(..usize::try_from(size).unwrap_or(0)).unwrap_or_default();
        let is_typeinfo = |place: u64, word: u64| {
            relocated.get(&place).or_else(|| typeinfos.get(&word)).is_some_and(|found| *found == class)
        };
        let points = address_points(start, bytes, is_typeinfo);
        if points.is_empty() && !layout.partial {
            // Compiled without type information, or copied from a library.
            found.push(Vtable { address: start.saturating_add(PREFIX), type_id, offset: 0, of_class: true });
        }
        let inside = points.into_iter().filter(|(_, offset)| *offset == 0 || *offset < layout.size);
        found.extend(inside.map(|(address, offset)| Vtable { address, type_id, offset, of_class: true }));
    }
    found
}

/// The addresses in a vtable that objects hold, and where they hold them. Before such an address lie the offset of the object
/// and a pointer to type information. Only before these lie offsets of virtual bases.
fn address_points(start: u64, bytes: &[u8], is_typeinfo: impl Fn(u64, u64) -> bool) -> Vec<(u64, u64)> {
    let words = bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()));
    let mut points = Vec::new();
    let mut before = None;
    for (index, word) in words.enumerate() {
        let place = start.saturating_add(8 * index as u64);
        let to_start = before.replace(word as i64);
        if let Some(to_start) = to_start.filter(|to_start| *to_start <= 0 && to_start % 8 == 0)
            && is_typeinfo(place, word)
        {
            points.push((place.saturating_add(8), to_start.unsigned_abs()));
        }
    }
    points
}

/// The words that hold the address of type information when the program runs, and the symbol of its class.
fn relocated<'names>(elf: &Elf<'names>, typeinfos: &HashMap<u64, &'names str>) -> HashMap<u64, &'names str> {
    let symbols = elf.symbols(Table::Dynamic);
    let target = |relocation: &Rela64<LittleEndian>| {
        let kind = relocation.r_type(LittleEndian, false);
        if kind == elf::R_X86_64_RELATIVE {
            return typeinfos.get(&(relocation.r_addend.get(LittleEndian) as u64)).copied();
        }
        if kind != elf::R_X86_64_64 {
            return None;
        }
        let symbols = symbols.as_ref()?;
        let index = SymbolIndex(relocation.r_sym(LittleEndian, false) as usize);
        let name = symbols.symbol_name(LittleEndian, symbols.symbol(index).ok()?).ok()?;
        text(name)?.strip_prefix(TYPEINFO)
    };
    let all = elf.relocations();
    all.filter_map(|relocation| Some((relocation.r_offset.get(LittleEndian), target(relocation)?))).collect()
}

/// The name of a symbol of C++, without its version.
fn text(name: &[u8]) -> Option<&str> {
    let is_cpp = name.starts_with(VTABLE.as_bytes()) || name.starts_with(TYPEINFO.as_bytes());
    let name = std::str::from_utf8(name).ok().filter(|_| is_cpp)?;
    name.split('@').next()
}
