//! Which units hold the wanted addresses.
//!
//! `.debug_aranges` answers that without opening a unit. Not every producer writes it, so the
//! units it does not speak of are asked themselves, but only when an address is still homeless.

use crate::dwarf::unit::DebugInfo;
use std::collections::BTreeMap;
use std::ops::Range;

/// A unit, by the index of its header, and the wanted addresses it may hold (indices, sorted).
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Share {
    pub unit: usize,
    pub addresses: Vec<u32>,
}

/// Shares the sorted `addresses` out to units. Where units overlap, an address has several.
pub(crate) fn shares(info: &DebugInfo<'_>, addresses: &[u64], code: &[Range<u64>]) -> Vec<Share> {
    let mut shares =
        Shares { addresses, code, by_unit: BTreeMap::new(), homed: vec![false; addresses.len()] };
    let mut listed = vec![false; info.headers.len()];
    let mut sets = info.dwarf.debug_aranges.headers();
    while let Ok(Some(set)) = sets.next() {
        let Some(unit) = info.index_of(set.debug_info_offset()) else { continue };
        let mut entries = set.entries();
        // A set with one bad entry (an address that overflows) is still good for the others, and
        // the iterator ends by itself when it cannot go on.
        while let Some(entry) = entries.next().transpose() {
            if let Ok(entry) = entry
                && entry.length() > 0
            {
                listed[unit] = true;
                shares.add(unit, entry.range());
            }
        }
    }
    let unlisted = (0..listed.len()).filter(|unit| !listed[*unit]);
    for unit in unlisted {
        if shares.homed.iter().all(|homed| *homed) {
            break;
        }
        ask(info, unit, &mut shares);
    }
    let by_unit = shares.by_unit.into_iter();
    by_unit
        .map(|(unit, mut addresses)| {
            addresses.sort_unstable();
            addresses.dedup();
            Share { unit, addresses }
        })
        .collect()
}

struct Shares<'a> {
    addresses: &'a [u64],
    code: &'a [Range<u64>],
    by_unit: BTreeMap<usize, Vec<u32>>,
    homed: Vec<bool>,
}

impl Shares<'_> {
    fn add(&mut self, unit: usize, range: gimli::Range) {
        // Dropped functions keep their length but start at zero.
        if !self.code.is_empty() && !self.code.iter().any(|code| code.contains(&range.begin)) {
            return;
        }
        let first = self.addresses.partition_point(|address| *address < range.begin);
        let end = self.addresses.partition_point(|address| *address < range.end);
        if first < end {
            self.by_unit.entry(unit).or_default().extend((first..end).map(|index| index as u32));
            self.homed[first..end].fill(true);
        }
    }
}

/// Takes a unit's own word for its ranges, or, when it says nothing, that of its line table.
fn ask(info: &DebugInfo<'_>, index: usize, shares: &mut Shares<'_>) {
    let header = &info.headers[index];
    if matches!(
        header.type_(),
        gimli::UnitType::Type { .. } | gimli::UnitType::SplitType { .. } | gimli::UnitType::Partial
    ) {
        return;
    }
    let Ok(unit) = info.open(index) else { return };
    let mut any = false;
    if let Ok(mut ranges) = unit.with(&info.dwarf).unit_ranges() {
        while let Ok(Some(range)) = ranges.next() {
            if range.begin < range.end {
                any = true;
                shares.add(index, range);
            }
        }
    }
    if !any
        && let Some(program) = unit.unit.line_program.clone()
        && let Ok((_, sequences)) = program.sequences()
    {
        for sequence in sequences {
            shares.add(index, gimli::Range { begin: sequence.start, end: sequence.end });
        }
    }
}
