//! The name of an entry: its linkage name, or its plain name with the scopes around it.

use crate::dwarf::functions;
use crate::dwarf::leb::read_leb;
use crate::dwarf::unit::{DebugInfo, Unit};
use crate::sections::Reader;
use gimli::{AttributeValue, DwLang, EndianSlice, EntriesRaw, LittleEndian, UnitOffset};

/// Longest chain of references; longer chains are damage.
const LONGEST_CHAIN: usize = 16;

/// Deepest nesting of scopes; deeper nesting is cut.
const DEEPEST_SCOPE: usize = 64;

/// The names of a function in the file.
#[derive(Clone, Debug, Default)]
pub struct RawName<'data> {
    /// The mangled name.
    pub linkage: Option<&'data [u8]>,
    /// The name without its path.
    pub name: Option<&'data [u8]>,
    /// Namespaces and types around it, outermost first; empty if there is a linkage name.
    pub scopes: Vec<&'data [u8]>,
    /// Language of the unit that defines the function.
    pub language: Option<DwLang>,
    /// Whether it certainly returns nothing.
    pub returns_nothing: bool,
}

/// Follows references from an entry to the one with its name.
pub fn resolve<'data>(info: &DebugInfo<'data>, unit: &Unit<'data>, entry: UnitOffset) -> RawName<'data> {
    follow(info, unit, entry, Names::Needed)
}

/// The last part of a function's name as in the source, with generic arguments: `grow_one<u8, alloc::alloc::Global>`.
pub fn with_arguments<'data>(
    info: &DebugInfo<'data>,
    unit: &Unit<'data>,
    entry: UnitOffset,
) -> Option<&'data [u8]> {
    follow(info, unit, entry, Names::Both).name
}

/// The last part of a function's name as in the source, and the scopes around it, outermost first.
pub fn with_scopes<'data>(
    info: &DebugInfo<'data>,
    unit: &Unit<'data>,
    entry: UnitOffset,
) -> Option<(&'data [u8], Vec<&'data [u8]>)> {
    let found = follow(info, unit, entry, Names::Scopes);
    Some((found.name?, found.scopes))
}

/// Which names are read of an entry with a linkage name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Names {
    /// The linkage name alone. The ends of strings are the most expensive part here.
    Needed,
    /// The plain name, too.
    Both,
    /// The plain name with its scopes, too.
    Scopes,
}

fn follow<'data>(
    info: &DebugInfo<'data>,
    unit: &Unit<'data>,
    entry: UnitOffset,
    names: Names,
) -> RawName<'data> {
    let mut found = RawName::default();
    let mut has_type = false;
    let (mut info, mut unit, mut entry) = (info, unit, entry);
    for _ in 0..LONGEST_CHAIN {
        found.language = unit.language.or(found.language);
        let Ok(Some(step)) = read(info, unit, entry, names) else { break };
        found.linkage = found.linkage.or(step.linkage);
        has_type |= step.has_type;
        found.returns_nothing = !has_type && step.next.is_none();
        if found.linkage.is_some() {
            found.name = step.name.or(found.name);
            if names == Names::Scopes {
                found.scopes = scopes(info, unit, entry);
            }
            break;
        }
        if step.name.is_some() {
            found.name = step.name;
            if has_paths(unit.language) {
                found.scopes = scopes(info, unit, entry);
            }
            // A concrete copy may repeat the name while its origin has the linkage name.
            if step.next.is_none() {
                break;
            }
        }
        match step.next {
            Some(AttributeValue::UnitRef(offset)) => entry = offset,
            Some(AttributeValue::DebugInfoRef(offset)) => match info.refer(offset) {
                Some((other, offset)) => (unit, entry) = (other, offset),
                None => break,
            },
            Some(AttributeValue::DebugInfoRefSup(offset)) => {
                let Some(shared) = info.shared.as_deref() else { break };
                let Some((other, offset)) = shared.refer(offset) else { break };
                (info, unit, entry) = (shared, other, offset);
            }
            _ => break,
        }
    }
    found
}

struct Step<'data> {
    linkage: Option<&'data [u8]>,
    name: Option<&'data [u8]>,
    next: Option<AttributeValue<Reader<'data>>>,
    has_type: bool,
}

fn read<'data>(
    info: &DebugInfo<'data>,
    unit: &Unit<'data>,
    entry: UnitOffset,
    names: Names,
) -> gimli::Result<Option<Step<'data>>> {
    let bytes = unit.unit.header.range_from(entry..)?;
    let Some((code, at)) = read_leb(bytes.slice(), 0) else { return Ok(None) };
    let Some(declaration) = unit.abbreviations.get(code) else { return Ok(None) };
    let unit = unit.with(&info.dwarf);
    let attributes = EndianSlice::new(&bytes.slice()[at..], LittleEndian);
    let mut entries = EntriesRaw::new(attributes, unit.encoding(), &unit.abbreviations, entry);
    let (mut linkage, mut name, mut next, mut has_type) = (None, None, None, false);
    for spec in declaration.attributes() {
        let mut value = || entries.read_attribute(spec).map(|attribute| attribute.value());
        match spec.name() {
            gimli::DW_AT_linkage_name | gimli::DW_AT_MIPS_linkage_name => linkage = Some(value()?),
            gimli::DW_AT_name => name = Some(value()?),
            gimli::DW_AT_abstract_origin | gimli::DW_AT_specification => next = Some(value()?),
            gimli::DW_AT_type => {
                has_type = true;
                entries.skip_attributes(&[spec])?;
            }
            _ => entries.skip_attributes(&[spec])?,
        }
    }
    let text = |value: Option<_>| {
        unit.attr_string(value?).ok().map(|text| text.slice()).filter(|text| !text.is_empty())
    };
    let linkage = text(linkage);
    let name = if linkage.is_none() || names != Names::Needed { text(name) } else { None };
    let step = Step { linkage, name, next, has_type };
    Ok(Some(step))
}

/// Names of the scopes around an entry, outermost first.
fn scopes<'data>(info: &DebugInfo<'data>, unit: &Unit<'data>, entry: UnitOffset) -> Vec<&'data [u8]> {
    let around = functions::scopes(unit, &info.dwarf).around(entry).take(DEEPEST_SCOPE);
    let mut names: Vec<&[u8]> = around
        .map(|scope| match read(info, unit, scope, Names::Needed) {
            Ok(Some(Step { name: Some(name), .. })) => name,
            _ => b"(anonymous namespace)",
        })
        .collect();
    names.reverse();
    names
}

/// Languages whose functions have paths. (Fortran, Go and others put the path into the name.)
pub fn has_paths(language: Option<DwLang>) -> bool {
    matches!(
        language,
        Some(
            gimli::DW_LANG_Rust
                | gimli::DW_LANG_C_plus_plus
                | gimli::DW_LANG_C_plus_plus_03
                | gimli::DW_LANG_C_plus_plus_11
                | gimli::DW_LANG_C_plus_plus_14
                | gimli::DW_LANG_C_plus_plus_17
                | gimli::DW_LANG_C_plus_plus_20
                | gimli::DW_LANG_D
                | gimli::DW_LANG_Zig
                | gimli::DW_LANG_Swift
        )
    )
}
