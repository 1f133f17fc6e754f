//! Sections ready for reading. Compressed sections are decompressed here; their declared sizes are checked before
//! memory is allocated.
//!
//! The two largest sections are in the order of their units. Where the units of all wanted addresses are known, only
//! their fronts are decompressed, up to the last of these units: names of a few functions of the C library take half of
//! the file or less.

use crate::Error;
use crate::dwarf::abbreviations::Abbreviations;
use crate::dwarf::{index, unit};
use crate::elf::{Elf, Method, RawSection};
use crate::front::Front;
use crate::mapped::Mapped;
use gimli::{EndianSlice, LittleEndian, Section, SectionId};
use std::borrow::Cow;
use std::collections::BTreeSet;
#[cfg(feature = "zstd")]
use std::io::Read;
use std::ops::Range;
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
const IN_PART: [SectionId; 2] = [SectionId::DebugInfo, SectionId::DebugLine];

/// Largest decompressed section.
const LARGEST: u64 = 8 << 30;

/// Largest ratio of decompressed to compressed size in zlib.
const ZLIB_RATIO: u64 = 1032;

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

    /// Loads as much of the needed sections as lookups of these sorted addresses read. References to other units may need
    /// more: see [`Sections::whole`].
    pub fn load_for(
        elf: &Elf<'data>,
        addresses: &[u64],
        code: &[Range<u64>],
    ) -> Result<Sections<'data>, Error> {
        if !IN_PART.iter().any(|id| elf.debug_section(id.name()).is_some_and(Front::is_possible)) {
            return Sections::load(elf, false);
        }
        let mut sections = Sections::default();
        for (slot, id) in sections.bytes.iter_mut().zip(NEEDED) {
            if !IN_PART.contains(&id) {
                *slot = load_section(elf, id.name())?;
            }
        }
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

    /// Loads a section up to the end of the unit at `last`, or the whole section if that is not possible.
    fn load_up_to(&mut self, elf: &Elf<'data>, id: SectionId, last: Option<usize>) -> Result<(), Error> {
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

fn expand(section: RawSection<'_>) -> Result<Vec<u8>, String> {
    let Some(compression) = section.compression else {
        return Ok(section.bytes.to_vec());
    };
    let size = compression.size;
    let stored = section.bytes.len() as u64;
    match compression.method {
        Method::Zlib => {
            let mut bytes = vec![0; size_of_zlib(size, stored)?];
            let mut inflate = flate2::Decompress::new(true);
            let status = inflate
                .decompress(section.bytes, &mut bytes, flate2::FlushDecompress::Finish)
                .map_err(|error| error.to_string())?;
            if status != flate2::Status::StreamEnd || inflate.total_out() != size {
                return Err(format!("it declares {size} bytes and holds {}", inflate.total_out()));
            }
            Ok(bytes)
        }
        #[cfg(feature = "zstd")]
        Method::Zstd => {
            check_size(size)?;
            let decoder = zstd::Decoder::with_buffer(section.bytes).map_err(|error| error.to_string())?;
            // Room for a common ratio at once, more as data comes.
            let mut bytes = Vec::with_capacity(size.min(stored.saturating_mul(16)) as usize);
            let read = decoder.take(size + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
            if read as u64 != size {
                return Err(format!("it declares {size} bytes and does not hold as many"));
            }
            Ok(bytes)
        }
        #[cfg(not(feature = "zstd"))]
        Method::Zstd => {
            Err("it is compressed with zstd, which this build does not read (feature `zstd`)".into())
        }
        Method::Unknown(method) => Err(format!("compression method {method} is not known")),
    }
}

/// The size of a section that is compressed with zlib to `stored` bytes, if they can hold as much.
pub fn size_of_zlib(size: u64, stored: u64) -> Result<usize, String> {
    check_size(size)?;
    if size > stored.saturating_mul(ZLIB_RATIO).saturating_add(64) {
        return Err(format!("it declares {size} bytes, which {stored} bytes of zlib cannot hold"));
    }
    Ok(size as usize)
}

fn check_size(size: u64) -> Result<(), String> {
    if size > LARGEST {
        return Err(format!("it declares {size} bytes, more than the {LARGEST} that are read"));
    }
    Ok(())
}

fn index_of(id: SectionId) -> Option<usize> {
    NEEDED.iter().position(|needed| *needed == id)
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
