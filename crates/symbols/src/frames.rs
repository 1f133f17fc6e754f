//! The frames of the addresses in one unit.

use crate::coroutine_names;
use foldhash::HashMap;
use gimli::{DwLang, UnitOffset};
use stackglass_debug_info::dwarf::functions::{self, Calls};
use stackglass_debug_info::dwarf::index::Share;
use stackglass_debug_info::dwarf::lines::{self, SourceLine};
use stackglass_debug_info::dwarf::names::{self, RawName};
use stackglass_debug_info::dwarf::split::{self, Skeleton};
use stackglass_debug_info::dwarf::unit::{DebugInfo, Unit};
use stackglass_debug_info::elf::Elf;
use stackglass_debug_info::mapped::Mapped;
use stackglass_debug_info::module_path::Origin;
use stackglass_debug_info::naming::{Named, Namer};
use stackglass_debug_info::sections::{Reader, Sections};
use stackglass_debug_info::{Error, source};
use stackglass_profile::Frame;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// The debug information of a module, and the addresses to look up in it.
pub(crate) struct Wanted<'data> {
    pub info: DebugInfo<'data>,
    pub package: Option<gimli::DwarfPackage<Reader<'data>>>,
    /// Sorted.
    pub addresses: &'data [u64],
    /// The addresses, by index, whose functions are read with their generic arguments. Empty for none.
    pub allocating: &'data [bool],
    /// Bodies of coroutines are named as in await stacks.
    pub coroutines: bool,
    /// Address ranges of the module's code.
    pub code: &'data [Range<u64>],
    /// The module's path at run time.
    pub program: &'data Path,
    /// The file with the debug information.
    pub file: &'data Mapped,
}

/// Smallest unit whose pages are released after use. This keeps memory small and takes a system call.
const LARGE: usize = 128 << 10;

/// Most bytes of a name with arguments; longer ones are cut, and their types are unknown.
const LONGEST_NAME: usize = 16 * 1024;

/// Frames of one address, innermost first.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub frames: Vec<Frame>,
    /// For addresses in stacks of allocations: the last part of each frame's name, with generic arguments.
    pub arguments: Vec<Option<Arc<str>>>,
    /// Whether the last frame takes its name from the symbol table.
    pub from_symbol: FromSymbol,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum FromSymbol {
    /// No: the debug information is complete.
    No,
    /// The name; the language is known.
    Name,
    /// The name, and the language by its mangling.
    #[default]
    All,
}

/// Names and paths that a thread caches for all units.
pub(crate) struct Cache {
    pub namer: Namer,
    files: HashMap<String, Arc<str>>,
    /// An unknown frame; copies share its empty strings.
    blank: Frame,
}

impl Default for Cache {
    fn default() -> Cache {
        Cache { namer: Namer::default(), files: HashMap::default(), blank: Frame::unknown(0) }
    }
}

/// Frames by the index of their address, and errors.
pub(crate) type Found = (Vec<(u32, Draft)>, Vec<Error>);

/// Finds the frames of the addresses that are assigned to a unit.
pub(crate) fn of_share(wanted: &Wanted<'_>, share: &Share, cache: &mut Cache) -> Found {
    let mut problems = Vec::new();
    let damaged = |source| Error::Dwarf { path: wanted.file.path().to_owned(), source };
    let addresses: Vec<u64> = share.addresses.iter().map(|index| wanted.addresses[*index as usize]).collect();
    let unit = match wanted.info.open(share.unit) {
        Ok(unit) => unit,
        Err(error) => return (Vec::new(), vec![damaged(error)]),
    };
    let mut places = vec![None; addresses.len()];
    if let Err(error) = lines::places(unit.with(&wanted.info.dwarf), &addresses, wanted.code, &mut places) {
        problems.push(damaged(error));
    }
    let mut lookup =
        Lookup { wanted, skeleton: &unit, indices: &share.addresses, addresses, places, problems };
    let drafts = lookup.drafts(cache);
    let problems = lookup.problems;
    if let Ok((entries, _)) = unit.entries()
        && entries.len() >= LARGE
    {
        wanted.file.give_back(entries);
    }
    (drafts, problems)
}

/// The lookup of one unit.
struct Lookup<'a, 'main> {
    wanted: &'a Wanted<'main>,
    /// The unit in the program, which has the line table.
    skeleton: &'a Unit<'main>,
    /// The addresses of the unit, by index.
    indices: &'a [u32],
    addresses: Vec<u64>,
    places: Vec<Option<SourceLine>>,
    problems: Vec<Error>,
}

impl<'main> Lookup<'_, 'main> {
    /// Finds the unit with the functions, which may be in another file, and its frames.
    fn drafts(&mut self, cache: &mut Cache) -> Vec<(u32, Draft)> {
        let (wanted, skeleton) = (self.wanted, self.skeleton);
        let Some(half) = Skeleton::from_unit(skeleton) else {
            return self.drafts_from(&wanted.info, skeleton, cache);
        };
        let parent = &wanted.info.dwarf;
        if let Some(package) = &wanted.package
            && let Ok(Some(dwarf)) = package.find_cu(half.id(), parent)
        {
            let info = DebugInfo::new(dwarf);
            if let Some(unit) = half.unit_in(&info) {
                return self.drafts_from(&info, &unit, cache);
            }
        }
        let candidates = split::candidates(skeleton, parent, wanted.program);
        if let Some(file) = split::open_first(&candidates) {
            match Elf::parse(&file).and_then(|elf| Sections::load(&elf, true)) {
                Ok(sections) => {
                    let info = split::debug_info(&sections, parent);
                    if let Some(unit) = half.unit_in(&info) {
                        return self.drafts_from(&info, &unit, cache);
                    }
                }
                Err(error) => self.problems.push(error),
            }
        }
        let split = candidates.into_iter().next().unwrap_or_default();
        self.problems.push(Error::SplitMissing { path: wanted.program.to_owned(), split });
        self.drafts_from(&wanted.info, skeleton, cache)
    }

    fn drafts_from<'data>(
        &mut self,
        info: &DebugInfo<'data>,
        unit: &Unit<'data>,
        cache: &mut Cache,
    ) -> Vec<(u32, Draft)> {
        let (mut calls, end) = functions::walk(unit, &info.dwarf, &self.addresses);
        if let Err(source) = end {
            self.problems.push(Error::Dwarf { path: self.wanted.file.path().to_owned(), source });
        }
        if let Some(scopes) = calls.scopes.take() {
            unit.set_scopes(scopes);
        }
        let mut builder = Builder {
            wanted: self.wanted,
            skeleton: self.skeleton,
            info,
            unit,
            cache,
            files: HashMap::default(),
            names: HashMap::default(),
            arguments: HashMap::default(),
        };
        builder.drafts(self.indices, &calls, &self.places)
    }
}

/// Builds the frames of a unit.
struct Builder<'a, 'main, 'data> {
    wanted: &'a Wanted<'main>,
    skeleton: &'a Unit<'main>,
    info: &'a DebugInfo<'data>,
    /// The unit with the functions: the skeleton, unless debug information is split.
    unit: &'a Unit<'data>,
    cache: &'a mut Cache,
    files: HashMap<u64, Option<Arc<str>>>,
    names: HashMap<UnitOffset, (RawName<'data>, Option<Named>)>,
    arguments: HashMap<UnitOffset, Option<Arc<str>>>,
}

impl Builder<'_, '_, '_> {
    fn drafts(&mut self, indices: &[u32], calls: &Calls, places: &[Option<SourceLine>]) -> Vec<(u32, Draft)> {
        let mut drafts = Vec::with_capacity(indices.len());
        for ((index, innermost), place) in indices.iter().zip(&calls.innermost).zip(places) {
            if innermost.is_none() && place.is_none() {
                continue;
            }
            let mut draft = self.draft(calls, *innermost, *place);
            if self.wanted.allocating.get(*index as usize) == Some(&true) {
                draft.arguments = self.arguments(calls, *innermost);
            }
            drafts.push((*index, draft));
        }
        drafts
    }

    fn draft(&mut self, calls: &Calls, innermost: Option<u32>, place: Option<SourceLine>) -> Draft {
        let (mut file, mut line) = (place.map(|place| place.file), place.map_or(0, |place| place.line));
        let Some(innermost) = innermost else {
            let mut frame = self.cache.blank.clone();
            self.set_place(&mut frame, file, line);
            frame.foreign = self.unit.language != Some(gimli::DW_LANG_Rust);
            let from_symbol = if self.unit.language.is_some() { FromSymbol::Name } else { FromSymbol::All };
            return Draft { frames: vec![frame], from_symbol, arguments: Vec::new() };
        };
        let mut draft = Draft::default();
        let mut next = Some(innermost);
        while let Some(call) = next.and_then(|index| calls.calls.get(index as usize)) {
            let mut frame = self.cache.blank.clone();
            self.set_place(&mut frame, file, line);
            frame.inlined = call.into.is_some();
            draft.from_symbol = self.set_name(&mut frame, call.named_by);
            draft.frames.push(frame);
            (file, line) = (call.call_file, call.call_line);
            next = call.into;
        }
        draft
    }

    /// The last part of each function's name, with generic arguments, innermost first.
    fn arguments(&mut self, calls: &Calls, innermost: Option<u32>) -> Vec<Option<Arc<str>>> {
        let mut names = Vec::new();
        let mut next = innermost;
        while let Some(call) = next.and_then(|index| calls.calls.get(index as usize)) {
            let name = self.arguments.entry(call.named_by).or_insert_with(|| {
                let name = names::with_arguments(self.info, self.unit, call.named_by)?;
                Some(Arc::from(String::from_utf8_lossy(&name[..name.len().min(LONGEST_NAME)])))
            });
            names.push(name.clone());
            next = call.into;
        }
        names
    }

    fn set_place(&mut self, frame: &mut Frame, file: Option<u64>, line: u64) {
        if let Some(file) = file.and_then(|file| self.file(file)) {
            frame.file = file;
        }
        frame.line = i64::try_from(line).ok().filter(|line| *line > 0).unwrap_or(-1);
    }

    fn file(&mut self, index: u64) -> Option<Arc<str>> {
        let known = self.files.entry(index).or_insert_with(|| {
            let path = lines::path(self.skeleton.with(&self.wanted.info.dwarf), index)?;
            let path = source::normalize(&path);
            let files = &mut self.cache.files;
            Some(match files.get(&path) {
                Some(known) => known.clone(),
                None => {
                    let shared: Arc<str> = Arc::from(&*path);
                    files.insert(path, shared.clone());
                    shared
                }
            })
        });
        known.clone()
    }

    fn set_name(&mut self, frame: &mut Frame, entry: UnitOffset) -> FromSymbol {
        let info = self.info;
        let (raw, known) =
            self.names.entry(entry).or_insert_with(|| (names::resolve(info, self.unit, entry), None));
        let named = known.clone().or_else(|| {
            let folder = self.skeleton.unit.comp_dir.map(|folder| folder.to_string_lossy());
            let unit = self.unit.name.or(self.skeleton.name).map(|name| name.to_string_lossy());
            let file = (!frame.file.is_empty()).then_some(&*frame.file);
            let origin = Origin { file, unit: unit.as_deref(), folder: folder.as_deref() };
            let mut named = self.cache.namer.entry(raw, origin)?;
            if self.wanted.coroutines
                && named.func.ends_with(coroutine_names::CLOSURE)
                && let Some((name, scopes)) = names::with_scopes(info, self.unit, entry)
                && let Some(function) = coroutine_names::of_body(&named.func, name, &scopes)
            {
                named.func = function;
            }
            if raw.linkage.is_some() || !raw.scopes.is_empty() {
                *known = Some(named.clone());
            }
            Some(named)
        });
        let complete = raw.linkage.is_some() || !names::has_paths(raw.language) && raw.name.is_some();
        let language: Option<DwLang> = raw.language;
        frame.foreign = language != Some(gimli::DW_LANG_Rust);
        if let Some(named) = named {
            frame.func = named.func;
            frame.spec = named.spec;
            frame.krate = named.krate;
            frame.foreign = named.foreign;
        }
        // Its code cannot be told from that around it. A function that returns nothing allocates for no caller, whatever its name.
        if frame.inlined && frame.foreign && raw.returns_nothing && !self.wanted.allocating.is_empty() {
            frame.allocates_for_caller = Some(false);
        }
        match (complete, language) {
            (true, _) => FromSymbol::No,
            (false, Some(_)) => FromSymbol::Name,
            (false, None) => FromSymbol::All,
        }
    }
}
