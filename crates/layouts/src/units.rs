//! The units of all debug information of some modules, in whichever files they are.

use super::RustVersion;
use super::entries::Reference;
use foldhash::HashMap;
use gimli::SectionId;
use stackglass_debug_info::dwarf::split::{self, Skeleton};
use stackglass_debug_info::dwarf::unit::{DebugInfo, Unit};
use stackglass_debug_info::elf::Elf;
use stackglass_debug_info::loaded::{self, Loaded};
use stackglass_debug_info::locate::Files;
use stackglass_debug_info::mapped::Mapped;
use stackglass_debug_info::sections::{Reader, Sections, load_section};
use stackglass_debug_info::{Options, parallel};
use stackglass_profile::recording::Module;
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// A unit with types.
pub(super) struct TypeUnit<'units, 'data> {
    pub dwarf: &'units gimli::Dwarf<Reader<'data>>,
    pub unit: Unit<'data>,
    /// Index of the module.
    pub module: usize,
    /// Its section, as an index into [`Units::sections`].
    section: usize,
}

impl TypeUnit<'_, '_> {
    /// The version of the Rust compiler, from text like `clang LLVM (rustc version 1.88.0 (6b00bc388 2025-06-23))`.
    pub fn rust_version(&self) -> Option<RustVersion> {
        self.unit.language.filter(|language| *language == gimli::DW_LANG_Rust)?;
        let unit = self.unit.with(self.dwarf);
        let mut entries = unit.entries_raw(None).ok()?;
        let root = entries.read_abbreviation().ok()??;
        for spec in root.attributes() {
            let attribute = entries.read_attribute(*spec).ok()?;
            if attribute.name() == gimli::DW_AT_producer {
                let text = unit.attr_string(attribute.value()).ok()?;
                return version_in(&String::from_utf8_lossy(text.slice()));
            }
        }
        None
    }
}

fn version_in(producer: &str) -> Option<RustVersion> {
    let (_, version) = producer.split_once("rustc version ")?;
    let mut numbers = version.split('.').map(|number| number.parse().ok());
    Some(RustVersion(numbers.next()??, numbers.next()??))
}

/// A section of units.
#[derive(Default)]
struct Section {
    /// Offsets of its units, and their numbers, sorted.
    starts: Vec<(usize, usize)>,
    /// The section that this one shares with other files.
    shared: Option<usize>,
}

/// All units, by number.
#[derive(Default)]
pub(super) struct Units<'units, 'data> {
    pub units: Vec<TypeUnit<'units, 'data>>,
    sections: Vec<Section>,
    /// The unit and the offset of each type with a signature.
    signatures: HashMap<u64, (usize, usize)>,
}

impl<'units, 'data> Units<'units, 'data> {
    /// The unit and the unit offset of an entry that `from` refers to.
    pub fn refer(&self, from: usize, reference: Reference) -> Option<(usize, usize)> {
        let section = self.units[from].section;
        match reference {
            Reference::Unit(offset) => Some((from, offset)),
            Reference::File(offset) => self.in_section(section, offset),
            Reference::Shared(offset) => self.in_section(self.sections[section].shared?, offset),
            Reference::Signature(signature) => self.signatures.get(&signature).copied(),
        }
    }

    fn in_section(&self, section: usize, offset: usize) -> Option<(usize, usize)> {
        let starts = &self.sections[section].starts;
        let before = starts.partition_point(|(start, _)| *start <= offset).checked_sub(1)?;
        let (start, unit) = starts[before];
        Some((unit, offset - start))
    }

    /// Adds units of one section.
    fn add(
        &mut self,
        module: usize,
        dwarf: &'units gimli::Dwarf<Reader<'data>>,
        units: impl IntoIterator<Item = Unit<'data>>,
        shared: Option<usize>,
    ) -> usize {
        let section = self.sections.len();
        let mut starts = Vec::new();
        for unit in units {
            let number = self.units.len();
            let header = unit.unit.header;
            if let gimli::UnitType::Type { type_signature, type_offset }
            | gimli::UnitType::SplitType { type_signature, type_offset } = header.type_()
            {
                self.signatures.entry(type_signature.0).or_insert((number, type_offset.0));
            }
            if let Some(start) = header.debug_info_offset() {
                starts.push((start.0, number));
            }
            self.units.push(TypeUnit { dwarf, unit, module, section });
        }
        self.sections.push(Section { starts, shared });
        section
    }
}

/// Reads the units of modules, and calls `use_units` with them. `with_locals` tells whether local variables of a module are
/// wanted.
pub(super) fn with_units<Output>(
    modules: &[Module],
    files: &[Files],
    options: &Options,
    with_locals: &(dyn Fn(usize) -> bool + Sync),
    use_units: impl FnOnce(&Units<'_, '_>) -> Output,
) -> Output {
    let threads = options.threads();
    let numbers: Vec<usize> = (0..files.len()).collect();
    let load = |module: &usize| load(&files[*module], with_locals(*module));
    let loaded = parallel::map(threads, &numbers, || (), |(), module| load(module), &mut |_| ());
    // They are dropped after what refers to them.
    let (splits, split_sections);
    let infos: Vec<Option<DebugInfo<'_>>> = loaded.iter().map(debug_info).collect();
    splits = parallel::map(
        threads,
        &split_places(modules, files, &infos),
        || (),
        |(), place| (place.clone(), split::open_first(&place.candidates)),
        &mut |_| (),
    );
    split_sections = parallel::map(
        threads,
        &splits,
        || (),
        |(), split| load_split(split, with_locals(split.0.module)),
        &mut |_| (),
    );
    let mut split_infos: Vec<(usize, Option<Skeleton>, DebugInfo<'_>)> = Vec::new();
    for ((place, _), sections) in splits.iter().zip(&split_sections) {
        if let (Some(parent), Some((sections, more))) = (&infos[place.module], sections) {
            let mut info = split::debug_info(sections, &parent.dwarf);
            more.add_to(&mut info.dwarf);
            split_infos.push((place.module, Some(place.skeleton), info));
        }
    }
    for (module, (info, loaded)) in infos.iter().zip(&loaded).enumerate() {
        let (Some(info), Some(package)) = (info, &loaded.loaded.package) else { continue };
        let Ok(package) = package.package() else { continue };
        for unit in units_of(info) {
            let Some(skeleton) = Skeleton::from_unit(&unit) else { continue };
            if let Ok(Some(dwarf)) = package.find_cu(skeleton.id(), &info.dwarf) {
                split_infos.push((module, Some(skeleton), DebugInfo::new(dwarf)));
            }
        }
        for row in 1..=package.tu_index.unit_count() {
            if let Ok(dwarf) = package.tu_sections(row, &info.dwarf) {
                split_infos.push((module, None, DebugInfo::new(dwarf)));
            }
        }
    }
    let mut units = Units::default();
    for (module, info) in infos.iter().enumerate() {
        let Some(info) = info else { continue };
        let shared = info.shared.as_ref();
        let shared = shared.map(|shared| units.add(module, &shared.dwarf, units_of(shared), None));
        units.add(module, &info.dwarf, units_of(info), shared);
        units.add(module, &info.dwarf, type_units_of(info), None);
    }
    for (module, skeleton, info) in &split_infos {
        let mut found: Vec<Unit<'_>> = units_of(info).collect();
        if let Some(skeleton) = skeleton {
            found.iter_mut().for_each(|unit| {
                skeleton.complete(unit);
            });
        }
        units.add(*module, &info.dwarf, found, None);
        units.add(*module, &info.dwarf, type_units_of(info), None);
    }
    use_units(&units)
}

/// The contents of a module's files, from which units are read.
struct ModuleSections<'data> {
    loaded: Loaded<'data>,
    more: MoreSections<'data>,
}

/// Sections without which lines and names of functions can be read.
#[derive(Default)]
struct MoreSections<'data> {
    /// `.debug_types` of DWARF 4.
    types: Cow<'data, [u8]>,
    /// Lists of the locations of variables: `.debug_loc` of DWARF 4. Empty if no local variables are wanted.
    old_locations: Cow<'data, [u8]>,
    /// The same of DWARF 5, `.debug_loclists`.
    locations: Cow<'data, [u8]>,
}

impl<'data> MoreSections<'data> {
    /// Damaged sections are left out.
    fn load(elf: &Elf<'data>, is_split: bool, with_locals: bool) -> MoreSections<'data> {
        let load = |id: SectionId| {
            let name = if is_split { id.dwo_name() } else { Some(id.name()) };
            name.and_then(|name| load_section(elf, name).ok()).unwrap_or_default()
        };
        let load_lists = |id| if with_locals { load(id) } else { Cow::default() };
        MoreSections {
            types: load(SectionId::DebugTypes),
            old_locations: load_lists(SectionId::DebugLoc),
            locations: load_lists(SectionId::DebugLocLists),
        }
    }

    fn add_to<'a>(&'a self, dwarf: &mut gimli::Dwarf<Reader<'a>>) {
        dwarf.debug_types = gimli::DebugTypes::new(&self.types, gimli::LittleEndian);
        dwarf.locations = gimli::LocationLists::new(
            gimli::DebugLoc::new(&self.old_locations, gimli::LittleEndian),
            gimli::DebugLocLists::new(&self.locations, gimli::LittleEndian),
        );
    }
}

fn load(files: &Files, with_locals: bool) -> ModuleSections<'_> {
    let more = files.debug_info().map(|elf| MoreSections::load(&elf, false, with_locals));
    ModuleSections { loaded: loaded::load(files), more: more.unwrap_or_default() }
}

fn debug_info<'data>(sections: &'data ModuleSections<'data>) -> Option<DebugInfo<'data>> {
    sections.loaded.file?;
    let mut info = loaded::debug_info(&sections.loaded);
    sections.more.add_to(&mut info.dwarf);
    Some(info)
}

/// Where a split unit may be.
#[derive(Clone)]
struct SplitPlace {
    skeleton: Skeleton,
    module: usize,
    candidates: Vec<PathBuf>,
}

/// The places of the split units of modules that have no package.
fn split_places(modules: &[Module], files: &[Files], infos: &[Option<DebugInfo<'_>>]) -> Vec<SplitPlace> {
    let mut found = Vec::new();
    for (module, info) in infos.iter().enumerate().filter(|(module, _)| files[*module].package.is_none()) {
        let Some(info) = info else { continue };
        for unit in units_of(info) {
            let Some(skeleton) = Skeleton::from_unit(&unit) else { continue };
            let candidates = split::candidates(&unit, &info.dwarf, Path::new(&*modules[module].path));
            found.push(SplitPlace { skeleton, module, candidates });
        }
    }
    found
}

type SplitSections<'data> = (Sections<'data>, MoreSections<'data>);

fn load_split((_, file): &(SplitPlace, Option<Mapped>), with_locals: bool) -> Option<SplitSections<'_>> {
    let elf = Elf::parse(file.as_ref()?).ok()?;
    Some((Sections::load(&elf, true).ok()?, MoreSections::load(&elf, true, with_locals)))
}

fn units_of<'data>(info: &DebugInfo<'data>) -> impl Iterator<Item = Unit<'data>> {
    (0..info.headers.len()).filter_map(|index| info.open(index).ok())
}

/// The units of `.debug_types`.
fn type_units_of<'data>(info: &DebugInfo<'data>) -> impl Iterator<Item = Unit<'data>> {
    let mut headers = info.dwarf.type_units();
    let headers = std::iter::from_fn(move || headers.next().ok().flatten());
    headers.filter_map(|header| {
        Unit::new(&info.dwarf, header, info.abbreviations(header.debug_abbrev_offset().0)).ok()
    })
}
