//! Finds the units that hold given addresses.
//!
//! `.debug_aranges` gives them without opening a unit. Not every producer writes it. Units that it does not list are
//! opened, but only if an address has no unit otherwise.

use crate::dwarf::unit::DebugInfo;
use crate::sections::Reader;
use gimli::DebugInfoOffset;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A unit, by the index of its header, and the addresses that it may hold (sorted indices).
#[derive(Debug, PartialEq, Eq)]
pub struct Share {
    /// Index of the unit's header.
    pub unit: usize,
    /// Indices of addresses.
    pub addresses: Vec<u32>,
}

/// Assigns the sorted `addresses` to units. Where units overlap, an address has several.
pub fn shares(info: &DebugInfo<'_>, addresses: &[u64], code: &[Range<u64>]) -> Vec<Share> {
    let mut shares =
        Shares { addresses, code, by_unit: BTreeMap::new(), assigned: vec![false; addresses.len()] };
    let mut listed = vec![false; info.headers.len()];
    each_set(&info.dwarf.debug_aranges, |offset, ranges| {
        let Some(unit) = info.index_of(offset) else { return };
        ranges.for_each(|range| {
            listed[unit] = true;
            shares.add(unit, range);
        });
    });
    let unlisted = (0..listed.len()).filter(|unit| !listed[*unit]);
    for unit in unlisted {
        if shares.assigned.iter().all(|assigned| *assigned) {
            break;
        }
        add_ranges_of(info, unit, &mut shares);
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

/// The offsets of the units that hold the sorted `addresses`, if `.debug_aranges` has a unit for each of them. Then
/// [`shares`] opens no other unit.
pub fn listed_units(
    aranges: &gimli::DebugAranges<Reader<'_>>,
    addresses: &[u64],
    code: &[Range<u64>],
) -> Option<BTreeSet<usize>> {
    let mut shares =
        Shares { addresses, code, by_unit: BTreeMap::new(), assigned: vec![false; addresses.len()] };
    each_set(aranges, |offset, ranges| ranges.for_each(|range| shares.add(offset.0, range)));
    shares.assigned.iter().all(|assigned| *assigned).then(|| shares.by_unit.into_keys().collect())
}

/// Calls `visit` with the offset and the ranges of each unit in `.debug_aranges`.
fn each_set(
    aranges: &gimli::DebugAranges<Reader<'_>>,
    mut visit: impl FnMut(DebugInfoOffset, &mut dyn Iterator<Item = gimli::Range>),
) {
    let mut sets = aranges.headers();
    while let Ok(Some(set)) = sets.next() {
        let mut entries = set.entries();
        // An entry with an overflowing address is skipped. The iterator ends where it cannot go on.
        let all = std::iter::from_fn(|| entries.next().transpose());
        let mut ranges = all.flatten().filter(|entry| entry.length() > 0).map(|entry| entry.range());
        visit(set.debug_info_offset(), &mut ranges);
    }
}

struct Shares<'a> {
    addresses: &'a [u64],
    code: &'a [Range<u64>],
    by_unit: BTreeMap<usize, Vec<u32>>,
    assigned: Vec<bool>,
}

impl Shares<'_> {
    fn add(&mut self, unit: usize, range: gimli::Range) {
        // Functions that the linker dropped have their length, but start at zero.
        if !self.code.is_empty() && !self.code.iter().any(|code| code.contains(&range.begin)) {
            return;
        }
        let first = self.addresses.partition_point(|address| *address < range.begin);
        let end = self.addresses.partition_point(|address| *address < range.end);
        if first < end {
            self.by_unit.entry(unit).or_default().extend((first..end).map(|index| index as u32));
            self.assigned[first..end].fill(true);
        }
    }
}

/// Adds the ranges that a unit gives or, if it gives none, those of its line table.
fn add_ranges_of(info: &DebugInfo<'_>, index: usize, shares: &mut Shares<'_>) {
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
