//! The language of a module, for the advice on missing names: each compiler has its own setting for them.

use object::LittleEndian;
use stackglass_debug_info::elf::{Elf, Table};
use stackglass_debug_info::locate::Files;
use stackglass_profile::symbols::Language;

/// Most symbols that are read; a program of any language has a typical one long before.
const SYMBOLS: usize = 1 << 16;

/// The language of most code in a module, as far as its sections and symbols tell.
pub(crate) fn detect(files: &Files) -> Language {
    let Some(elf) = files.program.as_ref().and_then(|file| Elf::parse(file).ok()) else {
        return Language::Unknown;
    };
    if [".go.buildinfo", ".note.go.buildid", ".gopclntab"]
        .into_iter()
        .any(|name| elf.addresses_of(name).is_some())
    {
        return Language::Go;
    }
    // Compilers write their names here, and `strip` leaves them.
    let compilers = elf.section(".comment").map_or(&[][..], |section| section.bytes);
    let wrote = |name: &str| compilers.windows(name.len()).any(|part| part == name.as_bytes());
    if wrote("rustc version") || has_rust_symbols(&elf) {
        Language::Rust
    } else if wrote("GCC:") || wrote("clang version") {
        Language::C
    } else {
        Language::Unknown
    }
}

fn has_rust_symbols(elf: &Elf<'_>) -> bool {
    let Some(table) = elf.symbols(Table::Full).or_else(|| elf.symbols(Table::Dynamic)) else { return false };
    table.iter().take(SYMBOLS).any(|symbol| {
        table
            .symbol_name(LittleEndian, symbol)
            .is_ok_and(|name| name == b"rust_eh_personality" || name == b"rust_begin_unwind")
    })
}
