//! The debug information of one file, and its units, which are opened at first use.

use crate::dwarf::abbreviations::Abbreviations;
use crate::dwarf::leb::read_leb;
use crate::dwarf::scopes::Scopes;
use crate::sections::{Reader, Sections};
use foldhash::HashMap;
use gimli::{AttributeValue, DebugInfoOffset, DwLang, Section, UnitHeader, UnitOffset, UnitRef};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The debug information of a program, a separate debug file or a `.dwo` file.
pub struct DebugInfo<'data> {
    /// Its sections.
    pub dwarf: gimli::Dwarf<Reader<'data>>,
    /// In order of their offsets.
    pub headers: Vec<UnitHeader<Reader<'data>>>,
    /// Units that other units refer to, by the index of their header.
    referred: Vec<OnceLock<Option<Box<Unit<'data>>>>>,
    /// Tables of abbreviations by their offsets; units often share them.
    abbreviations: Mutex<HashMap<usize, Arc<Abbreviations<'data>>>>,
    /// The part that several debug files share (dwz).
    pub shared: Option<Box<DebugInfo<'data>>>,
    /// All units, if only a part is loaded.
    whole: Option<Whole<'data>>,
}

/// Debug information that is loaded when a reference leads out of the part that is.
struct Whole<'data> {
    sections: &'data Sections<'data>,
    info: OnceLock<Box<DebugInfo<'data>>>,
}

/// A unit with its abbreviations.
pub struct Unit<'data> {
    /// With the abbreviation of its root only.
    pub unit: gimli::Unit<Reader<'data>>,
    /// All of its abbreviations.
    pub abbreviations: Arc<Abbreviations<'data>>,
    /// The language of its source.
    pub language: Option<DwLang>,
    /// Name of the unit: the source file, in Rust with the crate's name.
    pub name: Option<Reader<'data>>,
    scopes: OnceLock<Scopes>,
}

impl<'data> DebugInfo<'data> {
    /// Lists the units, up to the first damaged one.
    pub fn new(dwarf: gimli::Dwarf<Reader<'data>>) -> DebugInfo<'data> {
        let mut headers = Vec::new();
        let mut units = dwarf.units();
        while let Ok(Some(header)) = units.next() {
            headers.push(header);
        }
        let referred = headers.iter().map(|_| OnceLock::new()).collect();
        DebugInfo { dwarf, headers, referred, abbreviations: Mutex::default(), shared: None, whole: None }
    }

    /// Adds the part that the file shares with others.
    pub fn with_shared(mut self, shared: DebugInfo<'data>, sections: gimli::Dwarf<Reader<'data>>) -> Self {
        self.dwarf.set_sup(sections);
        self.shared = Some(Box::new(shared));
        self
    }

    /// The debug information of sections that may be loaded in part.
    pub fn from_sections(sections: &'data Sections<'data>) -> DebugInfo<'data> {
        let mut info = DebugInfo::new(sections.dwarf());
        info.whole = sections.is_cut().then(|| Whole { sections, info: OnceLock::new() });
        info
    }

    /// Opens a unit by the index of its header.
    pub fn open(&self, index: usize) -> gimli::Result<Unit<'data>> {
        let header = *self.headers.get(index).ok_or(gimli::Error::MissingUnitDie)?;
        Unit::new(&self.dwarf, header, self.abbreviations(header.debug_abbrev_offset().0))
    }

    /// The table of abbreviations at an offset.
    pub fn abbreviations(&self, offset: usize) -> Arc<Abbreviations<'data>> {
        // Nothing panics while it is locked, so a poisoned lock is consistent.
        let mut known = self.abbreviations.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(Abbreviations::new(self.dwarf.debug_abbrev.reader().slice(), offset));
        known.entry(offset).or_insert_with(new).clone()
    }

    /// Index of the unit that starts at this offset of `.debug_info`.
    pub fn index_of(&self, offset: DebugInfoOffset) -> Option<usize> {
        self.headers.binary_search_by_key(&Some(offset.0), start_of).ok()
    }

    /// The unit of an offset in `.debug_info`, and the offset in it.
    pub fn refer(&self, offset: DebugInfoOffset) -> Option<(&Unit<'data>, UnitOffset)> {
        self.refer_here(offset).or_else(|| {
            let whole = self.whole.as_ref()?;
            let info = whole.info.get_or_init(|| Box::new(DebugInfo::new(whole.sections.whole())));
            info.refer_here(offset)
        })
    }

    fn refer_here(&self, offset: DebugInfoOffset) -> Option<(&Unit<'data>, UnitOffset)> {
        let after = self.headers.partition_point(|header| start_of(header) <= Some(offset.0));
        let index = after.checked_sub(1)?;
        let within = offset.to_unit_offset(&self.headers[index])?;
        let unit = self.referred[index].get_or_init(|| self.open(index).ok().map(Box::new));
        Some((unit.as_deref()?, within))
    }
}

fn start_of(header: &UnitHeader<Reader<'_>>) -> Option<usize> {
    header.debug_info_offset().map(|offset| offset.0)
}

/// A table for gimli with the abbreviation of a unit's root entry.
fn root_abbreviation(
    header: &UnitHeader<Reader<'_>>,
    abbreviations: &Abbreviations<'_>,
) -> gimli::Result<Option<Arc<gimli::Abbreviations>>> {
    let entries = header.range_from(header.root_offset()..)?.slice();
    Ok(read_leb(entries, 0).and_then(|(code, _)| abbreviations.only(code)))
}

/// The offset of the unit's line table, if it has one. `None` if the root entry cannot be read.
pub fn line_program(
    header: UnitHeader<Reader<'_>>,
    abbreviations: &Abbreviations<'_>,
) -> Option<Option<usize>> {
    let table = root_abbreviation(&header, abbreviations).ok()??;
    let mut entries = header.entries_raw(&table, None).ok()?;
    let mut program = None;
    for spec in entries.read_abbreviation().ok()??.attributes() {
        let value = entries.read_attribute(*spec).ok()?.value();
        if let (gimli::DW_AT_stmt_list, AttributeValue::DebugLineRef(offset)) = (spec.name(), value) {
            program = Some(offset.0);
        }
    }
    Some(program)
}

impl<'data> Unit<'data> {
    /// Reads the root entry.
    pub fn new(
        dwarf: &gimli::Dwarf<Reader<'data>>,
        header: UnitHeader<Reader<'data>>,
        abbreviations: Arc<Abbreviations<'data>>,
    ) -> gimli::Result<Self> {
        let unit = match root_abbreviation(&header, &abbreviations)? {
            Some(root) => gimli::Unit::new_with_abbreviations(dwarf, header, root)?,
            None => dwarf.unit(header)?,
        };
        let mut language = None;
        let mut entries = unit.entries_raw(None)?;
        if let Some(root) = entries.read_abbreviation()? {
            for spec in root.attributes() {
                let attribute = entries.read_attribute(*spec)?;
                if let gimli::AttributeValue::Language(value) = attribute.value() {
                    language = Some(value);
                }
            }
        }
        let name = unit.name;
        Ok(Unit { unit, abbreviations, language, name, scopes: OnceLock::new() })
    }

    /// The unit with its sections, for gimli's functions.
    pub fn with<'a>(&'a self, dwarf: &'a gimli::Dwarf<Reader<'data>>) -> UnitRef<'a, Reader<'data>> {
        UnitRef::new(dwarf, &self.unit)
    }

    /// The bytes of the entries, and the offset of the first.
    pub fn entries(&self) -> gimli::Result<(&'data [u8], UnitOffset)> {
        let root = self.unit.header.root_offset();
        Ok((self.unit.header.range_from(root..)?.slice(), root))
    }

    /// Its namespaces and types, from `find` if they are not known yet.
    pub fn scopes_or(&self, find: impl FnOnce() -> Scopes) -> &Scopes {
        self.scopes.get_or_init(find)
    }

    /// Stores the scopes that a walk has found.
    pub fn set_scopes(&self, scopes: Scopes) {
        let _ = self.scopes.set(scopes);
    }
}
