//! Where the function around an address begins and ends: by the index of the unwind rules, which stays in
//! stripped files, else by the symbol table.
//!
//! Compilers and linkers that move rarely used code away make two functions of one, as far as can be seen here.

use crate::elf::{Elf, Table};
use gimli::{BaseAddresses, EhFrame, EhFrameHdr, EndianSlice, LittleEndian, ParsedEhFrameHdr, UnwindSection};
use object::elf;
use object::read::elf::Sym;
use std::ops::Range;

type Bytes<'data> = EndianSlice<'data, LittleEndian>;

/// For each of the sorted `addresses` the function it lies in.
pub(super) fn around(elf: &Elf<'_>, addresses: &[u64]) -> Vec<Option<Range<u64>>> {
    let mut found: Vec<Option<Range<u64>>> = vec![None; addresses.len()];
    if let Some(rules) = Rules::of(elf) {
        let mut last: Option<Range<u64>> = None;
        for (address, found) in addresses.iter().zip(&mut found) {
            if last.as_ref().is_none_or(|last| !last.contains(address)) {
                last = rules.around(*address);
            }
            found.clone_from(&last);
        }
    }
    if found.iter().any(Option::is_none) {
        by_symbols(elf, addresses, &mut found);
    }
    found
}

/// The unwind rules and their index.
struct Rules<'data> {
    index: ParsedEhFrameHdr<Bytes<'data>>,
    rules: EhFrame<Bytes<'data>>,
    bases: BaseAddresses,
}

impl<'data> Rules<'data> {
    fn of(elf: &Elf<'data>) -> Option<Rules<'data>> {
        let (address, bytes) = elf.unwind_index()?;
        let bases = BaseAddresses::default().set_eh_frame_hdr(address);
        let index = EhFrameHdr::new(bytes, LittleEndian).parse(&bases, 8).ok()?;
        let rules_at = index.eh_frame_ptr().direct().ok()?;
        let rules = EhFrame::new(elf.bytes_at(rules_at)?, LittleEndian);
        Some(Rules { index, rules, bases: bases.set_eh_frame(rules_at) })
    }

    fn around(&self, address: u64) -> Option<Range<u64>> {
        let table = self.index.table()?;
        let found =
            table.fde_for_address(&self.rules, &self.bases, address, EhFrame::cie_from_offset).ok()?;
        let (start, end) = (found.initial_address(), found.end_address());
        (start..end).contains(&address).then_some(start..end)
    }
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
