//! Evaluates locations of variables in a frame.

use super::{LocalPlace, ReadMemory, StoppedFrame};
use gimli::{AttributeValue, EvaluationResult, Location, Piece, UnitRef, Value};
use stackglass_debug_info::sections::Reader;

pub(super) type Expression<'data> = gimli::Expression<Reader<'data>>;

/// Most operations of an expression.
const MOST_OPERATIONS: u32 = 1000;
/// Most bytes of a value that is in several pieces.
const LARGEST: u64 = 4096;
const ALL_BITS: u64 = u64::MAX;

pub(super) struct Evaluator<'a, 'data> {
    unit: UnitRef<'a, Reader<'data>>,
    frame: &'a StoppedFrame,
    memory: ReadMemory<'a>,
    frame_base: Option<u64>,
}

impl<'a, 'data> Evaluator<'a, 'data> {
    pub fn new(
        unit: UnitRef<'a, Reader<'data>>,
        frame: &'a StoppedFrame,
        memory: ReadMemory<'a>,
    ) -> Evaluator<'a, 'data> {
        Evaluator { unit, frame, memory, frame_base: None }
    }

    /// Computes the base to which addresses of variables are relative, from the function's attribute.
    pub fn set_frame_base(&mut self, attribute: Option<AttributeValue<Reader<'data>>>) {
        let expression = match attribute {
            Some(AttributeValue::Exprloc(expression)) => Some(expression),
            Some(list) => self.of_list(list),
            None => None,
        };
        let pieces = expression.and_then(|expression| self.evaluate(expression));
        self.frame_base = match pieces.as_deref() {
            Some([Piece { location: Location::Address { address }, size_in_bits: None, .. }]) => {
                Some(*address)
            }
            // The value of the register is the base.
            Some([Piece { location: Location::Register { register }, .. }]) => self.register(register.0),
            _ => None,
        };
    }

    fn of_list(&self, list: AttributeValue<Reader<'data>>) -> Option<Expression<'data>> {
        let mut list = self.unit.attr_locations(list).ok()??;
        while let Some(part) = list.next().ok()? {
            if (part.range.begin..part.range.end).contains(&self.frame.lookup) {
                return Some(part.data);
            }
        }
        None
    }

    fn register(&self, number: u16) -> Option<u64> {
        *self.frame.registers.get(usize::from(number))?
    }

    /// Where a value is. `None` if it, or a part of it, is not known.
    pub fn place(&self, expression: Expression<'data>) -> Option<LocalPlace> {
        let pieces = self.evaluate(expression)?;
        if let [Piece { location: Location::Address { address }, size_in_bits: None, .. }] = pieces[..] {
            return Some(LocalPlace::Memory(address));
        }
        let mut bytes = Vec::new();
        for piece in &pieces {
            let size = match piece.size_in_bits {
                Some(bits) if bits % 8 == 0 && bits / 8 <= LARGEST - bytes.len() as u64 => {
                    (bits / 8) as usize
                }
                Some(_) => return None,
                None => 8,
            };
            if piece.bit_offset.is_some_and(|offset| offset != 0) {
                return None;
            }
            let mut part = vec![0; size];
            let mut copy = |from: &[u8]| {
                let count = from.len().min(size);
                part[..count].copy_from_slice(&from[..count]);
                (from.len() >= size || piece.size_in_bits.is_none()).then_some(())
            };
            match &piece.location {
                Location::Register { register } => copy(&self.register(register.0)?.to_le_bytes())?,
                Location::Value { value } => copy(&value.to_u64(ALL_BITS).ok()?.to_le_bytes())?,
                Location::Bytes { value } => copy(value.slice())?,
                Location::Address { address } => {
                    if (self.memory)(*address, &mut part) != size {
                        return None;
                    }
                }
                Location::Empty | Location::ImplicitPointer { .. } => return None,
            }
            bytes.extend(part);
        }
        (!bytes.is_empty()).then(|| LocalPlace::Bytes(bytes.into()))
    }

    fn evaluate(&self, expression: Expression<'data>) -> Option<Vec<Piece<Reader<'data>>>> {
        let mut evaluation = expression.evaluation(self.unit.encoding());
        evaluation.set_max_iterations(MOST_OPERATIONS);
        let mut state = evaluation.evaluate().ok()?;
        // Each request is one operation, so the bound above holds for them, too.
        loop {
            state = match state {
                EvaluationResult::Complete => return Some(evaluation.result()),
                EvaluationResult::RequiresMemory { address, size, space: None, base_type }
                    if size <= 8 && base_type.0 == 0 =>
                {
                    let mut word = [0; 8];
                    if (self.memory)(address, &mut word[..usize::from(size)]) != usize::from(size) {
                        return None;
                    }
                    evaluation.resume_with_memory(Value::Generic(u64::from_le_bytes(word)))
                }
                EvaluationResult::RequiresRegister { register, base_type } if base_type.0 == 0 => {
                    evaluation.resume_with_register(Value::Generic(self.register(register.0)?))
                }
                EvaluationResult::RequiresFrameBase => evaluation.resume_with_frame_base(self.frame_base?),
                EvaluationResult::RequiresCallFrameCfa => {
                    evaluation.resume_with_call_frame_cfa(self.frame.cfa?)
                }
                EvaluationResult::RequiresRelocatedAddress(address) => {
                    evaluation.resume_with_relocated_address(address.wrapping_add(self.frame.bias))
                }
                EvaluationResult::RequiresIndexedAddress { index, relocate } => {
                    let address = self.unit.address(index).ok()?;
                    let bias = if relocate { self.frame.bias } else { 0 };
                    evaluation.resume_with_indexed_address(address.wrapping_add(bias))
                }
                // Not supported: values at function entry, typed values, thread-local storage and others.
                _ => return None,
            }
            .ok()?;
        }
    }
}
