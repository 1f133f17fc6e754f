//! Address ranges of functions from the unwind table. Stripped files have it too, since programs need it to run.
//!
//! Source: Linux Standard Base 5 core §10.6. The sorted table in `.eh_frame_hdr` is searched; without it, `.eh_frame` is read
//! once completely. The data is not trusted: an entry counts only for the addresses that it covers, so a wrong table gives
//! wrong ranges for its own code only.
//!
//! A function whose rarely used code was moved elsewhere appears as two functions.

use crate::covering::Covering;
use foldhash::HashMap;
use gimli::{
    BaseAddresses, CieOrFde, CommonInformationEntry, EhFrame, EhFrameHdr, EhFrameOffset, EndianSlice,
    LittleEndian, ParsedEhFrameHdr, UnwindSection,
};
use stackglass_debug_info::elf::Elf;
use std::ops::Range;

type Bytes<'data> = EndianSlice<'data, LittleEndian>;
type Cie<'data> = CommonInformationEntry<Bytes<'data>>;

/// Largest shared part of entries (CIE); real ones have some 24 bytes.
const LONGEST_SHARED: u32 = 4096;

/// The function at each of the sorted `addresses`.
pub(crate) fn functions(elf: &Elf<'_>, addresses: &[u64]) -> Vec<Option<Range<u64>>> {
    let mut found: Vec<Option<Range<u64>>> = vec![None; addresses.len()];
    match Index::from_elf(elf) {
        Some(mut index) => {
            let mut last: Option<Range<u64>> = None;
            for (address, found) in addresses.iter().zip(&mut found) {
                if last.as_ref().is_none_or(|last| !last.contains(address)) {
                    last = index.around(*address);
                }
                found.clone_from(&last);
            }
        }
        None => by_reading_all(elf, addresses, &mut found),
    }
    found
}

/// The unwind rules.
struct Rules<'data> {
    bytes: &'data [u8],
    section: EhFrame<Bytes<'data>>,
    bases: BaseAddresses,
    /// By offset: the shared parts of entries, each mostly used by thousands.
    shared: HashMap<usize, Cie<'data>>,
}

impl<'data> Rules<'data> {
    fn new(bytes: &'data [u8], bases: BaseAddresses) -> Rules<'data> {
        Rules { bytes, section: EhFrame::new(bytes, LittleEndian), bases, shared: HashMap::default() }
    }
}

/// The shared part of an entry, if its length is plausible.
fn shared<'data>(
    bytes: &'data [u8],
    known: &mut HashMap<usize, Cie<'data>>,
    (section, bases, offset): (&EhFrame<Bytes<'data>>, &BaseAddresses, EhFrameOffset),
) -> gimli::Result<Cie<'data>> {
    if let Some(known) = known.get(&offset.0) {
        return Ok(known.clone());
    }
    let length = bytes.get(offset.0..).and_then(|rest| rest.first_chunk::<4>());
    if length.is_none_or(|length| u32::from_le_bytes(*length) > LONGEST_SHARED) {
        return Err(gimli::Error::NotCieId(offset.0 as u64));
    }
    let parsed = section.cie_from_offset(bases, offset)?;
    known.insert(offset.0, parsed.clone());
    Ok(parsed)
}

/// The unwind rules with their sorted index.
struct Index<'data> {
    index: ParsedEhFrameHdr<Bytes<'data>>,
    rules: Rules<'data>,
}

impl<'data> Index<'data> {
    /// `None` without a sorted index.
    fn from_elf(elf: &Elf<'data>) -> Option<Index<'data>> {
        let (address, bytes) = elf.unwind_index()?;
        // gimli multiplies the count without a check; every linker writes a count of four bytes, which cannot overflow.
        if bytes.get(2) != Some(&gimli::constants::DW_EH_PE_udata4.0) {
            return None;
        }
        let bases = BaseAddresses::default().set_eh_frame_hdr(address);
        let index = EhFrameHdr::new(bytes, LittleEndian).parse(&bases, 8).ok()?;
        index.table()?;
        let rules_at = index.eh_frame_ptr().direct().ok()?;
        let rules = Rules::new(elf.bytes_at(rules_at)?, bases.set_eh_frame(rules_at));
        Some(Index { index, rules })
    }

    fn around(&mut self, address: u64) -> Option<Range<u64>> {
        let Rules { bytes, section, bases, shared: known } = &mut self.rules;
        let table = self.index.table()?;
        // gimli subtracts without a check, so an entry before its section is excluded here.
        let entry = table.lookup(address, bases).ok()?.direct().ok()?;
        if entry < self.index.eh_frame_ptr().direct().ok()? {
            return None;
        }
        let found = table.fde_for_address(section, bases, address, |section, bases, offset| {
            shared(bytes, known, (section, bases, offset))
        });
        let found = found.ok()?;
        let (start, end) = (found.initial_address(), found.end_address());
        (start..end).contains(&address).then_some(start..end)
    }
}

/// Reads all entries once. Where entries overlap, the last start before an address counts.
fn by_reading_all(elf: &Elf<'_>, addresses: &[u64], found: &mut [Option<Range<u64>>]) {
    let Some((section, place)) = elf.section(".eh_frame").zip(elf.addresses_of(".eh_frame")) else { return };
    let mut rules = Rules::new(section.bytes, BaseAddresses::default().set_eh_frame(place.start));
    let mut covering = Covering::new(addresses);
    let mut entries = rules.section.entries(&rules.bases);
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(entry) = entry else { continue };
        let parsed = entry
            .parse(|section, bases, offset| shared(rules.bytes, &mut rules.shared, (section, bases, offset)));
        let Ok(entry) = parsed else { continue };
        covering.insert(entry.initial_address()..entry.end_address());
    }
    for (range, found) in covering.finish().zip(found) {
        *found = range;
    }
}
