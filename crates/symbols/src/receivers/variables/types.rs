//! The types of a unit: what pointers point to, what fields are, and which types are parts of others.
//!
//! Sources: DWARF 5 §5 (types).

use super::{Candidate, DEEPEST, Entry, Reader, UnitVariables};
use crate::block_flow::Index;
use gimli::{AttributeValue, UnitOffset};

/// Whether a child of a struct or class is a part of its values.
fn is_field(child: &gimli::DebuggingInformationEntry<Reader<'_>>) -> bool {
    matches!(child.tag(), gimli::DW_TAG_member | gimli::DW_TAG_inheritance)
}

impl<'data> UnitVariables<'_, 'data, '_> {
    /// The class with a name, if there is one only.
    pub fn class(&self, name: &str) -> Option<Candidate> {
        let mut named = self.classes.iter().filter(|at| self.name(**at, 0).as_deref() == Some(name));
        let only = named.next().filter(|_| named.next().is_none())?;
        self.candidate(*only, false)
    }

    /// Whether a value of a type begins with one of another, which is as large.
    pub(super) fn begins_with(&self, whole: &Candidate, part: &Candidate) -> bool {
        let mut at = Some(whole.entry);
        if whole.size != part.size {
            return false;
        }
        for _ in 0..DEEPEST {
            let first = at.and_then(|at| self.first_member(at, part.size));
            at = first.and_then(|at| Some(self.unqualified(at, true)?.offset()));
            match at {
                Some(at) if at == part.entry => return true,
                Some(_) => {}
                None => return false,
            }
        }
        false
    }

    /// Whether a struct begins with another one, or has all its fields at their places, by name and type, and more.
    pub(super) fn extends(&self, whole: UnitOffset, part: UnitOffset) -> bool {
        let part_fields = self.fields(part);
        let mut at = whole;
        for _ in 0..DEEPEST {
            let fields = self.fields(at);
            let repeats = |field| fields.contains(field);
            if !part_fields.is_empty() && part_fields.len() < fields.len() && part_fields.iter().all(repeats)
            {
                return true;
            }
            match fields.iter().find(|(start, ..)| *start == 0) {
                Some((.., first)) if *first == part => return true,
                Some((.., first)) => at = *first,
                None => return false,
            }
        }
        false
    }

    /// Offset, name and type of each field of a struct. Empty if not all are known.
    fn fields(&self, at: UnitOffset) -> Vec<(u64, String, UnitOffset)> {
        let field = |member: &Entry<'data>| {
            let start = member.attr_value(gimli::DW_AT_data_member_location)?.udata_value()?;
            let name = self.unit.attr_string(member.attr_value(gimli::DW_AT_name)?).ok()?;
            let type_at = self.unqualified(self.type_of(member)?, true)?.offset();
            Some((start, name.to_string_lossy().into_owned(), type_at))
        };
        let (mut fields, mut is_complete) = (Vec::new(), true);
        self.find_child(at, |member| {
            if is_field(member) {
                let field = field(member);
                is_complete &= field.is_some();
                fields.extend(field);
            }
            None::<()>
        });
        if is_complete { fields } else { Vec::new() }
    }

    /// The type of the member at the start of a struct that is as large as the struct.
    pub(super) fn first_member(&self, at: UnitOffset, size: u64) -> Option<UnitOffset> {
        self.find_child(at, |member| {
            let type_at = is_field(member).then(|| self.type_of(member)).flatten()?;
            (self.size(type_at, 0) == Some(size)).then_some(type_at)
        })
    }

    /// What a function gives for the first child of an entry for which it gives something.
    fn find_child<T>(&self, at: UnitOffset, mut of: impl FnMut(&Entry<'data>) -> Option<T>) -> Option<T> {
        let mut tree = self.unit.entries_tree(Some(at)).ok()?;
        let mut children = tree.root().ok()?.children();
        while let Ok(Some(child)) = children.next() {
            if let Some(found) = of(child.entry()) {
                return Some(found);
            }
        }
        None
    }

    /// The type of a pointer in an element of an array, at an offset from where an index is counted. `is_pointed_to`: a pointer leads
    /// to the type, which may be that of the first of many.
    ///
    /// An index may begin at any number: only what is at the start of an array is certain to be meant.
    pub(super) fn element(
        &self,
        at: UnitOffset,
        offset: i64,
        (index, is_pointed_to): (Index, bool),
    ) -> Option<UnitOffset> {
        let entry = self.unqualified(at, true)?;
        match entry.tag() {
            gimli::DW_TAG_pointer_type => (is_pointed_to && offset % 8 == 0).then_some(at),
            gimli::DW_TAG_array_type => {
                let element = self.type_of(&entry)?;
                match self.unqualified(element, true)?.tag() {
                    gimli::DW_TAG_pointer_type => (offset == 0).then_some(element),
                    _ if index == Index::Several => None,
                    gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type => {
                        let size = i64::try_from(self.size(element, 0)?).ok()?;
                        let is_first = (0..size).contains(&offset) && !self.has_array(element, 0);
                        if is_first { self.member(element, offset, 0) } else { None }
                    }
                    _ => None,
                }
            }
            _ if index == Index::Several => None,
            gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type => {
                let size = i64::try_from(self.size(at, 0)?).ok().filter(|size| *size > 0)?;
                match self.has_array(at, 0) {
                    true => self.array_at(at, offset),
                    false if is_pointed_to => self.member(at, offset.rem_euclid(size), 0),
                    false => None,
                }
            }
            _ => None,
        }
    }

    /// The type of the elements of an array of pointers that is a field of a struct at an offset.
    pub(super) fn array_at(&self, at: UnitOffset, offset: i64) -> Option<UnitOffset> {
        let entry = self.unqualified(at, true)?;
        let field = self.find_child(entry.offset(), |member| {
            let start =
                member.attr_value(gimli::DW_AT_data_member_location).and_then(|value| value.udata_value());
            let is_it = member.tag() == gimli::DW_TAG_member && start == u64::try_from(offset).ok();
            is_it.then(|| self.type_of(member))
        });
        let array = self.unqualified(field??, true)?;
        let is_array = array.tag() == gimli::DW_TAG_array_type;
        self.type_of(&array).filter(|_| is_array)
    }

    /// Whether a struct has an array in it.
    pub(super) fn has_array(&self, at: UnitOffset, depth: usize) -> bool {
        let Some(entry) = self.unqualified(at, true) else { return true };
        match entry.tag() {
            gimli::DW_TAG_array_type | gimli::DW_TAG_union_type => return true,
            gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type => {}
            _ => return false,
        }
        let has_array = |member: &Entry<'data>| {
            depth > 8 || self.type_of(member).is_none_or(|at| self.has_array(at, depth + 1))
        };
        self.find_child(entry.offset(), |member| (is_field(member) && has_array(member)).then_some(()))
            .is_some()
    }

    pub(super) fn type_of(&self, entry: &Entry<'data>) -> Option<UnitOffset> {
        let mut at = None;
        for _ in 0..DEEPEST {
            let known;
            let entry = match at {
                None => entry,
                Some(at) => {
                    known = self.unit.entry(at).ok()?;
                    &known
                }
            };
            if let Some(value) = entry.attr_value(gimli::DW_AT_type) {
                return self.reference(value);
            }
            let origin = entry
                .attr_value(gimli::DW_AT_abstract_origin)
                .or_else(|| entry.attr_value(gimli::DW_AT_specification))?;
            at = Some(self.reference(origin)?);
        }
        None
    }

    pub(super) fn reference(&self, value: AttributeValue<Reader<'data>>) -> Option<UnitOffset> {
        match value {
            AttributeValue::UnitRef(offset) => Some(offset),
            AttributeValue::DebugInfoRef(offset) => offset.to_unit_offset(&self.unit.header),
            _ => None,
        }
    }

    /// The type behind qualifiers, and behind names if `through_names`.
    pub(super) fn unqualified(&self, mut at: UnitOffset, through_names: bool) -> Option<Entry<'data>> {
        for _ in 0..DEEPEST {
            let entry = self.unit.entry(at).ok()?;
            match entry.tag() {
                gimli::DW_TAG_const_type
                | gimli::DW_TAG_volatile_type
                | gimli::DW_TAG_restrict_type
                | gimli::DW_TAG_atomic_type => {}
                gimli::DW_TAG_typedef if through_names => {}
                _ => return Some(entry),
            }
            at = self.reference(entry.attr_value(gimli::DW_AT_type)?)?;
        }
        None
    }

    /// What a pointer points to; `None` for `void`.
    pub(super) fn pointee(&self, at: UnitOffset) -> Option<UnitOffset> {
        let entry = self.unqualified(at, true)?;
        if entry.tag() != gimli::DW_TAG_pointer_type {
            return None;
        }
        self.reference(entry.attr_value(gimli::DW_AT_type)?)
    }

    /// The type of the field of a struct at an offset.
    pub(super) fn member(&self, at: UnitOffset, offset: i64, depth: usize) -> Option<UnitOffset> {
        let entry = self.unqualified(at, true)?;
        let is_struct = matches!(entry.tag(), gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type);
        if entry.tag() == gimli::DW_TAG_array_type && depth <= 8 {
            let element = self.type_of(&entry)?;
            let size = i64::try_from(self.size(element, 0)?).ok().filter(|size| *size > 0)?;
            return if offset < 0 { None } else { self.member(element, offset % size, depth + 1) };
        }
        if !is_struct || depth > 8 {
            // A pointer to a pointer: what is stored is of the pointer's own type.
            return (offset == 0 && entry.tag() == gimli::DW_TAG_pointer_type).then_some(at);
        }
        let mut tree = self.unit.entries_tree(Some(entry.offset())).ok()?;
        let mut members = tree.root().ok()?.children();
        while let Ok(Some(member)) = members.next() {
            let member = member.entry();
            if !is_field(member) {
                continue;
            }
            let start = match member.attr_value(gimli::DW_AT_data_member_location) {
                Some(value) => value.udata_value()? as i64,
                None => continue,
            };
            let type_at = self.type_of(member)?;
            let size = self.size(type_at, 0).unwrap_or(0) as i64;
            // An empty base may be where a field is.
            if (start..start.saturating_add(size)).contains(&offset)
                && let Some(found) = self.member(type_at, offset - start, depth + 1)
            {
                return Some(found);
            }
        }
        None
    }

    pub(super) fn size(&self, at: UnitOffset, depth: usize) -> Option<u64> {
        let entry = self.unqualified(at, true)?;
        match entry.tag() {
            gimli::DW_TAG_pointer_type | gimli::DW_TAG_reference_type => Some(8),
            gimli::DW_TAG_array_type if depth < DEEPEST => {
                let element = self.size(self.type_of(&entry)?, depth + 1)?;
                element.checked_mul(self.elements(entry.offset())?)
            }
            _ => entry.attr_value(gimli::DW_AT_byte_size)?.udata_value(),
        }
    }

    /// The number of elements of an array.
    pub(super) fn elements(&self, at: UnitOffset) -> Option<u64> {
        let mut tree = self.unit.entries_tree(Some(at)).ok()?;
        let mut ranges = tree.root().ok()?.children();
        let mut count = 1u64;
        while let Ok(Some(range)) = ranges.next() {
            let range = range.entry();
            let number = match range.attr_value(gimli::DW_AT_count) {
                Some(count) => count.udata_value()?,
                None => range.attr_value(gimli::DW_AT_upper_bound)?.udata_value()?.checked_add(1)?,
            };
            count = count.checked_mul(number)?;
        }
        Some(count)
    }

    /// The offset of the last field of a struct, if that is an array whose length its declaration does not say.
    pub(super) fn tail(&self, at: UnitOffset) -> Option<u64> {
        let mut last = None;
        self.find_child(self.unqualified(at, true)?.offset(), |member| {
            if member.tag() == gimli::DW_TAG_member {
                let start = member.attr_value(gimli::DW_AT_data_member_location);
                last = start.and_then(|start| start.udata_value()).zip(self.type_of(member));
            }
            None::<()>
        });
        let (start, type_at) = last?;
        let last = self.unqualified(type_at, true)?;
        let is_open = last.tag() == gimli::DW_TAG_array_type
            && self.elements(last.offset()).is_none_or(|count| count <= 1);
        is_open.then_some(start)
    }

    /// Whether a class has a vtable, by itself or by one that it is derived from.
    pub(super) fn is_polymorphic(&self, at: UnitOffset, depth: usize) -> bool {
        let Some(entry) = self.unqualified(at, true) else { return false };
        let is_virtual = |child: &Entry<'data>| child.attr_value(gimli::DW_AT_virtuality).is_some();
        let has_vtable = |base| depth < DEEPEST && self.is_polymorphic(base, depth + 1);
        let is_it = |child: &Entry<'data>| is_virtual(child) || self.base(child).is_some_and(has_vtable);
        self.find_child(entry.offset(), |child| is_it(child).then_some(())).is_some()
    }

    /// The base class, if a child of a class is one.
    fn base(&self, child: &Entry<'data>) -> Option<UnitOffset> {
        (child.tag() == gimli::DW_TAG_inheritance).then(|| self.type_of(child)).flatten()
    }

    pub(super) fn candidate(&self, at: UnitOffset, inlined: bool) -> Option<Candidate> {
        Some(Candidate {
            name: self.name(at, 0)?,
            size: self.size(at, 0).filter(|size| *size > 0)?,
            tail: self.tail(at),
            is_scalar: self.is_scalar(at, 0),
            is_polymorphic: self.is_polymorphic(at, 0),
            inlined,
            at_once: false,
            extends: Vec::new(),
            entry: self.unqualified(at, true)?.offset(),
        })
    }

    /// Whether a value is a number or a pointer, or an array of them.
    pub(super) fn is_scalar(&self, at: UnitOffset, depth: usize) -> bool {
        let Some(entry) = self.unqualified(at, true) else { return false };
        match entry.tag() {
            gimli::DW_TAG_base_type | gimli::DW_TAG_pointer_type => true,
            gimli::DW_TAG_array_type if depth < DEEPEST => {
                self.type_of(&entry).is_some_and(|at| self.is_scalar(at, depth + 1))
            }
            _ => false,
        }
    }

    /// The class with a name that begins with its path, if there is one only.
    pub(super) fn class_by_path(&self, name: &str) -> Option<UnitOffset> {
        let is_it = |at: &&UnitOffset| {
            let own = self.name(**at, 0);
            let before = own.as_ref().and_then(|own| name.strip_suffix(own.as_str()));
            before.is_some_and(|path| path.is_empty() || path.ends_with("::"))
        };
        let mut named = self.classes.iter().filter(is_it);
        named.next().copied().filter(|_| named.next().is_none())
    }

    /// The size of a class by its name with the path.
    pub fn size_of_class(&self, name: &str) -> Option<u64> {
        self.size(self.class_by_path(name)?, 0)
    }

    /// The one of some classes that is derived from all others, by their names with paths.
    pub fn most_derived(&self, names: &[String]) -> Option<usize> {
        let classes: Vec<UnitOffset> =
            names.iter().map(|name| self.class_by_path(name)).collect::<Option<_>>()?;
        classes.iter().position(|at| classes.iter().all(|base| base == at || self.is_derived(*at, *base, 0)))
    }

    /// Whether a class is derived from another one.
    fn is_derived(&self, at: UnitOffset, from: UnitOffset, depth: usize) -> bool {
        let Some(entry) = self.unqualified(at, true) else { return false };
        let is_it = |base| {
            let base = self.unqualified(base, true)?.offset();
            (base == from || depth < DEEPEST && self.is_derived(base, from, depth + 1)).then_some(())
        };
        self.find_child(entry.offset(), |child| self.base(child).and_then(is_it)).is_some()
    }

    pub(super) fn name(&self, at: UnitOffset, depth: usize) -> Option<String> {
        let entry = self.unqualified(at, false)?;
        if entry.tag() == gimli::DW_TAG_pointer_type && depth < DEEPEST {
            return Some(match entry.attr_value(gimli::DW_AT_type) {
                Some(value) => format!("{}*", self.name(self.reference(value)?, depth + 1)?),
                None => "void*".to_owned(),
            });
        }
        if entry.tag() == gimli::DW_TAG_array_type && depth < DEEPEST {
            let element = self.name(self.type_of(&entry)?, depth + 1)?;
            return Some(format!("{element}[{}]", self.elements(entry.offset())?));
        }
        let name = self.unit.attr_string(entry.attr_value(gimli::DW_AT_name)?).ok()?;
        Some(name.to_string_lossy().into_owned())
    }
}
