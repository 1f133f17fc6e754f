//! Split debug information: the unit in the program is a skeleton with addresses and lines. Its functions are in another
//! file, a `.dwo` for each unit or one `.dwp` for all.

use crate::Error;
use crate::dwarf::unit::{DebugInfo, Unit};
use crate::elf::Elf;
use crate::mapped::Mapped;
use crate::sections::{Reader, Sections, load_section};
use gimli::{DwoId, SectionId};
use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The sections of a `.dwp` file.
pub struct PackageSections<'data>(Vec<(SectionId, Cow<'data, [u8]>)>);

impl<'data> PackageSections<'data> {
    /// Loads and decompresses all its sections, since finding a unit checks all of them.
    pub fn load(elf: &Elf<'data>) -> Result<Self, Error> {
        let all = [
            SectionId::DebugCuIndex,
            SectionId::DebugTuIndex,
            SectionId::DebugInfo,
            SectionId::DebugTypes,
            SectionId::DebugAbbrev,
            SectionId::DebugStr,
            SectionId::DebugStrOffsets,
            SectionId::DebugRngLists,
            SectionId::DebugLine,
            SectionId::DebugLoc,
            SectionId::DebugLocLists,
            SectionId::DebugMacinfo,
            SectionId::DebugMacro,
        ];
        let mut sections = Vec::new();
        for id in all {
            sections.push((id, load_section(elf, id.dwo_name().unwrap_or(id.name()))?));
        }
        Ok(PackageSections(sections))
    }

    /// The package of these sections.
    pub fn package(&self) -> gimli::Result<gimli::DwarfPackage<Reader<'_>>> {
        let empty = Reader::new(&[], gimli::LittleEndian);
        gimli::DwarfPackage::load(
            |wanted| {
                let section = self.0.iter().find(|(id, _)| *id == wanted);
                Ok(section.map_or(empty, |(_, bytes)| Reader::new(bytes, gimli::LittleEndian)))
            },
            empty,
        )
    }
}

/// Possible paths of the `.dwo` file of a skeleton unit: where the compiler wrote it, or beside the program.
pub fn candidates<'data>(
    skeleton: &Unit<'data>,
    dwarf: &gimli::Dwarf<Reader<'data>>,
    program: &Path,
) -> Vec<PathBuf> {
    let unit = skeleton.with(dwarf);
    let Some(name) = unit.dwo_name().ok().flatten().and_then(|name| unit.attr_string(name).ok()) else {
        return Vec::new();
    };
    let name = Path::new(OsStr::from_bytes(name.slice()));
    let compiled_in = unit.comp_dir.map(|dir| PathBuf::from(OsStr::from_bytes(dir.slice())));
    let beside = program.parent().unwrap_or(Path::new(""));
    let mut paths = vec![compiled_in.unwrap_or_default().join(name)];
    for path in [beside.join(name), beside.join(name.file_name().unwrap_or_default())] {
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}

/// Loads the first of the files that is an ELF file.
pub fn open_first(candidates: &[PathBuf]) -> Option<Mapped> {
    candidates.iter().find_map(|path| Mapped::open(path).ok().filter(|file| file.starts_with(b"\x7fELF")))
}

/// The debug information in the sections of a `.dwo` file of a program.
pub fn debug_info<'data>(
    sections: &'data Sections<'_>,
    parent: &gimli::Dwarf<Reader<'data>>,
) -> DebugInfo<'data> {
    let mut dwarf = sections.dwarf();
    dwarf.make_dwo(parent);
    DebugInfo::new(dwarf)
}

/// The parts of a skeleton that the split unit needs.
#[derive(Clone, Copy)]
pub struct Skeleton {
    id: DwoId,
    low_pc: u64,
    addr_base: gimli::DebugAddrBase,
    rnglists_base: gimli::DebugRngListsBase,
    language: Option<gimli::DwLang>,
}

impl Skeleton {
    /// `None` for a unit that is complete.
    pub fn from_unit(unit: &Unit<'_>) -> Option<Skeleton> {
        let gimli::Unit { dwo_id, low_pc, addr_base, rnglists_base, .. } = unit.unit;
        Some(Skeleton { id: dwo_id?, low_pc, addr_base, rnglists_base, language: unit.language })
    }

    /// The id of the skeleton and its split unit.
    pub fn id(&self) -> DwoId {
        self.id
    }

    /// The split unit.
    pub fn unit_in<'data>(&self, info: &DebugInfo<'data>) -> Option<Unit<'data>> {
        (0..info.headers.len()).find_map(|index| {
            let mut unit = info.open(index).ok()?;
            self.complete(&mut unit).then_some(unit)
        })
    }

    /// Completes the split unit. Returns false, and changes nothing, if it is another unit.
    pub fn complete(&self, unit: &mut Unit<'_>) -> bool {
        if unit.unit.dwo_id != Some(self.id) {
            return false;
        }
        unit.unit.low_pc = self.low_pc;
        unit.unit.addr_base = self.addr_base;
        if unit.unit.header.version() < 5 {
            unit.unit.rnglists_base = self.rnglists_base;
        }
        unit.language = unit.language.or(self.language);
        true
    }
}
