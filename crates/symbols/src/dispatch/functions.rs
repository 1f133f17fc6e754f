//! Where the function around an address begins and ends: by the unwind table, else by the symbol table.

use crate::elf::{Elf, Table};
use crate::unwind_table;
use object::elf;
use object::read::elf::Sym;
use std::ops::Range;

/// For each of the sorted `addresses` the function it lies in.
pub(super) fn around(elf: &Elf<'_>, addresses: &[u64]) -> Vec<Option<Range<u64>>> {
    let mut found = unwind_table::functions(elf, addresses);
    if found.iter().any(Option::is_none) {
        by_symbols(elf, addresses, &mut found);
    }
    found
}

/// Finds what has not been found yet in one pass over the symbols. The last start before an address wins.
fn by_symbols(elf: &Elf<'_>, addresses: &[u64], found: &mut [Option<Range<u64>>]) {
    let little = object::LittleEndian;
    let mut covering: Vec<Option<Range<u64>>> = vec![None; addresses.len()];
    for symbols in [Table::Full, Table::Dynamic].into_iter().filter_map(|table| elf.symbols(table)) {
        for symbol in symbols.iter().filter(|symbol| symbol.st_type() == elf::STT_FUNC) {
            let start = symbol.st_value(little);
            let end = start.saturating_add(symbol.st_size(little));
            // Kept at the first address in it only, so that a table costs one search for each symbol.
            let first = addresses.partition_point(|address| *address < start);
            if addresses.get(first).is_none_or(|address| *address >= end) {
                continue;
            }
            let known = &mut covering[first];
            if known.as_ref().is_none_or(|known| known.start < start) {
                *known = Some(start..end);
            }
        }
    }
    let mut last: Option<Range<u64>> = None;
    for ((address, covering), found) in addresses.iter().zip(covering).zip(found) {
        last = covering.or(last).filter(|last| last.contains(address));
        if found.is_none() {
            found.clone_from(&last);
        }
    }
}
