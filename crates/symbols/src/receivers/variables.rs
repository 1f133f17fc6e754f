//! Which variables and fields are where the block is, and what they point to, by debug information.
//!
//! Sources: DWARF 5 §2.6 (locations), §3.3 (functions), §4.1 (variables), §5 (types).

use super::uses::{Base, Held, Store, Uses};
use gimli::{
    AttributeValue, DebuggingInformationEntry, Dwarf, EndianSlice, Expression, LittleEndian, Operation, Unit,
    UnitOffset, UnitRef,
};
use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

type Reader<'data> = EndianSlice<'data, LittleEndian>;
type Entry<'data> = DebuggingInformationEntry<Reader<'data>>;

/// Most types between a variable and what it points to.
const DEEPEST: usize = 32;
/// DWARF's numbers of registers, by the processor's numbers.
const DWARF_NUMBERS: [u16; 16] = [0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15];

/// A type that a pointer to the block has.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Candidate {
    pub name: String,
    pub size: u64,
    /// Its last field is an array that may be longer.
    pub has_tail: bool,
    /// It is a number, or a pointer.
    pub is_scalar: bool,
    /// It has virtual functions, so the value may be of a class that is derived from it.
    pub is_polymorphic: bool,
    /// It is that of a parameter of a function that is inlined.
    pub inlined: bool,
}

/// A variable in a function that is a pointer with a type.
struct Variable<'data> {
    /// Where it is, by the addresses of code.
    parts: Vec<(Range<u64>, Expression<Reader<'data>>)>,
    pointee: UnitOffset,
    inlined: bool,
}

/// The variables of a function, and the base of its frame.
type Variables<'data> = (Vec<Variable<'data>>, FrameBase<'data>);

/// The functions and static variables of one unit.
pub(super) struct UnitVariables<'a, 'data> {
    unit: UnitRef<'a, Reader<'data>>,
    /// By the addresses of their code.
    functions: Vec<(Range<u64>, UnitOffset)>,
    /// Address and type.
    statics: Vec<(u64, UnitOffset)>,
    /// Structs and classes that are declared in full.
    classes: Vec<UnitOffset>,
    /// The variables of the function that was asked for last.
    last: RefCell<Option<(UnitOffset, Rc<Variables<'data>>)>>,
}

impl<'a, 'data> UnitVariables<'a, 'data> {
    pub fn new(dwarf: &'a Dwarf<Reader<'data>>, unit: &'a Unit<Reader<'data>>) -> Self {
        let unit = UnitRef::new(dwarf, unit);
        let mut found = UnitVariables {
            unit,
            functions: Vec::new(),
            statics: Vec::new(),
            classes: Vec::new(),
            last: RefCell::default(),
        };
        let _ = found.read();
        found
    }

    fn read(&mut self) -> gimli::Result<()> {
        let mut entries = self.unit.entries();
        while let Some(entry) = entries.next_dfs()? {
            match entry.tag() {
                gimli::DW_TAG_subprogram => {
                    let mut ranges = self.unit.die_ranges(entry)?;
                    while let Ok(Some(range)) = ranges.next() {
                        self.functions.push((range.begin..range.end, entry.offset()));
                    }
                }
                gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type
                    if entry.attr_value(gimli::DW_AT_byte_size).is_some() =>
                {
                    self.classes.push(entry.offset());
                }
                gimli::DW_TAG_variable => {
                    let place = self.static_place(entry).zip(self.type_of(entry));
                    self.statics.extend(place);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The address of a static variable.
    fn static_place(&self, entry: &Entry<'data>) -> Option<u64> {
        let AttributeValue::Exprloc(location) = entry.attr_value(gimli::DW_AT_location)? else { return None };
        match location.operations(self.unit.encoding()).next().ok()?? {
            Operation::Address { address } => Some(address),
            Operation::AddressIndex { index } => self.unit.address(index).ok(),
            _ => None,
        }
    }

    /// The class with a name, if there is one only.
    pub fn class(&self, name: &str) -> Option<Candidate> {
        let mut named = self.classes.iter().filter(|at| self.name(**at, 0).as_deref() == Some(name));
        let only = named.next().filter(|_| named.next().is_none())?;
        self.candidate(*only, false)
    }

    /// The types of the pointers to the block.
    pub fn candidates(&self, uses: &Uses) -> Option<Vec<Candidate>> {
        let function = self.function(uses.function.start)?;
        let known = self.variables(function)?;
        let (variables, frame_base) = &*known;
        let mut found = Vec::new();
        for variable in variables {
            let is_here = uses.held.iter().any(|held| {
                let place = self.place(variable, frame_base, held.pc, (held.rsp, held.rbp));
                place.is_some_and(|place| holds(held, place))
            });
            if is_here {
                found.extend(self.candidate(variable.pointee, variable.inlined));
            }
        }
        for store in &uses.stores {
            found.extend(self.stored(store, variables, frame_base));
        }
        if uses.returned && found.is_empty() {
            let returned = self.type_of(&self.unit.entry(function).ok()?);
            let pointee = returned.and_then(|at| self.pointee(at));
            found.extend(pointee.and_then(|at| self.candidate(at, false)));
        }
        found.sort();
        found.dedup();
        Some(found)
    }

    /// The type that a store of the address goes to.
    fn stored(
        &self,
        store: &Store,
        variables: &[Variable<'data>],
        frame_base: &FrameBase<'data>,
    ) -> Option<Candidate> {
        let mut types = Vec::new();
        for base in &store.bases {
            let base = match *base {
                Base::Static(address) => {
                    let type_at = self.static_at(address)?;
                    return self.candidate(self.pointee(type_at)?, false);
                }
                Base::Pointer(address) => {
                    let pointee = self.static_at(address).and_then(|type_at| self.pointee(type_at));
                    types.extend(pointee.and_then(|at| self.member(at, store.displacement, 0)));
                    continue;
                }
                Base::Register(number) => Place::Register(number),
                Base::Word(at) => Place::Word(at),
            };
            let here = variables.iter().filter(|variable| {
                self.place(variable, frame_base, store.pc, (store.rsp, store.rbp)) == Some(base)
            });
            types.extend(here.filter_map(|variable| self.member(variable.pointee, store.displacement, 0)));
        }
        let mut types: Vec<UnitOffset> =
            types.into_iter().filter_map(|member| self.pointee(member)).collect();
        types.sort();
        types.dedup();
        match types[..] {
            [only] => self.candidate(only, false),
            _ => None,
        }
    }

    /// The entry of the function that begins at an address.
    fn function(&self, start: u64) -> Option<UnitOffset> {
        self.functions.iter().find(|(range, _)| range.contains(&start)).map(|(_, offset)| *offset)
    }

    /// The variables of a function, with those of its blocks and of functions inlined into it.
    fn variables(&self, function: UnitOffset) -> Option<Rc<Variables<'data>>> {
        if let Some((_, known)) = self.last.borrow().as_ref().filter(|(known, _)| *known == function) {
            return Some(Rc::clone(known));
        }
        let mut tree = self.unit.entries_tree(Some(function)).ok()?;
        let root = tree.root().ok()?;
        let frame_base = FrameBase(root.entry().attr_value(gimli::DW_AT_frame_base));
        let mut found = Vec::new();
        self.children(root, false, 0, &mut found);
        let found = Rc::new((found, frame_base));
        *self.last.borrow_mut() = Some((function, Rc::clone(&found)));
        Some(found)
    }

    fn children(
        &self,
        node: gimli::EntriesTreeNode<'_, '_, Reader<'data>>,
        inlined: bool,
        depth: usize,
        found: &mut Vec<Variable<'data>>,
    ) {
        let mut children = node.children();
        while let Ok(Some(child)) = children.next() {
            let entry = child.entry();
            match entry.tag() {
                gimli::DW_TAG_variable | gimli::DW_TAG_formal_parameter => {
                    let location = entry.attr_value(gimli::DW_AT_location);
                    let pointee = || self.pointee(self.type_of(entry)?);
                    if let Some(location) = location
                        && let Some(pointee) = pointee()
                    {
                        found.push(Variable { parts: self.parts(location), pointee, inlined });
                    }
                }
                gimli::DW_TAG_lexical_block if depth < 256 => {
                    self.children(child, inlined, depth + 1, found);
                }
                gimli::DW_TAG_inlined_subroutine if depth < 256 => {
                    self.children(child, true, depth + 1, found);
                }
                _ => {}
            }
        }
    }

    /// Where a variable is. What follows a part that cannot be read is left out.
    fn parts(&self, location: AttributeValue<Reader<'data>>) -> Vec<(Range<u64>, Expression<Reader<'data>>)> {
        if let AttributeValue::Exprloc(expression) = location {
            return vec![(0..u64::MAX, expression)];
        }
        let mut parts = Vec::new();
        if let Ok(Some(mut list)) = self.unit.attr_locations(location) {
            while let Ok(Some(part)) = list.next() {
                parts.push((part.range.begin..part.range.end, part.data));
            }
        }
        parts
    }

    /// Where a variable is at an address of code.
    fn place(
        &self,
        variable: &Variable<'data>,
        frame_base: &FrameBase<'data>,
        pc: u64,
        registers: (Option<i64>, Option<i64>),
    ) -> Option<Place> {
        let (_, expression) = variable.parts.iter().find(|(range, _)| range.contains(&pc))?;
        let mut operations = expression.operations(self.unit.encoding());
        let first = operations.next().ok()??;
        let place = match first {
            Operation::Register { register } => Place::Register(number(register.0)?),
            Operation::FrameOffset { offset } => {
                Place::Word(frame_base.at(self.unit.encoding(), registers)?.checked_add(offset)?)
            }
            Operation::RegisterOffset { register, offset, .. } => {
                Place::Word(base(register.0, registers)?.checked_add(offset)?)
            }
            _ => return None,
        };
        operations.next().ok()?.is_none().then_some(place)
    }

    fn type_of(&self, entry: &Entry<'data>) -> Option<UnitOffset> {
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

    fn reference(&self, value: AttributeValue<Reader<'data>>) -> Option<UnitOffset> {
        match value {
            AttributeValue::UnitRef(offset) => Some(offset),
            AttributeValue::DebugInfoRef(offset) => offset.to_unit_offset(&self.unit.header),
            _ => None,
        }
    }

    /// The type behind qualifiers, and behind names if `through_names`.
    fn unqualified(&self, mut at: UnitOffset, through_names: bool) -> Option<Entry<'data>> {
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
    fn pointee(&self, at: UnitOffset) -> Option<UnitOffset> {
        let entry = self.unqualified(at, true)?;
        if entry.tag() != gimli::DW_TAG_pointer_type {
            return None;
        }
        self.reference(entry.attr_value(gimli::DW_AT_type)?)
    }

    /// The type of the field of a struct at an offset.
    fn member(&self, at: UnitOffset, offset: i64, depth: usize) -> Option<UnitOffset> {
        let entry = self.unqualified(at, true)?;
        let is_struct = matches!(entry.tag(), gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type);
        if !is_struct || depth > 8 {
            // A pointer to a pointer: what is stored is of the pointer's own type.
            return (offset == 0 && entry.tag() == gimli::DW_TAG_pointer_type).then_some(at);
        }
        let mut tree = self.unit.entries_tree(Some(entry.offset())).ok()?;
        let mut members = tree.root().ok()?.children();
        while let Ok(Some(member)) = members.next() {
            let member = member.entry();
            if !matches!(member.tag(), gimli::DW_TAG_member | gimli::DW_TAG_inheritance) {
                continue;
            }
            let start = match member.attr_value(gimli::DW_AT_data_member_location) {
                Some(value) => value.udata_value()? as i64,
                None => continue,
            };
            let type_at = self.type_of(member)?;
            let size = self.size(type_at, 0).unwrap_or(0) as i64;
            if (start..start.saturating_add(size)).contains(&offset) {
                return self.member(type_at, offset - start, depth + 1);
            }
        }
        None
    }

    fn size(&self, at: UnitOffset, depth: usize) -> Option<u64> {
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
    fn elements(&self, at: UnitOffset) -> Option<u64> {
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

    /// Whether the last field of a struct is an array whose length its declaration does not say.
    fn has_tail(&self, at: UnitOffset) -> bool {
        let last = || {
            let entry = self.unqualified(at, true)?;
            let mut tree = self.unit.entries_tree(Some(entry.offset())).ok()?;
            let mut members = tree.root().ok()?.children();
            let mut last = None;
            while let Ok(Some(member)) = members.next() {
                if member.entry().tag() == gimli::DW_TAG_member {
                    last = self.type_of(member.entry());
                }
            }
            self.unqualified(last?, true)
        };
        last().is_some_and(|last| {
            last.tag() == gimli::DW_TAG_array_type
                && self.elements(last.offset()).is_none_or(|count| count <= 1)
        })
    }

    /// Whether a class has a vtable, by itself or by one that it is derived from.
    fn is_polymorphic(&self, at: UnitOffset, depth: usize) -> bool {
        let has_vtable = || {
            let entry = self.unqualified(at, true)?;
            let mut tree = self.unit.entries_tree(Some(entry.offset())).ok()?;
            let mut children = tree.root().ok()?.children();
            while let Some(child) = children.next().ok()? {
                let child = child.entry();
                let is_virtual = child.attr_value(gimli::DW_AT_virtuality).is_some();
                let is_base = child.tag() == gimli::DW_TAG_inheritance;
                if is_virtual
                    || is_base && depth < DEEPEST && self.is_polymorphic(self.type_of(child)?, depth + 1)
                {
                    return Some(true);
                }
            }
            Some(false)
        };
        has_vtable().unwrap_or(false)
    }

    fn candidate(&self, at: UnitOffset, inlined: bool) -> Option<Candidate> {
        Some(Candidate {
            name: self.name(at, 0)?,
            size: self.size(at, 0).filter(|size| *size > 0)?,
            has_tail: self.has_tail(at),
            is_scalar: self.unqualified(at, true).is_some_and(|entry| {
                let tag = entry.tag();
                tag == gimli::DW_TAG_base_type || tag == gimli::DW_TAG_pointer_type
            }),
            is_polymorphic: self.is_polymorphic(at, 0),
            inlined,
        })
    }

    fn name(&self, at: UnitOffset, depth: usize) -> Option<String> {
        let entry = self.unqualified(at, false)?;
        if entry.tag() == gimli::DW_TAG_pointer_type && depth < DEEPEST {
            return Some(match entry.attr_value(gimli::DW_AT_type) {
                Some(value) => format!("{}*", self.name(self.reference(value)?, depth + 1)?),
                None => "void*".to_owned(),
            });
        }
        let name = self.unit.attr_string(entry.attr_value(gimli::DW_AT_name)?).ok()?;
        Some(name.to_string_lossy().into_owned())
    }

    /// The type of the static variable at an address, or of its field there.
    fn static_at(&self, address: u64) -> Option<UnitOffset> {
        self.statics.iter().find_map(|(start, type_at)| {
            let distance = address.checked_sub(*start)?;
            (distance < self.size(*type_at, 0)?).then_some(())?;
            self.member(*type_at, i64::try_from(distance).ok()?, 0)
        })
    }
}

/// Where a value is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In a register, by the processor's number.
    Register(usize),
    /// On the stack, by the distance from the return address.
    Word(i64),
}

fn holds(held: &Held, place: Place) -> bool {
    match place {
        Place::Register(number) => held.registers & 1 << number != 0,
        Place::Word(at) => held.words.contains(&at),
    }
}

/// The base to which addresses of variables are relative.
struct FrameBase<'data>(Option<AttributeValue<Reader<'data>>>);

impl FrameBase<'_> {
    fn at(&self, encoding: gimli::Encoding, registers: (Option<i64>, Option<i64>)) -> Option<i64> {
        let Some(AttributeValue::Exprloc(expression)) = self.0 else { return None };
        match expression.operations(encoding).next().ok()?? {
            // The stack pointer before the call, above the return address.
            Operation::CallFrameCFA => Some(8),
            Operation::Register { register } => base(register.0, registers),
            Operation::RegisterOffset { register, offset, .. } => {
                base(register.0, registers)?.checked_add(offset)
            }
            _ => None,
        }
    }
}

/// What the frame or stack pointer holds.
fn base(register: u16, (rsp, rbp): (Option<i64>, Option<i64>)) -> Option<i64> {
    match register {
        6 => rbp,
        7 => rsp,
        _ => None,
    }
}

/// The processor's number of a register.
fn number(dwarf: u16) -> Option<usize> {
    DWARF_NUMBERS.iter().position(|number| *number == dwarf)
}
