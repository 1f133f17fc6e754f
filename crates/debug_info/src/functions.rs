//! The functions and variables of a module by their symbols: those that it defines, and the slots that the dynamic linker fills
//! with the addresses of others.

use crate::elf::{Elf, Table};
use crate::locate::Files;
use object::elf;
use object::read::elf::Sym;
use object::{LittleEndian, SymbolIndex};
use std::ops::Range;

const LITTLE: LittleEndian = LittleEndian;

/// A function or a variable that a module defines.
pub struct Defined<'data> {
    /// Its addresses in the file.
    pub addresses: Range<u64>,
    /// Its symbol.
    pub name: &'data str,
    /// It is a function.
    pub is_function: bool,
}

/// The functions and variables that a table of symbols defines.
pub fn defined_in<'data>((elf, table): (Elf<'data>, Table)) -> impl Iterator<Item = Defined<'data>> {
    elf.symbols(table).into_iter().flat_map(|symbols| {
        symbols.iter().filter_map(move |symbol| {
            let is_function = symbol.st_type() == elf::STT_FUNC;
            let is_either = is_function || symbol.st_type() == elf::STT_OBJECT;
            if !is_either || symbol.st_shndx.get(LITTLE) == elf::SHN_UNDEF {
                return None;
            }
            let name = std::str::from_utf8(symbols.symbol_name(LITTLE, symbol).ok()?).ok()?;
            let start = symbol.st_value(LITTLE);
            let addresses = start..start.saturating_add(symbol.st_size(LITTLE));
            Some(Defined { addresses, name, is_function })
        })
    })
}

/// The functions that a module defines: their addresses in the file, and their symbols.
pub fn defined(files: &Files) -> impl Iterator<Item = (Range<u64>, &str)> {
    let all = files.symbols().into_iter().flat_map(defined_in);
    all.filter(|defined| defined.is_function).map(|defined| (defined.addresses, defined.name))
}

/// The slots for addresses of functions of other modules, or of exported ones: addresses in the file, and symbols.
pub fn slots(files: &Files) -> impl Iterator<Item = (u64, &str)> {
    let program = files.program.as_ref().and_then(|file| Elf::parse(file).ok());
    let tables = program.and_then(|elf| Some((elf.symbols(Table::Dynamic)?, elf)));
    tables.into_iter().flat_map(|(symbols, elf)| {
        elf.relocations().filter_map(move |relocation| {
            let kind = relocation.r_type(LITTLE, false);
            if kind != elf::R_X86_64_GLOB_DAT && kind != elf::R_X86_64_JUMP_SLOT {
                return None;
            }
            let symbol = symbols.symbol(SymbolIndex(relocation.r_sym(LITTLE, false) as usize)).ok()?;
            let name = std::str::from_utf8(symbols.symbol_name(LITTLE, symbol).ok()?).ok()?;
            Some((relocation.r_offset.get(LITTLE), name))
        })
    })
}
