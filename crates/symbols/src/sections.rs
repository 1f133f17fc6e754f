//! Sections ready for reading. Compressed sections are decompressed here; their declared sizes are checked before
//! memory is allocated.

use crate::Error;
use crate::elf::{Elf, Method, RawSection};
use gimli::{EndianSlice, LittleEndian, SectionId};
use std::borrow::Cow;
#[cfg(feature = "zstd")]
use std::io::Read;

/// The reader of DWARF sections.
pub(crate) type Reader<'data> = EndianSlice<'data, LittleEndian>;

/// The sections with names and lines. Locations of variables, macros and type units, often the larger half, are not read.
pub(crate) const NEEDED: [SectionId; 10] = [
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

/// Largest decompressed section.
const LARGEST: u64 = 8 << 30;

/// Largest ratio of decompressed to compressed size in zlib.
const ZLIB_RATIO: u64 = 1032;

/// The bytes of the needed sections, in the order of [`NEEDED`].
#[derive(Debug, Default)]
pub(crate) struct Sections<'data> {
    bytes: [Cow<'data, [u8]>; NEEDED.len()],
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

    /// One of them; empty if the file does not have it.
    pub fn get(&self, id: SectionId) -> Reader<'_> {
        let index = NEEDED.iter().position(|needed| *needed == id);
        let bytes = index.map_or(&[][..], |index| &self.bytes[index]);
        EndianSlice::new(bytes, LittleEndian)
    }

    /// All of them, for gimli.
    pub fn dwarf(&self) -> gimli::Dwarf<Reader<'_>> {
        let loaded = gimli::Dwarf::load(|id| Ok::<_, std::convert::Infallible>(self.get(id)));
        loaded.unwrap_or_else(|never| match never {})
    }
}

/// The bytes of a section, decompressed if necessary; empty if there is none.
pub(crate) fn load_section<'data>(elf: &Elf<'data>, name: &'static str) -> Result<Cow<'data, [u8]>, Error> {
    if name.ends_with(".dwo") && elf.sections_named(name).nth(1).is_some() {
        let mut all = Vec::new();
        // Sections of a damaged file may overlap.
        let mut remaining = elf.file().len();
        for section in elf.sections_named(name) {
            let Some(rest) = remaining.checked_sub(section.bytes.len()) else { break };
            remaining = rest;
            all.extend_from_slice(&bytes_of(elf, name, section)?);
        }
        return Ok(Cow::Owned(all));
    }
    match elf.debug_section(name) {
        None => Ok(Cow::Borrowed(&[])),
        Some(section) => bytes_of(elf, name, section),
    }
}

fn bytes_of<'data>(
    elf: &Elf<'data>,
    name: &'static str,
    section: RawSection<'data>,
) -> Result<Cow<'data, [u8]>, Error> {
    if section.compression.is_none() {
        return Ok(Cow::Borrowed(section.bytes));
    }
    expand(section).map(Cow::Owned).map_err(|what| Error::Compression {
        path: elf.file().path().to_owned(),
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
    if size > LARGEST {
        return Err(format!("it declares {size} bytes, more than the {LARGEST} that are read"));
    }
    match compression.method {
        Method::Zlib => {
            if size > stored.saturating_mul(ZLIB_RATIO).saturating_add(64) {
                return Err(format!("it declares {size} bytes, which {stored} bytes of zlib cannot hold"));
            }
            let mut bytes = vec![0; size as usize];
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
