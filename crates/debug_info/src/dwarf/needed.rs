//! Loads as much of the sections as lookups of some addresses need.
//!
//! The two largest sections are in the order of their units. Where the units of all wanted addresses are known, only
//! their fronts are decompressed, up to the last of these units: names of a few functions of the C library take half of
//! the file or less.

use crate::Error;
use crate::dwarf::abbreviations::Abbreviations;
use crate::dwarf::{index, unit};
use crate::elf::Elf;
use crate::front::Front;
use crate::sections::{IN_PART, Reader, Sections};
use gimli::{Section, SectionId};
use std::collections::BTreeSet;
use std::ops::Range;

/// Loads as much of the needed sections as lookups of these sorted addresses read. References to other units may need
/// more: see [`Sections::whole`].
pub fn load_for<'data>(
    elf: &Elf<'data>,
    addresses: &[u64],
    code: &[Range<u64>],
) -> Result<Sections<'data>, Error> {
    if !IN_PART.iter().any(|id| elf.debug_section(id.name()).is_some_and(Front::is_possible)) {
        return Sections::load(elf, false);
    }
    let mut sections = Sections::load_small(elf)?;
    let units = index::listed_units(&sections.dwarf().debug_aranges, addresses, code);
    let last = units.as_ref().and_then(|units| units.last().copied());
    sections.load_up_to(elf, SectionId::DebugInfo, last)?;
    let programs = units.and_then(|units| line_programs(&sections.dwarf(), &units));
    if programs.is_none() && sections.is_cut() {
        // Units are not where `.debug_aranges` says.
        sections.load_up_to(elf, SectionId::DebugInfo, None)?;
    }
    let last = programs.and_then(|programs| programs.last().copied());
    sections.load_up_to(elf, SectionId::DebugLine, last)?;
    Ok(sections)
}

/// The offsets of the line tables of these units. `None` if one of them is not a unit, or cannot be read.
fn line_programs(dwarf: &gimli::Dwarf<Reader<'_>>, units: &BTreeSet<usize>) -> Option<BTreeSet<usize>> {
    let mut programs = BTreeSet::new();
    let mut found = 0;
    let mut headers = dwarf.units();
    while let Ok(Some(header)) = headers.next() {
        if header.debug_info_offset().is_some_and(|offset| units.contains(&offset.0)) {
            found += 1;
            let abbreviations =
                Abbreviations::new(dwarf.debug_abbrev.reader().slice(), header.debug_abbrev_offset().0);
            programs.extend(unit::line_program(header, &abbreviations)?);
        }
    }
    (found == units.len()).then_some(programs)
}
