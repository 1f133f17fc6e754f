//! Sections ready for reading: decompressed, all of them or only the front of the largest.

use crate::Error;
use crate::decompress::expand;
use crate::elf::{Elf, RawSection};
use crate::front::Front;
use crate::mapped::Mapped;
use gimli::{EndianSlice, LittleEndian, SectionId};
use std::borrow::Cow;
use std::sync::OnceLock;

/// The reader of DWARF sections.
pub type Reader<'data> = EndianSlice<'data, LittleEndian>;

/// The sections with names and lines. Locations of variables, macros and type units, often the larger half, are not read.
pub const NEEDED: [SectionId; 10] = [
    SectionId::DebugInfo,
    SectionId::DebugAbbrev,
    SectionId::DebugLine,
    SectionId::DebugStr,
    SectionId::DebugLineStr,
    SectionId::DebugStrOffsets,
    SectionId::DebugAddr,
    SectionId::DebugRanges,
    SectionId::DebugRngLists,
    SectionId::DebugAranges,
];

/// The sections that are in the order of their units, and large.
pub(crate) const IN_PART: [SectionId; 2] = [SectionId::DebugInfo, SectionId::DebugLine];

/// The bytes of the needed sections, in the order of [`NEEDED`].
#[derive(Debug, Default)]
pub struct Sections<'data> {
    bytes: [Cow<'data, [u8]>; NEEDED.len()],
    /// The sections of which `bytes` has the front only.
    cut: Vec<Cut<'data>>,
}

/// A section of which only the front is decompressed.
#[derive(Debug)]
struct Cut<'data> {
    id: SectionId,
    section: RawSection<'data>,
    file: &'data Mapped,
    /// All of it, once it is needed.
    whole: OnceLock<Result<Vec<u8>, Error>>,
}

impl<'data> Sections<'data> {
    /// Loads all needed sections; if `dwo`, by their names in split debug information.
    pub fn load(elf: &Elf<'data>, dwo: bool) -> Result<Sections<'data>, Error> {
        let mut sections = Sections::default();
        for (slot, id) in sections.bytes.iter_mut().zip(NEEDED) {
            let name = if dwo { id.dwo_name() } else { Some(id.name()) };
            if let Some(name) = name {
                *slot = load_section(elf, name)?;
            }
        }
        Ok(sections)
    }

    /// Loads the needed sections but those [`IN_PART`].
    pub(crate) fn load_small(elf: &Elf<'data>) -> Result<Sections<'data>, Error> {
        let mut sections = Sections::default();
        for (slot, id) in sections.bytes.iter_mut().zip(NEEDED) {
            if !IN_PART.contains(&id) {
                *slot = load_section(elf, id.name())?;
            }
        }
        Ok(sections)
    }

    /// Loads a section up to the end of the unit at `last`, or the whole section if that is not possible.
    pub(crate) fn load_up_to(
        &mut self,
        elf: &Elf<'data>,
        id: SectionId,
        last: Option<usize>,
    ) -> Result<(), Error> {
        let front = last.and_then(|last| {
            let section = elf.debug_section(id.name())?;
            let mut front = Front::new(section)?;
            front.until_end_of_unit(last)?;
            Some((section, front.into_bytes()))
        });
        self.cut.retain(|cut| cut.id != id);
        let bytes = match front {
            Some((section, bytes)) => {
                self.cut.push(Cut { id, section, file: elf.file(), whole: OnceLock::new() });
                Cow::Owned(bytes)
            }
            None => load_section(elf, id.name())?,
        };
        if let Some(index) = index_of(id) {
            self.bytes[index] = bytes;
        }
        Ok(())
    }

    /// One of them, as far as it is loaded; empty if the file does not have it.
    pub fn get(&self, id: SectionId) -> Reader<'_> {
        let bytes = index_of(id).map_or(&[][..], |index| &self.bytes[index]);
        EndianSlice::new(bytes, LittleEndian)
    }

    /// Whether a section is loaded only in part.
    pub fn is_cut(&self) -> bool {
        !self.cut.is_empty()
    }

    /// All of them, for gimli, with the rest of those that were loaded in part. Where that is damaged, the part stays.
    pub fn whole(&self) -> gimli::Dwarf<Reader<'_>> {
        let whole = |id| {
            let cut = self.cut.iter().find(|cut| cut.id == id)?;
            let bytes =
                cut.whole.get_or_init(|| bytes_of(cut.file, id.name(), cut.section).map(Cow::into_owned));
            bytes.as_deref().ok().map(|bytes| EndianSlice::new(bytes, LittleEndian))
        };
        let loaded = gimli::Dwarf::load(|id| {
            Ok::<_, std::convert::Infallible>(whole(id).unwrap_or_else(|| self.get(id)))
        });
        loaded.unwrap_or_else(|never| match never {})
    }

    /// What was wrong with the rest of sections that were loaded in part, if it was needed.
    pub fn into_problems(self) -> impl Iterator<Item = Error> {
        self.cut.into_iter().filter_map(|cut| cut.whole.into_inner()?.err())
    }

    /// All of them, for gimli.
    pub fn dwarf(&self) -> gimli::Dwarf<Reader<'_>> {
        let loaded = gimli::Dwarf::load(|id| Ok::<_, std::convert::Infallible>(self.get(id)));
        loaded.unwrap_or_else(|never| match never {})
    }
}

/// The bytes of a section, decompressed if necessary; empty if there is none.
pub fn load_section<'data>(elf: &Elf<'data>, name: &'static str) -> Result<Cow<'data, [u8]>, Error> {
    if name.ends_with(".dwo") && elf.sections_named(name).nth(1).is_some() {
        let mut all = Vec::new();
        // Sections of a damaged file may overlap.
        let mut remaining = elf.file().len();
        for section in elf.sections_named(name) {
            let Some(rest) = remaining.checked_sub(section.bytes.len()) else { break };
            remaining = rest;
            all.extend_from_slice(&bytes_of(elf.file(), name, section)?);
        }
        return Ok(Cow::Owned(all));
    }
    match elf.debug_section(name) {
        None => Ok(Cow::Borrowed(&[])),
        Some(section) => bytes_of(elf.file(), name, section),
    }
}

fn bytes_of<'data>(
    file: &Mapped,
    name: &'static str,
    section: RawSection<'data>,
) -> Result<Cow<'data, [u8]>, Error> {
    if section.compression.is_none() {
        return Ok(Cow::Borrowed(section.bytes));
    }
    expand(section).map(Cow::Owned).map_err(|what| Error::Compression {
        path: file.path().to_owned(),
        section: name,
        what,
    })
}

fn index_of(id: SectionId) -> Option<usize> {
    NEEDED.iter().position(|needed| *needed == id)
}
