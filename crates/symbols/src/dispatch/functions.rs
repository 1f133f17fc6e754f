//! The address range of the function around an address: from the unwind table, else from the symbol table.

use crate::covering::Covering;
use crate::unwind_table;
use object::elf;
use object::read::elf::Sym;
use stackglass_debug_info::elf::{Elf, Table};
use std::ops::Range;

/// The function around each of the sorted `addresses`.
pub(crate) fn around(elf: &Elf<'_>, addresses: &[u64]) -> Vec<Option<Range<u64>>> {
    let mut found = unwind_table::functions(elf, addresses);
    if found.iter().any(Option::is_none) {
        by_symbols(elf, addresses, &mut found);
    }
    found
}

/// Fills the gaps of `found` in one pass over the symbols. The last start before an address wins.
fn by_symbols(elf: &Elf<'_>, addresses: &[u64], found: &mut [Option<Range<u64>>]) {
    let little = object::LittleEndian;
    let mut covering = Covering::new(addresses);
    for symbols in [Table::Full, Table::Dynamic].into_iter().filter_map(|table| elf.symbols(table)) {
        for symbol in symbols.iter().filter(|symbol| symbol.st_type() == elf::STT_FUNC) {
            let start = symbol.st_value(little);
            let end = start.saturating_add(symbol.st_size(little));
            covering.insert(start..end);
        }
    }
    for (range, found) in covering.finish().zip(found) {
        if found.is_none() {
            *found = range;
        }
    }
}
