//! Names of variables, vtables and functions by the addresses at which they begin: what the first word of a block may point to.

use foldhash::HashMap;
use object::LittleEndian;
use object::elf;
use object::read::elf::Sym;
use stackglass_debug_info::naming::name_of_symbol;
use stackglass_debug_info::{Options, locate};
use stackglass_profile::Module;

const LITTLE: LittleEndian = LittleEndian;

/// The address that objects have of their class's vtable, from its start (Itanium C++ ABI, 2.5.2). Before it lie the offset to the
/// whole object and the type information.
const ADDRESS_POINT: u64 = 16;

/// The names of what begins at each of these addresses in the file of a module. Of a vtable, this is the address that objects
/// have. `None` for addresses with no symbol, or with several of different names.
pub fn names_of_starts(module: &Module, options: &Options, addresses: &[u64]) -> Vec<Option<String>> {
    let files = locate::files_of(module, options);
    let mut found: HashMap<u64, Option<String>> = addresses.iter().map(|address| (*address, None)).collect();
    let mut is_ambiguous: HashMap<u64, bool> = HashMap::default();
    let tables = files.symbols().into_iter().chain(files.exports_beside());
    for symbols in tables.filter_map(|(elf, table)| elf.symbols(table)) {
        for symbol in symbols.iter() {
            let is_object = symbol.st_type() == elf::STT_OBJECT;
            if !(is_object || symbol.st_type() == elf::STT_FUNC)
                || symbol.st_shndx.get(LITTLE) == elf::SHN_UNDEF
                || symbol.st_size(LITTLE) == 0
            {
                continue;
            }
            let Some(name) =
                symbols.symbol_name(LITTLE, symbol).ok().and_then(|name| std::str::from_utf8(name).ok())
            else {
                continue;
            };
            let value = symbol.st_value(LITTLE);
            if is_made_by_compiler(name) {
                continue;
            }
            let is_vtable = is_object && name.starts_with("_ZTV");
            let start = if is_vtable { value.checked_add(ADDRESS_POINT) } else { Some(value) };
            let Some((start, slot)) = start.and_then(|start| Some((start, found.get_mut(&start)?))) else {
                continue;
            };
            let name = text(name, !is_object);
            match slot {
                Some(known) if *known != name => {
                    is_ambiguous.insert(start, true);
                }
                _ => *slot = Some(name),
            }
        }
    }
    let name = |address: &u64| found[address].clone().filter(|_| !is_ambiguous.contains_key(address));
    addresses.iter().map(name).collect()
}

/// Whether a symbol says nothing to a programmer: constants of Rust, tables of vtables, vtables while an object is constructed.
fn is_made_by_compiler(name: &str) -> bool {
    ["anon.", ".L", "vtable.", "switch.table", "_ZTT", "_ZTC", "_ZTI", "_ZTS"]
        .iter()
        .any(|start| name.starts_with(start))
}

/// The name as a programmer writes it.
fn text(symbol: &str, is_function: bool) -> String {
    let named = name_of_symbol(symbol);
    match (&named.spec, is_function) {
        (_, true) => format!("{}()", named.func),
        (Some(full), false) if full.starts_with("vtable for ") || full.starts_with("{vtable(") => {
            let class = full
                .strip_prefix("vtable for ")
                .or_else(|| full.strip_prefix("{vtable(")?.strip_suffix(")}"));
            format!("vtable for {}", class.unwrap_or(full))
        }
        _ => named.func.to_string(),
    }
}
