//! Names of variables, vtables and functions by the addresses at which they begin: what the first word of a block may point to.

use foldhash::HashMap;
use stackglass_debug_info::functions::{Defined, defined_in};
use stackglass_debug_info::naming::name_of_symbol;
use stackglass_debug_info::{Options, locate};
use stackglass_profile::Module;
use std::collections::BTreeSet;

/// The address that objects have of their class's vtable, from its start (Itanium C++ ABI, 2.5.2). Before it lie the offset to the
/// whole object and the type information.
const ADDRESS_POINT: u64 = 16;

/// The names of what begins at each of these addresses in the file of a module. Of a vtable, this is the address that objects
/// have. `None` for addresses with no symbol, or with several of different names.
pub fn names_of_starts(module: &Module, options: &Options, addresses: &[u64]) -> Vec<Option<String>> {
    let files = locate::files_of(module, options);
    let mut found: HashMap<u64, BTreeSet<String>> =
        addresses.iter().map(|address| (*address, BTreeSet::new())).collect();
    let tables = files.symbols().into_iter().chain(files.exports_beside());
    for Defined { addresses, name, is_function } in tables.flat_map(defined_in) {
        if addresses.is_empty() || is_made_by_compiler(name) {
            continue;
        }
        let offset = if !is_function && name.starts_with("_ZTV") { ADDRESS_POINT } else { 0 };
        if let Some(names) = addresses.start.checked_add(offset).and_then(|start| found.get_mut(&start)) {
            names.insert(text(name, is_function));
        }
    }
    let only = |address: &u64| found[address].first().filter(|_| found[address].len() == 1).cloned();
    addresses.iter().map(only).collect()
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
