//! Which variables and fields are where the block is, and what they point to, by debug information.
//!
//! Sources: DWARF 5 §2.6 (locations), §3.3 (functions), §4.1 (variables), §5 (types).

mod places;
mod types;

use super::uses::{Kept, StackRegisters, Store, Uses};
use crate::block_flow::{Index, Path, Root, Target};
use crate::module_code::ModuleCode;
use foldhash::HashMap;
use gimli::{
    AttributeValue, DebuggingInformationEntry, Dwarf, EndianSlice, Expression, LittleEndian, Operation, Unit,
    UnitOffset, UnitRef,
};
use places::{FrameBase, Place};
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
    /// Bytes before the last field, if that is an array that may be longer or shorter than its declaration says.
    pub tail: Option<u64>,
    /// It is a number, or a pointer.
    pub is_scalar: bool,
    /// It has virtual functions, so the value may be of a class that is derived from it.
    pub is_polymorphic: bool,
    /// It is that of a variable of a function that is inlined, or of a parameter of one that is called.
    pub inlined: bool,
    /// A variable has the pointer before the code behind the call branches.
    pub at_once: bool,
    /// Other candidates with which its values begin: a struct may repeat the fields of another one.
    pub extends: Vec<UnitOffset>,
    /// The entry of the type behind its names.
    pub entry: UnitOffset,
}

/// A variable in a function that may be or have a pointer with a type.
struct Variable<'data> {
    /// Where it is, by the addresses of code.
    parts: Vec<(Range<u64>, Expression<Reader<'data>>)>,
    /// The addresses of the code of its scope; `None`: the whole function.
    scope: Option<Rc<Vec<Range<u64>>>>,
    type_at: UnitOffset,
    size: u64,
    inlined: bool,
}

/// What the results of calls point to, by the addresses behind the calls.
pub(super) type Results = HashMap<u64, UnitOffset>;

/// The variables of a function, and the base of its frame.
type Variables<'data> = (Vec<Variable<'data>>, FrameBase<'data>);

/// The functions and static variables of one unit.
pub(super) struct UnitVariables<'a, 'data, 'code> {
    unit: UnitRef<'a, Reader<'data>>,
    /// By the addresses of their code.
    functions: Vec<(Range<u64>, UnitOffset)>,
    code: &'a ModuleCode<'code>,
    /// Functions with a symbol.
    declared_functions: HashMap<&'data [u8], UnitOffset>,
    /// Address and type.
    statics: Vec<(u64, UnitOffset)>,
    /// Types of variables with a symbol, also of those that other units define.
    declared_variables: HashMap<&'data [u8], UnitOffset>,
    /// Structs and classes that are declared in full.
    classes: Vec<UnitOffset>,
    /// The variables of the function that was asked for last.
    last: RefCell<Option<(UnitOffset, Rc<Variables<'data>>)>>,
}

impl<'a, 'data, 'code> UnitVariables<'a, 'data, 'code> {
    pub fn new(
        dwarf: &'a Dwarf<Reader<'data>>,
        unit: &'a Unit<Reader<'data>>,
        code: &'a ModuleCode<'code>,
    ) -> Self {
        let unit = UnitRef::new(dwarf, unit);
        let mut found = UnitVariables {
            unit,
            code,
            functions: Vec::new(),
            declared_functions: HashMap::default(),
            statics: Vec::new(),
            declared_variables: HashMap::default(),
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
                    if let Some(symbol) = self.symbol(entry) {
                        self.declared_functions.insert(symbol, entry.offset());
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
                    let declared = self.symbol(entry).zip(self.type_of(entry));
                    self.declared_variables.extend(declared);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The symbol of a function or variable that other units know.
    fn symbol(&self, entry: &Entry<'data>) -> Option<&'data [u8]> {
        entry.attr_value(gimli::DW_AT_external)?;
        let name =
            entry.attr_value(gimli::DW_AT_linkage_name).or_else(|| entry.attr_value(gimli::DW_AT_name))?;
        Some(self.unit.attr_string(name).ok()?.slice())
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

    /// The types of the pointers to the block.
    ///
    /// `results`: what the results of other calls point to.
    pub fn candidates(&self, uses: &Uses, results: &Results) -> Option<Vec<Candidate>> {
        let function = self.function(uses.function.start)?;
        let known = self.variables(function)?;
        let (variables, frame_base) = &*known;
        let mut found = self.by_variables(uses, &known, 0);
        for store in &uses.stores {
            found.extend(self.stored(store, variables, frame_base, results));
        }
        if uses.returned && found.is_empty() {
            let returned = self.type_of(&self.unit.entry(function).ok()?);
            let pointee = returned.and_then(|at| self.pointee(at));
            found.extend(pointee.and_then(|at| self.candidate(at, false)));
        }
        if found.is_empty() {
            found.extend(uses.passed.iter().filter_map(|(target, number)| self.parameter(*target, *number)));
        }
        found.sort();
        found.dedup();
        // The first field of a value has its address, and a value of a type may have several names.
        let is_part = |part: &Candidate| {
            found.iter().any(|whole| whole.entry != part.entry && self.begins_with(whole, part))
        };
        let parts: Vec<bool> = found.iter().map(is_part).collect();
        let mut parts = parts.into_iter();
        found.retain(|_| !parts.next().unwrap_or(false));
        let at_once: Vec<UnitOffset> =
            found.iter().filter(|candidate| candidate.at_once).map(|candidate| candidate.entry).collect();
        let mut entries = Vec::new();
        found.retain_mut(|candidate| {
            candidate.at_once = at_once.contains(&candidate.entry);
            let is_new = candidate.is_scalar || !entries.contains(&candidate.entry);
            entries.push(candidate.entry);
            is_new
        });
        for candidate in &mut found {
            let is_part =
                |part: &&UnitOffset| **part != candidate.entry && self.extends(candidate.entry, **part);
            candidate.extends = entries.iter().filter(is_part).copied().collect();
        }
        Some(found)
    }

    /// The types of the pointers to what lies at a distance behind the block, which are computed from the pointer to the block.
    pub fn behind(&self, uses: &Uses, distance: i64) -> Option<Vec<Candidate>> {
        let known = self.variables(self.function(uses.function.start)?)?;
        let mut found = self.by_variables(uses, &known, distance);
        found.sort();
        found.dedup();
        Some(found)
    }

    /// The types of the variables with the address of the block, with a distance added.
    fn by_variables(&self, uses: &Uses, known: &Variables<'data>, added: i64) -> Vec<Candidate> {
        let (variables, frame_base) = known;
        let mut found = Vec::new();
        for variable in variables {
            let (mut fields, mut at_once) = (Vec::new(), false);
            let parts = |pc: u64, stack: StackRegisters| {
                let parts = self.places(variable, frame_base, pc, stack).into_iter();
                parts.filter(|part| part.added == added)
            };
            for held in &uses.held {
                for part in parts(held.pc, held.stack) {
                    if let Place::Register(number) = part.place
                        && held.registers & 1 << number != 0
                    {
                        fields.push(part.offset);
                        at_once |= uses.at_once.contains(&held.pc);
                    }
                }
            }
            for Kept { pc, word, stack } in &uses.kept {
                for part in parts(*pc, *stack) {
                    let distance =
                        part.place.word().and_then(|start| u64::try_from(word.checked_sub(start)?).ok());
                    let inside = distance.filter(|distance| *distance < part.size);
                    fields.extend(inside.map(|distance| part.offset + distance));
                    at_once |= inside.is_some() && uses.at_once.contains(pc);
                }
            }
            fields.sort_unstable();
            fields.dedup();
            for field in fields {
                let pointee = self.member(variable.type_at, field as i64, 0).and_then(|at| self.pointee(at));
                let candidate = pointee.and_then(|at| self.candidate(at, variable.inlined));
                found.extend(candidate.map(|candidate| Candidate { at_once, ..candidate }));
            }
        }
        found
    }

    /// What a parameter of a function points to that is passed in the register of an integer.
    pub fn parameter(&self, target: Target, register: u8) -> Option<Candidate> {
        let by_address = match target {
            Target::Function(start) => {
                self.functions.iter().find(|(range, _)| range.start == start).map(|(_, at)| *at)
            }
            _ => None,
        };
        let by_symbol = || self.declared_functions.get(self.code.name(target)?.as_bytes()).copied();
        let function = by_address.or_else(by_symbol)?;
        // A struct that is returned may take the first register.
        let returned = self.type_of(&self.unit.entry(function).ok()?);
        if returned.is_some_and(|at| self.registers(at).is_none()) {
            return None;
        }
        let mut tree = self.unit.entries_tree(Some(function)).ok()?;
        let mut children = tree.root().ok()?.children();
        let mut next = 0;
        while let Ok(Some(child)) = children.next() {
            let child = child.entry();
            if child.tag() != gimli::DW_TAG_formal_parameter {
                continue;
            }
            let type_at = self.type_of(child)?;
            if next == register {
                let candidate = self.candidate(self.pointee(type_at)?, true)?;
                return Some(candidate).filter(|candidate| candidate.size > 1);
            }
            next += self.registers(type_at)?;
        }
        None
    }

    /// How many registers of integers a value takes. `None` if that is not known.
    fn registers(&self, at: UnitOffset) -> Option<u8> {
        let entry = self.unqualified(at, true)?;
        match entry.tag() {
            gimli::DW_TAG_pointer_type
            | gimli::DW_TAG_reference_type
            | gimli::DW_TAG_rvalue_reference_type
            | gimli::DW_TAG_enumeration_type => Some(1),
            gimli::DW_TAG_base_type => match entry.attr_value(gimli::DW_AT_encoding)? {
                AttributeValue::Encoding(gimli::DW_ATE_float) => Some(0),
                _ if self.size(at, 0)? <= 8 => Some(1),
                _ => None,
            },
            _ => None,
        }
    }

    /// The type that a store of the address goes to.
    fn stored(
        &self,
        store: &Store,
        variables: &[Variable<'data>],
        frame_base: &FrameBase<'data>,
        results: &Results,
    ) -> Option<Candidate> {
        let mut fields: Vec<UnitOffset> = Vec::new();
        for base in &store.bases {
            let Some(displacement) = store.displacement.checked_add(i64::from(base.offset)) else { continue };
            let around = |address: u64| {
                let (type_at, offset) = self.static_around(address)?;
                match base.index {
                    Index::None => self.member(type_at, offset, 0),
                    index => self.element(type_at, offset, (index, false)),
                }
            };
            if let (Root::Address(address), []) = (base.root, base.fields()) {
                fields.extend(address.checked_add_signed(displacement).and_then(around));
                continue;
            }
            for pointee in self.led_to(base, store, variables, frame_base, results) {
                let field = match base.index {
                    Index::None => self.member(pointee, displacement, 0),
                    index => self.element(pointee, displacement, (index, true)),
                };
                fields.extend(field);
            }
        }
        let mut types: Vec<UnitOffset> = fields.into_iter().filter_map(|field| self.pointee(field)).collect();
        types.sort();
        types.dedup();
        match types[..] {
            [only] => self.candidate(only, false),
            _ => None,
        }
    }

    /// The types of what a pointer leads to.
    fn led_to(
        &self,
        path: &Path,
        store: &Store,
        variables: &[Variable<'data>],
        frame_base: &FrameBase<'data>,
        results: &Results,
    ) -> Vec<UnitOffset> {
        let mut found: Vec<UnitOffset> = match path.root {
            Root::Address(_) => Vec::new(),
            Root::Result(end) => results.get(&end).copied().into_iter().collect(),
            Root::Static(slot) => {
                let held = self.static_at(slot).and_then(|at| self.pointee(at));
                // The dynamic linker stores the addresses of variables of other modules.
                let linked = || self.declared_variables.get(self.code.slot(slot)?.as_bytes()).copied();
                held.or_else(linked).into_iter().collect()
            }
            Root::Word(_) | Root::Register(..) => {
                let (place, pc) = match path.root {
                    Root::Register(number, pc) => (Place::Register(usize::from(number)), pc),
                    Root::Word(at) => (Place::Word(at), store.pc),
                    _ => return Vec::new(),
                };
                let here = variables.iter().filter_map(|variable| {
                    let places = self.places(variable, frame_base, pc, store.stack);
                    let mut places = places.into_iter().filter(|part| part.added == 0);
                    let field = places.find_map(|part| match (part.place, place) {
                        (Place::Word(start), Place::Word(at)) => {
                            let distance = u64::try_from(at.checked_sub(start)?).ok()?;
                            (distance < part.size).then_some(part.offset + distance)
                        }
                        (other, place) => (other == place).then_some(part.offset),
                    })?;
                    let pointer = self.member(variable.type_at, field as i64, 0)?;
                    self.pointee(pointer)
                });
                here.collect()
            }
        };
        for field in path.fields() {
            let next = |at| self.pointee(self.member(at, i64::from(*field), 0)?);
            found = found.into_iter().filter_map(next).collect();
        }
        found
    }

    /// The type of the static variable around an address, and the distance from its start.
    fn static_around(&self, address: u64) -> Option<(UnitOffset, i64)> {
        let distance = |start: u64, type_at: UnitOffset| {
            let distance = address.checked_sub(start)?;
            (distance < self.size(type_at, 0)?).then_some((type_at, distance as i64))
        };
        let own = self.statics.iter().find_map(|(start, type_at)| distance(*start, *type_at));
        // One that another unit defines.
        let other = || {
            let (start, symbol) = self.code.variable(address)?;
            distance(start, *self.declared_variables.get(symbol.as_bytes())?)
        };
        own.or_else(other)
    }

    /// The type of the static variable at an address, or of its field there.
    fn static_at(&self, address: u64) -> Option<UnitOffset> {
        let (type_at, distance) = self.static_around(address)?;
        self.member(type_at, distance, 0)
    }
}
