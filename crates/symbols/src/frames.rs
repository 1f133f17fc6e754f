//! The frames of the addresses that lie in one unit.

use crate::dwarf::functions::{self, Calls};
use crate::dwarf::index::Share;
use crate::dwarf::lines::{self, Place};
use crate::dwarf::names::{self, RawName};
use crate::dwarf::split::{self, Skeleton};
use crate::dwarf::unit::{DebugInfo, Unit};
use crate::elf::Elf;
use crate::mapped::Mapped;
use crate::naming::{Named, Namer, Written};
use crate::sections::{Reader, Sections};
use crate::{Error, source};
use foldhash::HashMap;
use gimli::{DwLang, UnitOffset};
use stackglass_profile::Frame;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// The debug information of a module and the addresses that are wanted from it.
pub(crate) struct Wanted<'data> {
    pub info: DebugInfo<'data>,
    pub package: Option<gimli::DwarfPackage<Reader<'data>>>,
    /// Sorted.
    pub addresses: &'data [u64],
    /// Where the module has code.
    pub code: &'data [Range<u64>],
    /// The module's path at run time.
    pub program: &'data Path,
    /// The file that the debug information lies in.
    pub file: &'data Mapped,
}

/// Units from this size on give their pages back when they are done: it is what keeps memory
/// small, and costs a system call.
const LARGE: usize = 128 << 10;

/// Frames of one address, innermost first.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub frames: Vec<Frame>,
    /// Whether the symbol table knows the last frame's name better.
    pub from_symbol: FromSymbol,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum FromSymbol {
    /// Nothing: the debug information says it all.
    No,
    /// The name; the language is known.
    Name,
    /// The name, and by its mangling the language.
    #[default]
    All,
}

/// What a thread keeps from unit to unit.
pub(crate) struct Memory {
    pub namer: Namer,
    files: HashMap<String, Arc<str>>,
    /// A frame of which nothing is known; copies share its empty strings.
    blank: Frame,
}

impl Default for Memory {
    fn default() -> Memory {
        Memory { namer: Namer::default(), files: HashMap::default(), blank: Frame::unknown(0) }
    }
}

/// Frames by the index of their address, and what went wrong.
pub(crate) type Found = (Vec<(u32, Draft)>, Vec<Error>);

/// Finds the frames of a unit's share of the addresses.
pub(crate) fn of_share(wanted: &Wanted<'_>, share: &Share, memory: &mut Memory) -> Found {
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
    let mut work = Work { wanted, skeleton: &unit, indices: &share.addresses, addresses, places, problems };
    let drafts = work.drafts(memory);
    let problems = work.problems;
    if let Ok((entries, _)) = unit.entries()
        && entries.len() >= LARGE
    {
        wanted.file.give_back(entries);
    }
    (drafts, problems)
}

/// A unit at work.
struct Work<'a, 'main> {
    wanted: &'a Wanted<'main>,
    /// The unit in the program, which has the lines.
    skeleton: &'a Unit<'main>,
    /// The unit's share of the addresses, by their indices and in full.
    indices: &'a [u32],
    addresses: Vec<u64>,
    places: Vec<Option<Place>>,
    problems: Vec<Error>,
}

impl<'main> Work<'_, 'main> {
    /// Finds the unit with the functions, which may lie in another file, and asks it.
    fn drafts(&mut self, memory: &mut Memory) -> Vec<(u32, Draft)> {
        let (wanted, skeleton) = (self.wanted, self.skeleton);
        let Some(half) = Skeleton::of(skeleton) else {
            return self.drafts_from(&wanted.info, skeleton, memory);
        };
        let parent = &wanted.info.dwarf;
        if let Some(package) = &wanted.package
            && let Ok(Some(dwarf)) = package.find_cu(half.id(), parent)
        {
            let info = DebugInfo::new(dwarf);
            if let Some(unit) = half.unit_in(&info) {
                return self.drafts_from(&info, &unit, memory);
            }
        }
        let candidates = split::candidates(skeleton, parent, wanted.program);
        if let Some(file) = split::open_first(&candidates) {
            match Elf::parse(&file).and_then(|elf| Sections::load(&elf, true)) {
                Ok(sections) => {
                    let info = split::debug_info(&sections, parent);
                    if let Some(unit) = half.unit_in(&info) {
                        return self.drafts_from(&info, &unit, memory);
                    }
                }
                Err(error) => self.problems.push(error),
            }
        }
        let split = candidates.into_iter().next().unwrap_or_default();
        self.problems.push(Error::SplitMissing { path: wanted.program.to_owned(), split });
        self.drafts_from(&wanted.info, skeleton, memory)
    }

    fn drafts_from<'data>(
        &mut self,
        info: &DebugInfo<'data>,
        unit: &Unit<'data>,
        memory: &mut Memory,
    ) -> Vec<(u32, Draft)> {
        let (mut calls, end) = functions::walk(unit, &info.dwarf, &self.addresses);
        if let Err(source) = end {
            self.problems.push(Error::Dwarf { path: self.wanted.file.path().to_owned(), source });
        }
        if let Some(scopes) = calls.scopes.take() {
            unit.keep_scopes(scopes);
        }
        let mut builder = Builder {
            wanted: self.wanted,
            skeleton: self.skeleton,
            info,
            unit,
            memory,
            files: HashMap::default(),
            names: HashMap::default(),
        };
        builder.drafts(self.indices, &calls, &self.places)
    }
}

/// Puts the frames of a unit together.
struct Builder<'a, 'main, 'data> {
    wanted: &'a Wanted<'main>,
    skeleton: &'a Unit<'main>,
    info: &'a DebugInfo<'data>,
    /// The unit with the functions: the same, unless debug information is split.
    unit: &'a Unit<'data>,
    memory: &'a mut Memory,
    files: HashMap<u64, Option<Arc<str>>>,
    names: HashMap<UnitOffset, (RawName<'data>, Option<Named>)>,
}

impl Builder<'_, '_, '_> {
    fn drafts(&mut self, indices: &[u32], calls: &Calls, places: &[Option<Place>]) -> Vec<(u32, Draft)> {
        let mut drafts = Vec::with_capacity(indices.len());
        for ((index, innermost), place) in indices.iter().zip(&calls.innermost).zip(places) {
            if innermost.is_none() && place.is_none() {
                continue;
            }
            drafts.push((*index, self.draft(calls, *innermost, *place)));
        }
        drafts
    }

    fn draft(&mut self, calls: &Calls, innermost: Option<u32>, place: Option<Place>) -> Draft {
        let (mut file, mut line) = (place.map(|place| place.file), place.map_or(0, |place| place.line));
        let Some(innermost) = innermost else {
            let mut frame = self.memory.blank.clone();
            self.set_place(&mut frame, file, line);
            frame.foreign = self.unit.language != Some(gimli::DW_LANG_Rust);
            let from_symbol = if self.unit.language.is_some() { FromSymbol::Name } else { FromSymbol::All };
            return Draft { frames: vec![frame], from_symbol };
        };
        let mut draft = Draft::default();
        let mut next = Some(innermost);
        while let Some(call) = next.and_then(|index| calls.calls.get(index as usize)) {
            let mut frame = self.memory.blank.clone();
            self.set_place(&mut frame, file, line);
            frame.inlined = call.into.is_some();
            draft.from_symbol = self.set_name(&mut frame, call.named_by);
            draft.frames.push(frame);
            (file, line) = (call.call_file, call.call_line);
            next = call.into;
        }
        draft
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
            let files = &mut self.memory.files;
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
            let written = Written { file, unit: unit.as_deref(), folder: folder.as_deref() };
            let named = self.memory.namer.entry(raw, written)?;
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
        match (complete, language) {
            (true, _) => FromSymbol::No,
            (false, Some(_)) => FromSymbol::Name,
            (false, None) => FromSymbol::All,
        }
    }
}
