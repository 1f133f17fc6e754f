//! Where the variables of a function are.
//!
//! Sources: DWARF 5 §2.6 (locations), §3.3 (functions).

use super::{DWARF_NUMBERS, Entry, Reader, StackRegisters, UnitVariables, Variable, Variables};
use crate::block_flow::PRESERVED;
use gimli::{AttributeValue, Expression, Operation, UnitOffset};
use std::ops::Range;
use std::rc::Rc;

/// A part of a variable.
pub(super) struct Part {
    pub offset: u64,
    pub size: u64,
    pub place: Place,
    /// What is added to what is there.
    pub added: i64,
}

impl<'data> UnitVariables<'_, 'data, '_> {
    /// The entry of the function that begins at an address.
    pub(super) fn function(&self, start: u64) -> Option<UnitOffset> {
        self.functions.iter().find(|(range, _)| range.contains(&start)).map(|(_, offset)| *offset)
    }

    /// The variables of a function, with those of its blocks and of functions inlined into it.
    pub(super) fn variables(&self, function: UnitOffset) -> Option<Rc<Variables<'data>>> {
        if let Some((_, known)) = self.last.borrow().as_ref().filter(|(known, _)| *known == function) {
            return Some(Rc::clone(known));
        }
        let mut tree = self.unit.entries_tree(Some(function)).ok()?;
        let root = tree.root().ok()?;
        let frame_base = FrameBase(root.entry().attr_value(gimli::DW_AT_frame_base));
        let mut found = Vec::new();
        self.children(root, &(None, false), 0, &mut found);
        let found = Rc::new((found, frame_base));
        *self.last.borrow_mut() = Some((function, Rc::clone(&found)));
        Some(found)
    }

    pub(super) fn children(
        &self,
        node: gimli::EntriesTreeNode<'_, '_, Reader<'data>>,
        around: &(Option<Rc<Vec<Range<u64>>>>, bool),
        depth: usize,
        found: &mut Vec<Variable<'data>>,
    ) {
        let (scope, inlined) = around;
        let mut children = node.children();
        while let Ok(Some(child)) = children.next() {
            let entry = child.entry();
            match entry.tag() {
                gimli::DW_TAG_variable | gimli::DW_TAG_formal_parameter => {
                    let location = entry.attr_value(gimli::DW_AT_location);
                    let of_interest = || {
                        let type_at = self.type_of(entry)?;
                        let tag = self.unqualified(type_at, true)?.tag();
                        let has_fields = matches!(
                            tag,
                            gimli::DW_TAG_structure_type
                                | gimli::DW_TAG_class_type
                                | gimli::DW_TAG_array_type
                        );
                        let is_useful = has_fields || self.pointee(type_at).is_some();
                        Some((type_at, self.size(type_at, 0)?)).filter(|_| is_useful)
                    };
                    if let Some(location) = location
                        && let Some((type_at, size)) = of_interest()
                    {
                        // That of a parameter that is not used stays where it came, by debug information: not behind a call.
                        let is_passed = entry.tag() == gimli::DW_TAG_formal_parameter && !*inlined;
                        if is_passed && self.is_lost_by_calls(location) {
                            continue;
                        }
                        let parts = self.parts(location);
                        found.push(Variable {
                            parts,
                            scope: scope.clone(),
                            type_at,
                            size,
                            inlined: *inlined,
                        });
                    }
                }
                gimli::DW_TAG_lexical_block | gimli::DW_TAG_inlined_subroutine if depth < 256 => {
                    let is_inlined = entry.tag() == gimli::DW_TAG_inlined_subroutine;
                    let inside = (self.scope(entry).or_else(|| scope.clone()), *inlined || is_inlined);
                    self.children(child, &inside, depth + 1, found);
                }
                _ => {}
            }
        }
    }

    /// Whether a place is in a register in the whole function that called functions may change.
    pub(super) fn is_lost_by_calls(&self, location: AttributeValue<Reader<'data>>) -> bool {
        let AttributeValue::Exprloc(expression) = location else { return false };
        let first = expression.operations(self.unit.encoding()).next();
        matches!(first, Ok(Some(Operation::Register { register }))
            if number(register.0).is_some_and(|number| !PRESERVED.contains(&number)))
    }

    /// The addresses of the code of a scope.
    pub(super) fn scope(&self, entry: &Entry<'data>) -> Option<Rc<Vec<Range<u64>>>> {
        let mut ranges = self.unit.die_ranges(entry).ok()?;
        let mut scope = Vec::new();
        while let Ok(Some(range)) = ranges.next() {
            scope.push(range.begin..range.end);
        }
        (!scope.is_empty()).then(|| Rc::new(scope))
    }

    /// Where a variable is. What follows a part that cannot be read is left out.
    pub(super) fn parts(
        &self,
        location: AttributeValue<Reader<'data>>,
    ) -> Vec<(Range<u64>, Expression<Reader<'data>>)> {
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

    /// Where the parts of a variable are at an address of code.
    pub(super) fn places(
        &self,
        variable: &Variable<'data>,
        frame_base: &FrameBase<'data>,
        pc: u64,
        stack: StackRegisters,
    ) -> Vec<Part> {
        let is_in_scope =
            variable.scope.as_ref().is_none_or(|scope| scope.iter().any(|range| range.contains(&pc)));
        let part = variable.parts.iter().find(|(range, _)| is_in_scope && range.contains(&pc));
        let Some((_, expression)) = part else { return Vec::new() };
        let computed = || {
            let mut operations = expression.operations(self.unit.encoding());
            let (place, added) = match operations.next().ok()?? {
                Operation::RegisterOffset { register, offset, .. } if base(register.0, stack).is_none() => {
                    (Place::Register(number(register.0)?), offset)
                }
                first => {
                    let word = self.word(&first, frame_base, stack)?;
                    let Operation::Deref { .. } = operations.next().ok()?? else { return None };
                    let Operation::PlusConstant { value } = operations.next().ok()?? else { return None };
                    (Place::Word(word), i64::try_from(value).ok()?)
                }
            };
            let is_last = matches!(operations.next().ok()??, Operation::StackValue);
            is_last.then_some(Part { offset: 0, size: variable.size, place, added })
        };
        if let Some(part) = computed() {
            return vec![part];
        }
        let mut operations = expression.operations(self.unit.encoding());
        let (mut found, mut offset, mut place) = (Vec::new(), 0, None);
        while let Ok(Some(operation)) = operations.next() {
            match operation {
                Operation::Piece { size_in_bits, .. } => {
                    let size = size_in_bits / 8;
                    found.extend(place.take().map(|place| Part { offset, size, place, added: 0 }));
                    offset += size;
                }
                // The value is computed from what is there.
                _ if place.is_some() => return Vec::new(),
                Operation::Register { register } => place = number(register.0).map(Place::Register),
                operation => match self.word(&operation, frame_base, stack) {
                    Some(word) => place = Some(Place::Word(word)),
                    None => return found,
                },
            }
        }
        let whole = place.filter(|_| offset == 0);
        found.extend(whole.map(|place| Part { offset: 0, size: variable.size, place, added: 0 }));
        found
    }

    /// The word on the stack whose address an operation gives.
    pub(super) fn word(
        &self,
        operation: &Operation<Reader<'data>>,
        frame_base: &FrameBase<'data>,
        stack: StackRegisters,
    ) -> Option<i64> {
        match *operation {
            Operation::FrameOffset { offset } => {
                frame_base.at(self.unit.encoding(), stack)?.checked_add(offset)
            }
            Operation::RegisterOffset { register, offset, .. } => {
                base(register.0, stack)?.checked_add(offset)
            }
            _ => None,
        }
    }
}

/// Where a value is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In a register, by the processor's number.
    Register(usize),
    /// On the stack, by the distance from the return address.
    Word(i64),
}

impl Place {
    pub fn word(self) -> Option<i64> {
        match self {
            Place::Word(at) => Some(at),
            Place::Register(_) => None,
        }
    }
}

/// The base to which addresses of variables are relative.
pub(super) struct FrameBase<'data>(Option<AttributeValue<Reader<'data>>>);

impl FrameBase<'_> {
    fn at(&self, encoding: gimli::Encoding, registers: StackRegisters) -> Option<i64> {
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
fn base(register: u16, (rsp, rbp): StackRegisters) -> Option<i64> {
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
