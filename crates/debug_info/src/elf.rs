//! An ELF file: sections, symbols, build id, and links to separate debug information. Only tables are read; nothing is
//! copied.

use crate::Error;
use crate::mapped::Mapped;
use object::elf::{
    self, DT_JMPREL, DT_PLTRELSZ, DT_RELA, DT_RELASZ, Dyn64, FileHeader64, Rela64, SectionHeader64, Sym64,
};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, SectionTable, SymbolTable};
use object::{LittleEndian, pod};
use std::ops::Range;

type Header = FileHeader64<LittleEndian>;
const LITTLE: LittleEndian = LittleEndian;

/// An ELF file whose tables lie inside of it.
pub struct Elf<'data> {
    file: &'data Mapped,
    header: &'data Header,
    sections: SectionTable<'data, Header>,
}

/// A section in the file.
#[derive(Clone, Copy, Debug)]
pub struct RawSection<'data> {
    /// Its bytes in the file.
    pub bytes: &'data [u8],
    /// How they are compressed, if they are.
    pub compression: Option<Compression>,
}

/// How a section is compressed, and its declared size without compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compression {
    /// The method.
    pub method: Method,
    /// Size without compression.
    pub size: u64,
}

/// A method of compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// zlib.
    Zlib,
    /// zstd.
    Zstd,
    /// Another one, by its number.
    Unknown(u32),
}

/// The two symbol tables of an ELF file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Table {
    /// `.symtab`: all symbols, unless stripped.
    Full,
    /// `.dynsym`: exports and imports.
    Dynamic,
}

impl<'data> Elf<'data> {
    /// Reads the header and the section table.
    pub fn parse(file: &'data Mapped) -> Result<Elf<'data>, Error> {
        let bad = |what: object::Error| Error::Elf { path: file.path().to_owned(), what: what.to_string() };
        let data: &'data [u8] = file;
        let header = Header::parse(data).map_err(bad)?;
        header.endian().map_err(bad)?;
        let sections = header.sections(LITTLE, data).map_err(bad)?;
        Ok(Elf { file, header, sections })
    }

    /// The file.
    pub fn file(&self) -> &'data Mapped {
        self.file
    }

    /// Whether the code is that of x86-64.
    pub fn is_x86_64(&self) -> bool {
        self.header.e_machine(LITTLE) == elf::EM_X86_64
    }

    fn data(&self) -> &'data [u8] {
        self.file
    }

    fn header_of(&self, name: &str) -> Option<&'data SectionHeader64<LittleEndian>> {
        self.sections.section_by_name(LITTLE, name.as_bytes()).map(|(_, section)| section)
    }

    /// A section with bytes in this file; in separate debug files, some have none.
    pub fn section(&self, name: &str) -> Option<RawSection<'data>> {
        self.contents_of(self.header_of(name)?)
    }

    /// All sections with a name. Type units in `.dwo` files have sections of their own.
    pub fn sections_named(&self, name: &str) -> impl Iterator<Item = RawSection<'data>> {
        let named = move |section: &&SectionHeader64<LittleEndian>| {
            self.sections.section_name(LITTLE, section).is_ok_and(|found| found == name.as_bytes())
        };
        self.sections.iter().filter(named).filter_map(|section| self.contents_of(section))
    }

    fn contents_of(&self, section: &'data SectionHeader64<LittleEndian>) -> Option<RawSection<'data>> {
        let (offset, size) = section.file_range(LITTLE)?;
        let bytes = self.data().get(usize::try_from(offset).ok()?..)?.get(..usize::try_from(size).ok()?)?;
        if bytes.is_empty() {
            return None;
        }
        match section.compression(LITTLE, self.data()) {
            Ok(None) => Some(RawSection { bytes, compression: None }),
            Ok(Some((header, offset, size))) => {
                use object::read::elf::CompressionHeader;
                let start = usize::try_from(offset).ok()?;
                let bytes = self.data().get(start..)?.get(..usize::try_from(size).ok()?)?;
                let method = match header.ch_type(LITTLE) {
                    elf::ELFCOMPRESS_ZLIB => Method::Zlib,
                    elf::ELFCOMPRESS_ZSTD => Method::Zstd,
                    other => Method::Unknown(other.0),
                };
                let size = header.ch_size(LITTLE);
                Some(RawSection { bytes, compression: Some(Compression { method, size }) })
            }
            Err(_) => None,
        }
    }

    /// `.debug_x`, or `.zdebug_x` of older tools: "ZLIB", the size (big-endian), a zlib stream.
    pub fn debug_section(&self, name: &str) -> Option<RawSection<'data>> {
        if let Some(section) = self.section(name) {
            return Some(section);
        }
        let old = self.section(&format!(".z{}", name.strip_prefix('.')?))?;
        let (magic, rest) = old.bytes.split_at_checked(4)?;
        let (size, stream) = rest.split_first_chunk::<8>()?;
        let compression = Compression { method: Method::Zlib, size: u64::from_be_bytes(*size) };
        (magic == b"ZLIB").then_some(RawSection { bytes: stream, compression: Some(compression) })
    }

    /// The GNU build id; empty if there is none.
    pub fn build_id(&self) -> &'data [u8] {
        let in_sections = self.sections.iter().find_map(|section| {
            let mut notes = section.notes(LITTLE, self.data()).ok()??;
            std::iter::from_fn(|| notes.next().ok().flatten()).find_map(|note| build_id_of(&note))
        });
        let found = in_sections.or_else(|| {
            let segments = self.header.program_headers(LITTLE, self.data()).ok()?;
            segments.iter().find_map(|segment| {
                let mut notes = segment.notes(LITTLE, self.data()).ok()??;
                std::iter::from_fn(|| notes.next().ok().flatten()).find_map(|note| build_id_of(&note))
            })
        });
        found.unwrap_or_default()
    }

    /// Name and CRC-32 of the separate debug file (`.gnu_debuglink`).
    pub fn debug_link(&self) -> Option<(&'data [u8], u32)> {
        let section = self.section(".gnu_debuglink")?.bytes;
        let name = &section[..section.iter().position(|byte| *byte == 0)?];
        let crc = section.get((name.len() + 1).next_multiple_of(4)..)?.first_chunk::<4>()?;
        Some((name, u32::from_le_bytes(*crc)))
    }

    /// Name and build id of the file that several debug files share (`.gnu_debugaltlink`).
    pub fn shared_link(&self) -> Option<(&'data [u8], &'data [u8])> {
        let section = self.section(".gnu_debugaltlink")?.bytes;
        let name = &section[..section.iter().position(|byte| *byte == 0)?];
        Some((name, &section[name.len() + 1..]))
    }

    /// Address ranges of code, from the program headers.
    pub fn code(&self) -> Vec<Range<u64>> {
        let segments = self.header.program_headers(LITTLE, self.data()).unwrap_or_default();
        segments
            .iter()
            .filter(|segment| is_code(segment))
            .map(|segment| {
                let start = segment.p_vaddr(LITTLE);
                start..start.saturating_add(segment.p_memsz(LITTLE))
            })
            .collect()
    }

    /// The code in this file, from the program headers: start address and bytes of each part.
    pub fn code_bytes(&self) -> Vec<(u64, &'data [u8])> {
        let segments = self.header.program_headers(LITTLE, self.data()).unwrap_or_default();
        let code = segments.iter().filter(|segment| is_code(segment));
        code.filter_map(|segment| Some((segment.p_vaddr(LITTLE), segment.data(LITTLE, self.data()).ok()?)))
            .collect()
    }

    /// Bytes of this file from an address to the end of its segment.
    pub fn bytes_at(&self, address: u64) -> Option<&'data [u8]> {
        let segments = self.header.program_headers(LITTLE, self.data()).ok()?;
        let loaded = segments.iter().filter(|segment| segment.p_type(LITTLE) == elf::PT_LOAD);
        loaded.into_iter().find_map(|segment| {
            let start = usize::try_from(address.checked_sub(segment.p_vaddr(LITTLE))?).ok()?;
            segment.data(LITTLE, self.data()).ok()?.get(start..).filter(|bytes| !bytes.is_empty())
        })
    }

    /// Offset in this file of the byte at an address, and the bytes from there to the end of its segment.
    pub fn file_offset(&self, address: u64) -> Option<(u64, &'data [u8])> {
        let bytes = self.bytes_at(address)?;
        let offset = bytes.as_ptr().addr().checked_sub(self.data().as_ptr().addr())?;
        Some((offset as u64, bytes))
    }

    /// Address and bytes of the index of the unwind rules (`.eh_frame_hdr`).
    pub fn unwind_index(&self) -> Option<(u64, &'data [u8])> {
        let segments = self.header.program_headers(LITTLE, self.data()).ok()?;
        let index = segments.iter().find(|segment| segment.p_type(LITTLE) == elf::PT_GNU_EH_FRAME)?;
        Some((index.p_vaddr(LITTLE), index.data(LITTLE, self.data()).ok()?))
    }

    /// The entry point, if the file has one.
    pub fn entry(&self) -> Option<u64> {
        Some(self.header.e_entry(LITTLE)).filter(|entry| *entry != 0)
    }

    /// The entries for the dynamic linker.
    pub fn dynamic(&self) -> &'data [Dyn64<LittleEndian>] {
        let segments = self.header.program_headers(LITTLE, self.data()).unwrap_or_default();
        let dynamic = segments.iter().find_map(|segment| segment.dynamic(LITTLE, self.data()).ok()?);
        dynamic.unwrap_or_default()
    }

    /// What the dynamic linker relocates, except for relative relocations in their packed form (`DT_RELR`).
    pub fn relocations(&self) -> impl Iterator<Item = &'data Rela64<LittleEndian>> + use<'data> {
        let dynamic = self.dynamic();
        let value = |tag| {
            let entry = dynamic.iter().find(|entry: &&Dyn64<LittleEndian>| entry.d_tag.get(LITTLE) == tag)?;
            Some(entry.d_val.get(LITTLE))
        };
        let table = |start, size| {
            let bytes = self.bytes_at(value(start)?)?;
            let count =
                usize::try_from(value(size)?).ok()?.min(bytes.len()) / size_of::<Rela64<LittleEndian>>();
            Some(pod::slice_from_bytes::<Rela64<LittleEndian>>(bytes, count).ok()?.0)
        };
        let tables = [table(DT_RELA, DT_RELASZ), table(DT_JMPREL, DT_PLTRELSZ)];
        tables.into_iter().flatten().flatten()
    }

    /// The addresses of a section, if it exists.
    pub fn addresses_of(&self, name: &str) -> Option<Range<u64>> {
        self.header_of(name).map(addresses)
    }

    /// Whether an address is in a section of code. (A segment may also contain tables.)
    pub fn is_code(&self, address: u64) -> bool {
        self.sections.iter().any(|section| {
            section.sh_flags(LITTLE).contains(elf::SHF_EXECINSTR) && addresses(section).contains(&address)
        })
    }

    /// A symbol table, if it exists and is not empty.
    pub fn symbols(&self, table: Table) -> Option<SymbolTable<'data, Header>> {
        let kind = match table {
            Table::Full => elf::SHT_SYMTAB,
            Table::Dynamic => elf::SHT_DYNSYM,
        };
        let symbols = self.sections.symbols(LITTLE, self.data(), kind).ok()?;
        (!symbols.is_empty()).then_some(symbols)
    }

    /// Whether there is debug information.
    pub fn has_debug_info(&self) -> bool {
        self.debug_section(".debug_info").is_some() && self.debug_section(".debug_abbrev").is_some()
    }

    /// Whether an address is in a part of the file that is loaded.
    pub fn is_loaded(&self, address: u64) -> bool {
        let segments = self.header.program_headers(LITTLE, self.data()).unwrap_or_default();
        let mut loaded = segments.iter().filter(|segment| segment.p_type(LITTLE) == elf::PT_LOAD);
        loaded.any(|segment| {
            address
                .checked_sub(segment.p_vaddr(LITTLE))
                .is_some_and(|offset| offset < segment.p_memsz(LITTLE))
        })
    }

    /// The addresses of the initial thread-local storage; empty if there is none.
    pub fn thread_locals(&self) -> Range<u64> {
        let segments = self.header.program_headers(LITTLE, self.data()).unwrap_or_default();
        let local = segments.iter().find(|segment| segment.p_type(LITTLE) == elf::PT_TLS);
        local.map_or(0..0, |segment| {
            let start = segment.p_vaddr(LITTLE);
            start..start.saturating_add(segment.p_memsz(LITTLE))
        })
    }

    /// Whether a symbol is in a section of variables that may be written.
    pub fn is_writable(&self, symbol: &Sym64<LittleEndian>) -> bool {
        let index = usize::from(symbol.st_shndx.get(LITTLE).0);
        let section = self.sections.section(object::SectionIndex(index));
        section.is_ok_and(|section| {
            section.sh_flags(LITTLE).contains(elf::SHF_WRITE)
                && section.sh_flags(LITTLE).contains(elf::SHF_ALLOC)
        })
    }

    /// The address range of the section that defines a symbol.
    pub fn section_of(&self, symbol: &Sym64<LittleEndian>) -> Option<Range<u64>> {
        let index = usize::from(symbol.st_shndx.get(LITTLE).0);
        self.sections.section(object::SectionIndex(index)).ok().map(addresses)
    }
}

fn addresses(section: &SectionHeader64<LittleEndian>) -> Range<u64> {
    let start = section.sh_addr(LITTLE);
    start..start.saturating_add(section.sh_size(LITTLE))
}

fn is_code(segment: &elf::ProgramHeader64<LittleEndian>) -> bool {
    segment.p_type(LITTLE) == elf::PT_LOAD && segment.p_flags(LITTLE).contains(elf::PF_X)
}

fn build_id_of<'data>(note: &object::read::elf::Note<'data, Header>) -> Option<&'data [u8]> {
    (note.name() == elf::ELF_NOTE_GNU && note.n_type(LITTLE) == elf::NT_GNU_BUILD_ID).then(|| note.desc())
}

/// Bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
