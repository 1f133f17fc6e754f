//! Where functions of an allocator begin in a file: for breakpoints.

use object::LittleEndian;
use object::elf;
use object::read::elf::Sym;
use stackglass_debug_info::elf::{Elf, Table};
use stackglass_debug_info::mapped::Mapped;
use std::path::Path;

const LITTLE: LittleEndian = LittleEndian;
/// Most bytes of code that an entry comes with.
const LARGEST: u64 = 64 << 10;

/// The entry of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionEntry {
    /// Its symbol.
    pub name: String,
    /// Other files see it, too.
    pub is_exported: bool,
    /// Offset of its first byte in the file.
    pub offset: u64,
    /// Its code, 64 KiB at most. Empty if its size is unknown.
    pub code: Vec<u8>,
}

/// The functions with a wanted name that a file defines. A function with several names is there several times, exported ones first. Empty
/// if the file cannot be read, or is no ELF file of this machine's kind.
pub fn function_entries(path: &Path, wanted: &dyn Fn(&str) -> bool) -> Vec<FunctionEntry> {
    let Ok(file) = Mapped::open(path) else { return Vec::new() };
    let Ok(elf) = Elf::parse(&file) else { return Vec::new() };
    let mut entries = Vec::new();
    for table in [Table::Dynamic, Table::Full] {
        let Some(symbols) = elf.symbols(table) else { continue };
        for symbol in symbols.iter() {
            // An IFUNC is resolved to another function.
            if symbol.st_type() != elf::STT_FUNC || symbol.st_shndx.get(LITTLE) == elf::SHN_UNDEF {
                continue;
            }
            let name = symbols.symbol_name(LITTLE, symbol).map(std::str::from_utf8);
            let Some(name) = name.ok().and_then(Result::ok).filter(|name| wanted(name)) else { continue };
            let Some((offset, code)) = elf.file_offset(symbol.st_value(LITTLE)) else { continue };
            entries.push(FunctionEntry {
                name: name.to_owned(),
                is_exported: table == Table::Dynamic,
                offset,
                code: code[..code.len().min(symbol.st_size(LITTLE).min(LARGEST) as usize)].to_vec(),
            });
        }
    }
    entries
}
