//! The parts of a module's files that are read before its units.

use crate::Error;
use crate::dwarf::needed;
use crate::dwarf::split::PackageSections;
use crate::dwarf::unit::DebugInfo;
use crate::elf::Elf;
use crate::locate::Files;
use crate::mapped::Mapped;
use crate::sections::Sections;
use std::ops::Range;

/// The parts of a module's files that are read before its units.
#[derive(Default)]
pub struct Loaded<'data> {
    /// Its sections.
    pub sections: Sections<'data>,
    /// Those of the file that several files share (`dwz`).
    pub shared: Option<Sections<'data>>,
    /// The package of split debug information, if there is one.
    pub package: Option<PackageSections<'data>>,
    /// Where the code of the file is.
    pub code: Vec<Range<u64>>,
    /// The file with the debug information, if there is any.
    pub file: Option<&'data Mapped>,
    /// What cannot be read.
    pub problems: Vec<Error>,
}

/// Loads all that the files of a module have.
pub fn load(files: &Files) -> Loaded<'_> {
    load_with(files, |elf, _| Sections::load(elf, false))
}

/// Loads what lookups of these sorted addresses read.
pub fn load_for<'data>(files: &'data Files, addresses: &[u64]) -> Loaded<'data> {
    load_with(files, |elf, code| needed::load_for(elf, addresses, code))
}

fn load_with<'data>(
    files: &'data Files,
    load: impl FnOnce(&Elf<'data>, &[Range<u64>]) -> Result<Sections<'data>, Error>,
) -> Loaded<'data> {
    let mut loaded = Loaded::default();
    // A separate debug file has the program headers of the program.
    let program = files.program.as_ref().or(files.debug.as_ref()).and_then(|file| Elf::parse(file).ok());
    loaded.code = program.map(|elf| elf.code()).unwrap_or_default();
    let mut problems = Vec::new();
    if let Some(elf) = files.debug_info() {
        loaded.file = Some(elf.file());
        loaded.sections = keep(load(&elf, &loaded.code), &mut problems).unwrap_or_default();
        let sections = |file| Sections::load(&Elf::parse(file)?, false);
        loaded.shared = files.shared.as_ref().and_then(|file| keep(sections(file), &mut problems));
        let package = |file| PackageSections::load(&Elf::parse(file)?);
        loaded.package = files.package.as_ref().and_then(|file| keep(package(file), &mut problems));
    }
    loaded.problems = problems;
    loaded
}

fn keep<T>(result: Result<T, Error>, problems: &mut Vec<Error>) -> Option<T> {
    result.map_err(|error| problems.push(error)).ok()
}

/// The debug information that they have.
pub fn debug_info<'data>(loaded: &'data Loaded<'data>) -> DebugInfo<'data> {
    let info = DebugInfo::from_sections(&loaded.sections);
    match &loaded.shared {
        Some(shared) => info.with_shared(DebugInfo::new(shared.dwarf()), shared.dwarf()),
        None => info,
    }
}
