//! Second pass: reads one description of each type.

use super::coroutines::is_coroutine;
use super::derived::{Derived, DerivedTypes};
use super::entries::{Entries, Entry, Reference, Value};
use super::index::Budget;
use super::units::{TypeUnit, Units};
use super::{Field, Layout, Shape, SourceLine, TypeId, Variant};
use foldhash::HashMap;
use gimli::AttributeValue;
use stackglass_debug_info::dwarf::leb::{read_leb, read_signed_leb};
use stackglass_debug_info::dwarf::lines;
use stackglass_debug_info::naming::name_of_symbol;
use stackglass_symbols::types::short;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError};

/// Longest chain of types that refer to each other without a name in between; longer ones are damage.
const LONGEST_CHAIN: usize = 32;

/// Most cursors, and most references, that a thread keeps.
const MOST_CURSORS: usize = 64;
const MOST_KNOWN: usize = 1 << 16;

/// What is known of all types before their descriptions are read.
pub(super) struct Types<'units, 'data> {
    pub units: &'units Units<'units, 'data>,
    /// Of each unit: offsets of types, sorted, and their ids.
    pub ids: Vec<Vec<(usize, TypeId)>>,
    /// Of each type: its name and its size.
    pub named: Vec<(Arc<str>, u64)>,
    pub derived: Mutex<DerivedTypes>,
    /// Most fields of all variants.
    pub fields: Budget,
}

impl Types<'_, '_> {
    fn derived(&self, derived: Derived) -> TypeId {
        // Nothing panics while it is locked, so a poisoned lock is consistent.
        let mut types = self.derived.lock().unwrap_or_else(PoisonError::into_inner);
        types.id(derived, |id| self.named[id.0 as usize].clone())
    }
}

/// Reads descriptions: the state of one thread.
pub(super) struct Reader<'types, 'data> {
    types: &'types Types<'types, 'data>,
    cursors: HashMap<usize, Entries<'types, 'data>>,
    /// Types of entries without an id of their own.
    known: HashMap<(usize, usize), Option<TypeId>>,
    names: HashMap<Box<[u8]>, Arc<str>>,
    /// Paths of source files by unit and number.
    files: HashMap<(usize, u64), Option<Arc<str>>>,
}

/// The parts of a struct.
#[derive(Default)]
struct Parts {
    fields: Vec<Field>,
    arguments: Vec<(Arc<str>, TypeId)>,
    /// Offset of the variant part of a Rust enum.
    variants: Option<usize>,
    partial: bool,
    is_coroutine: bool,
    /// Source lines of the variants of a coroutine.
    lines: Vec<Option<SourceLine>>,
}

impl<'types, 'data> Reader<'types, 'data> {
    pub fn new(types: &'types Types<'types, 'data>) -> Reader<'types, 'data> {
        Reader {
            types,
            cursors: HashMap::default(),
            known: HashMap::default(),
            names: HashMap::default(),
            files: HashMap::default(),
        }
    }

    fn cursor(&mut self, unit: usize) -> Option<&mut Entries<'types, 'data>> {
        if self.cursors.len() >= MOST_CURSORS && !self.cursors.contains_key(&unit) {
            self.cursors.clear();
        }
        match self.cursors.entry(unit) {
            std::collections::hash_map::Entry::Occupied(known) => Some(known.into_mut()),
            std::collections::hash_map::Entry::Vacant(free) => {
                let of = &self.types.units.units[unit];
                Some(free.insert(Entries::new(&of.unit, of.dwarf)?))
            }
        }
    }

    fn read(&mut self, unit: usize, offset: usize) -> Option<Entry<'data>> {
        self.cursor(unit)?.read(offset)
    }

    fn text(&mut self, unit: usize, value: Option<Value<'data>>) -> Arc<str> {
        let text = self.cursor(unit).map(|cursor| cursor.text(value)).unwrap_or_default();
        if let Some(known) = self.names.get(text) {
            return known.clone();
        }
        let shared: Arc<str> = String::from_utf8_lossy(text).into();
        if text.len() < 256 {
            self.names.insert(text.into(), shared.clone());
        }
        shared
    }

    /// The layout of the type with an id, which is described at an offset.
    /// Also the source lines of the variants of a coroutine.
    pub fn layout(&mut self, id: TypeId, unit: usize, offset: usize) -> (Layout, Vec<Option<SourceLine>>) {
        let (name, size) = self.types.named[id.0 as usize].clone();
        let mut parts = Parts { is_coroutine: is_coroutine(&name), ..Parts::default() };
        let shape = self.shape(unit, offset, &mut parts).unwrap_or(Shape::Plain);
        let size = match shape {
            Shape::Pointer { .. } if size == 0 => self.address_size(unit),
            _ => size,
        };
        let layout = Layout { name, size, shape, arguments: parts.arguments, partial: parts.partial };
        (layout, parts.lines)
    }

    fn address_size(&mut self, unit: usize) -> u64 {
        self.cursor(unit).map_or(8, |cursor| cursor.address_size())
    }

    fn shape(&mut self, unit: usize, offset: usize, parts: &mut Parts) -> Option<Shape> {
        let entry = self.read(unit, offset)?;
        Some(match entry.tag {
            gimli::DW_TAG_pointer_type
            | gimli::DW_TAG_reference_type
            | gimli::DW_TAG_rvalue_reference_type => {
                Shape::Pointer { target: self.target(unit, entry.a_type, 0) }
            }
            gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_interface_type => {
                self.parts(unit, &entry, parts);
                let fields = std::mem::take(&mut parts.fields);
                match parts.variants {
                    Some(variants) => self.variants(unit, variants, fields, parts)?,
                    None => Shape::Struct(fields),
                }
            }
            gimli::DW_TAG_union_type => {
                self.parts(unit, &entry, parts);
                Shape::Union(std::mem::take(&mut parts.fields))
            }
            _ => Shape::Plain,
        })
    }

    /// The children of an entry, until `visit` returns `None`. `visit` reads a child, and returns the offset behind it if it
    /// has read its children, too.
    fn children(
        &mut self,
        unit: usize,
        parent: &Entry<'data>,
        mut visit: impl FnMut(&mut Self, &Entry<'data>, usize),
    ) -> Option<()> {
        if !parent.has_children {
            return None;
        }
        let mut at = parent.end;
        loop {
            let cursor = self.cursor(unit)?;
            let head = cursor.head(at)?;
            let tag = head.tag?;
            let after = if is_part(tag) {
                let entry = cursor.entry(head)?;
                visit(self, &entry, at);
                entry.end
            } else {
                cursor.skip(head)?
            };
            at = self.cursor(unit)?.skip_children(head, after)?;
        }
    }

    /// Reads the members of a struct or union.
    fn parts(&mut self, unit: usize, entry: &Entry<'data>, parts: &mut Parts) {
        let Some(encoding) = self.cursor(unit).map(|cursor| cursor.unit().encoding()) else { return };
        self.children(unit, entry, |this, child, at| match child.tag {
            gimli::DW_TAG_member if !child.external && !child.declaration => {
                let Some(type_id) = this.type_id(unit, child.a_type) else { return };
                let Some(offset) = child.offset(encoding) else {
                    parts.partial = true;
                    return;
                };
                let name = this.text(unit, child.name);
                parts.fields.push(Field { name, offset, type_id });
            }
            gimli::DW_TAG_inheritance => {
                let offset = child.offset(encoding).filter(|_| !child.is_virtual);
                match (offset, this.type_id(unit, child.a_type)) {
                    (Some(offset), Some(type_id)) => {
                        let name = this.short_name(type_id);
                        parts.fields.push(Field { name, offset, type_id });
                    }
                    _ => parts.partial = true,
                }
            }
            gimli::DW_TAG_template_type_parameter => {
                if let Some(type_id) = this.type_id(unit, child.a_type) {
                    let name = this.text(unit, child.name);
                    parts.arguments.push((name, type_id));
                }
            }
            gimli::DW_TAG_variant_part => parts.variants = Some(at),
            _ => {}
        });
    }

    fn short_name(&mut self, id: TypeId) -> Arc<str> {
        self.types.named.get(id.0 as usize).map_or_else(|| "".into(), |(name, _)| short(name).into())
    }

    /// The enum whose variant part is at an offset. The structs of its variants have its arguments.
    fn variants(
        &mut self,
        unit: usize,
        offset: usize,
        common: Vec<Field>,
        parts: &mut Parts,
    ) -> Option<Shape> {
        let part = self.read(unit, offset)?;
        let encoding = self.cursor(unit)?.unit().encoding();
        let (mut tag, mut signed) = (None, false);
        if let Some(Reference::Unit(member)) = part.discriminant
            && let Some(member) = self.read(unit, member)
            && let Some(type_id) = self.type_id(unit, member.a_type)
        {
            let size = match self.size(type_id) {
                size @ 1..=16 => size,
                _ => return None,
            };
            tag = Some((member.offset(encoding)?, size));
            if let Some(Reference::Unit(base)) = member.a_type
                && let Some(base) = self.read(unit, base)
            {
                let kinds = [gimli::DW_ATE_signed, gimli::DW_ATE_signed_char];
                signed = kinds.iter().any(|kind| u64::from(kind.0) == base.encoding);
            }
        }
        let size = tag.map_or(16, |(_, size)| size);
        let mut variants = Vec::new();
        self.children(unit, &part, |this, child, _| {
            if child.tag != gimli::DW_TAG_variant || !this.types.fields.take(1) {
                return;
            }
            let values = values(child, size, signed);
            let mut members: Vec<Entry<'data>> = Vec::new();
            this.children(unit, child, |_, member, _| {
                if member.tag == gimli::DW_TAG_member && members.len() < 2 {
                    members.push(*member);
                }
            });
            let Some(member) = members.first() else { return };
            let name = this.text(unit, member.name);
            let start = member.offset(encoding).unwrap_or(0);
            let Parts { mut fields, arguments: found, .. } = this.struct_of(unit, member.a_type, start);
            if parts.arguments.is_empty() {
                parts.arguments = found;
            }
            if this.types.fields.take(fields.len() + common.len()) {
                fields.extend_from_slice(&common);
                variants.push(Variant { name, values, fields });
                if parts.is_coroutine {
                    parts.lines.push(this.line(unit, member.file, member.line));
                }
            }
        });
        Some(Shape::Enum { tag, variants })
    }

    /// A line of a file by its number in the line table of a unit.
    pub fn line(&mut self, unit: usize, file: u64, line: u64) -> Option<SourceLine> {
        let line = u32::try_from(line).ok().filter(|line| *line > 0)?;
        let units = &self.types.units.units;
        let path = self.files.entry((unit, file)).or_insert_with(|| {
            let of = &units[unit];
            // The files of a split unit are those of its skeleton, which alone has a table of lines.
            let is_skeleton = |other: &&TypeUnit<'_, '_>| {
                let (own, other_unit) = (&of.unit.unit, &other.unit.unit);
                own.dwo_id.is_some() && other_unit.dwo_id == own.dwo_id && other_unit.line_program.is_some()
            };
            let with_files = match of.unit.unit.line_program {
                Some(_) => of,
                None => units.iter().find(is_skeleton)?,
            };
            lines::path(with_files.unit.with(with_files.dwarf), file).map(Arc::from)
        });
        Some(SourceLine { file: path.clone()?, line })
    }

    /// The struct of a variant, which begins at an offset in the value.
    fn struct_of(&mut self, unit: usize, a_type: Option<Reference>, start: u64) -> Parts {
        let mut parts = Parts::default();
        if let Some((unit, offset)) = a_type.and_then(|to| self.types.units.refer(unit, to))
            && let Some(entry) = self.read(unit, offset)
            && entry.tag == gimli::DW_TAG_structure_type
        {
            self.parts(unit, &entry, &mut parts);
            parts.fields.iter_mut().for_each(|field| field.offset = field.offset.saturating_add(start));
        }
        parts
    }

    fn size(&self, id: TypeId) -> u64 {
        match self.types.named.get(id.0 as usize) {
            Some((_, size)) if *size > 0 => *size,
            _ => 8,
        }
    }

    /// The type behind a pointer; `None` for `void` and functions.
    fn target(&mut self, unit: usize, reference: Option<Reference>, depth: usize) -> Option<TypeId> {
        let target = self.resolve(unit, reference?, depth)?;
        let types = self.types.derived.lock().unwrap_or_else(PoisonError::into_inner);
        Some(target).filter(|target| types.function() != Some(*target))
    }

    /// The type that an entry refers to.
    pub fn type_id(&mut self, unit: usize, reference: Option<Reference>) -> Option<TypeId> {
        self.resolve(unit, reference?, 0)
    }

    /// The type that a variable with a vtable's type describes.
    pub fn containing_type(&mut self, unit: usize, a_type: Option<Reference>) -> Option<TypeId> {
        let (unit, offset) = self.types.units.refer(unit, a_type?)?;
        let entry = self.read(unit, offset)?;
        self.type_id(unit, entry.containing_type)
    }

    /// The type of the entry that a variable completes.
    pub fn type_of_origin(&mut self, unit: usize, origin: Option<Reference>) -> Option<TypeId> {
        let (unit, a_type) = self.along(unit, origin, |entry| entry.a_type)?;
        self.type_id(unit, Some(a_type))
    }

    /// The name and the type of a variable or function, by its entry or those that it completes.
    pub fn variable(&mut self, unit: usize, entry: &Entry<'data>) -> (Arc<str>, Option<TypeId>) {
        let name = entry.name.map(|name| (unit, name));
        let name = match name.or_else(|| self.along(unit, entry.origin, |entry| entry.name)) {
            Some((unit, name)) => self.text(unit, Some(name)),
            None => "".into(),
        };
        let type_id = match entry.a_type {
            Some(_) => self.type_id(unit, entry.a_type),
            None => self.type_of_origin(unit, entry.origin),
        };
        (name, type_id)
    }

    /// The name of the entry that a variable completes.
    pub fn name_of_origin(&mut self, unit: usize, origin: Option<Reference>) -> Arc<str> {
        if let Some((unit, symbol)) = self.along(unit, origin, |entry| entry.linkage_name) {
            return name_of_symbol(&self.text(unit, Some(symbol))).func;
        }
        match self.along(unit, origin, |entry| entry.name) {
            Some((unit, name)) => self.text(unit, Some(name)),
            None => "".into(),
        }
    }

    /// The first entry with an attribute: the one that is completed, or one that this completes in turn. With link-time
    /// optimization, a variable completes a definition in another unit, which completes a declaration.
    fn along<T>(
        &mut self,
        unit: usize,
        origin: Option<Reference>,
        attribute: impl Fn(&Entry<'data>) -> Option<T>,
    ) -> Option<(usize, T)> {
        let (mut unit, mut origin) = (unit, origin);
        for _ in 0..LONGEST_CHAIN {
            let place = self.types.units.refer(unit, origin?)?;
            unit = place.0;
            let entry = self.read(unit, place.1)?;
            if let Some(found) = attribute(&entry) {
                return Some((unit, found));
            }
            origin = entry.origin;
        }
        None
    }

    fn resolve(&mut self, from: usize, reference: Reference, depth: usize) -> Option<TypeId> {
        let (unit, offset) = self.types.units.refer(from, reference)?;
        let ids = &self.types.ids[unit];
        if let Ok(at) = ids.binary_search_by_key(&offset, |(offset, _)| *offset) {
            return Some(ids[at].1);
        }
        if let Some(known) = self.known.get(&(unit, offset)) {
            return *known;
        }
        if depth >= LONGEST_CHAIN {
            return None;
        }
        let found = self.resolve_unnamed(unit, offset, depth + 1);
        if self.known.len() >= MOST_KNOWN {
            self.known.clear();
        }
        self.known.insert((unit, offset), found);
        found
    }

    fn resolve_unnamed(&mut self, unit: usize, offset: usize, depth: usize) -> Option<TypeId> {
        let entry = self.read(unit, offset)?;
        let derived = match entry.tag {
            gimli::DW_TAG_const_type
            | gimli::DW_TAG_volatile_type
            | gimli::DW_TAG_restrict_type
            | gimli::DW_TAG_atomic_type
            | gimli::DW_TAG_immutable_type
            | gimli::DW_TAG_packed_type
            | gimli::DW_TAG_shared_type
            | gimli::DW_TAG_template_alias
            | gimli::DW_TAG_typedef => return self.resolve(unit, entry.a_type?, depth),
            gimli::DW_TAG_pointer_type
            | gimli::DW_TAG_reference_type
            | gimli::DW_TAG_rvalue_reference_type => {
                let size = entry.byte_size.unwrap_or(self.address_size(unit));
                Derived::Pointer { target: self.target(unit, entry.a_type, depth), size }
            }
            gimli::DW_TAG_array_type => return self.array(unit, &entry, depth),
            gimli::DW_TAG_subroutine_type | gimli::DW_TAG_subprogram => Derived::Function,
            _ if entry.signature.is_some() => {
                return self.resolve(unit, Reference::Signature(entry.signature?), depth);
            }
            gimli::DW_TAG_ptr_to_member_type => Derived::Unknown { size: entry.byte_size.unwrap_or(8) },
            _ => Derived::Unknown { size: entry.byte_size.unwrap_or(0) },
        };
        Some(self.types.derived(derived))
    }

    fn array(&mut self, unit: usize, entry: &Entry<'data>, depth: usize) -> Option<TypeId> {
        let mut element = self.resolve(unit, entry.a_type?, depth)?;
        let rust = self.types.units.units[unit].unit.language == Some(gimli::DW_LANG_Rust);
        let mut counts = Vec::new();
        self.children(unit, entry, |_, child, _| {
            if child.tag == gimli::DW_TAG_subrange_type && counts.len() < LONGEST_CHAIN {
                let count =
                    child.count.or(child.upper_bound.map(|last| (last.saturating_add(1)).max(0) as u64));
                counts.push(count.unwrap_or(0));
            }
        });
        if counts.is_empty() {
            counts.push(0);
        }
        for count in counts.into_iter().rev() {
            element = self.types.derived(Derived::Array { element, count, rust });
        }
        Some(element)
    }
}

/// Whether entries with this tag are parts of types.
fn is_part(tag: gimli::DwTag) -> bool {
    matches!(
        tag,
        gimli::DW_TAG_member
            | gimli::DW_TAG_inheritance
            | gimli::DW_TAG_template_type_parameter
            | gimli::DW_TAG_variant_part
            | gimli::DW_TAG_variant
            | gimli::DW_TAG_subrange_type
    )
}

/// The discriminants of a variant. `None` if it is the variant of all others.
fn values(variant: &Entry<'_>, size: u64, signed: bool) -> Option<Vec<RangeInclusive<u128>>> {
    if let Some(value) = &variant.discriminant_value {
        let value = bits(value, size, signed)?;
        return Some(vec![value..=value]);
    }
    let Some(AttributeValue::Block(list)) = &variant.discriminant_list else { return None };
    let (list, mut at) = (list.slice(), 0);
    let mut found = Vec::new();
    let next = |at: &mut usize| {
        let value = if signed {
            let (value, after) = read_signed_leb(list, *at)?;
            *at = after;
            mask(value as u128, size)
        } else {
            let (value, after) = read_leb(list, *at)?;
            *at = after;
            mask(u128::from(value), size)
        };
        Some(value)
    };
    while let Some(kind) = list.get(at) {
        at += 1;
        let low = next(&mut at)?;
        let high = if *kind == gimli::DW_DSC_range.0 { next(&mut at)? } else { low };
        found.push(low..=high);
    }
    Some(found)
}

fn mask(value: u128, size: u64) -> u128 {
    if size >= 16 { value } else { value & ((1 << (8 * size)) - 1) }
}

/// The bits of a constant in a discriminant of `size` bytes.
fn bits(value: &Value<'_>, size: u64, signed: bool) -> Option<u128> {
    let value = match value {
        AttributeValue::Block(bytes) => {
            let mut all = [0; 16];
            let bytes = bytes.slice();
            all.get_mut(..bytes.len())?.copy_from_slice(bytes);
            u128::from_le_bytes(all)
        }
        AttributeValue::Sdata(value) => i128::from(*value).cast_unsigned(),
        value if signed => i128::from(value.sdata_value()?).cast_unsigned(),
        value => u128::from(value.udata_value()?),
    };
    Some(mask(value, size))
}
