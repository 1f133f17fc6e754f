//! What is known of registers and of the stack at one instruction.

use super::value::{ARGUMENTS, Path, Root, Value};
use iced_x86::{Instruction, OpKind, Register};
use std::collections::BTreeMap;

const RAX: usize = 0;
pub(super) const RSP: usize = 4;
/// Registers that a called function preserves (System V ABI x86-64, 3.2.1).
pub(crate) const PRESERVED: [usize; 7] = [3, 4, 5, 12, 13, 14, 15];

/// What the flags compare with zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Tested {
    Nothing,
    Block,
    Status,
}

/// Where memory is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    Stack(i64),
    /// In the block, at an offset if it is known.
    Block(Option<i64>),
    /// At a distance from an argument.
    Argument(u8, i64),
    Unknown,
}

/// What is known at an instruction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct State {
    pub registers: [Value; 16],
    /// By offset from the return address.
    pub stack: BTreeMap<i64, Value>,
    pub(super) tested: Tested,
    /// The lowest address on the stack that other code knows.
    shared_from: i64,
    /// Whether an instruction has set the register of results, and not only to store that.
    pub is_result_meant: bool,
}

impl State {
    /// At the start of a function.
    pub fn at_start() -> State {
        let mut registers = [Value::Unknown; 16];
        for (number, register) in ARGUMENTS.iter().enumerate() {
            registers[*register] = Value::Argument(number as u8);
        }
        registers[RSP] = Value::Stack(0);
        State {
            registers,
            stack: BTreeMap::new(),
            tested: Tested::Nothing,
            shared_from: i64::MAX,
            is_result_meant: false,
        }
    }

    /// What is known where two paths meet.
    pub fn join(&self, other: &State) -> State {
        let registers = std::array::from_fn(|number| self.registers[number].join(other.registers[number]));
        let stack = self.stack.iter().filter_map(|(place, value)| {
            let value = value.join(*other.stack.get(place)?);
            (value != Value::Unknown).then_some((*place, value))
        });
        let tested = if self.tested == other.tested { self.tested } else { Tested::Nothing };
        State {
            registers,
            stack: stack.collect(),
            tested,
            shared_from: self.shared_from.min(other.shared_from),
            is_result_meant: self.is_result_meant && other.is_result_meant,
        }
    }

    pub fn argument(&self, number: usize) -> Value {
        self.registers[ARGUMENTS[number]]
    }

    /// The place of a memory operand.
    pub fn place(&self, code: &Instruction) -> Place {
        if code.segment_prefix() != Register::None || code.is_ip_rel_memory_operand() {
            return Place::Unknown;
        }
        let base = self.register(code.memory_base());
        let displacement = code.memory_displacement64() as i64;
        let index = match code.memory_index() {
            Register::None => Value::Constant(0),
            index => self.register(index).times(Value::Constant(i64::from(code.memory_index_scale()))),
        };
        match (base, index) {
            (Value::Argument(number), Value::Constant(0)) => Place::Argument(number, displacement),
            (Value::Argument(number), _) => Place::Argument(number, i64::MAX),
            _ => match base.plus(index).plus(Value::Constant(displacement)) {
                Value::Stack(at) => Place::Stack(at),
                Value::Block(at) => Place::Block(Some(at)),
                Value::Inside => Place::Block(None),
                _ => Place::Unknown,
            },
        }
    }

    /// The value of a register or of a part of one.
    pub fn register(&self, register: Register) -> Value {
        if !register.is_gpr() {
            return if register == Register::None { Value::Constant(0) } else { Value::Unknown };
        }
        self.registers[register.full_register().number()].low(register.size())
    }

    pub fn set_register(&mut self, register: Register, value: Value) {
        if register.is_gpr() {
            let number = register.full_register().number();
            self.registers[number] = value.low(register.size());
            self.is_result_meant |= number == RAX;
        }
    }

    /// The value of an operand.
    pub fn read(&self, code: &Instruction, operand: u32) -> Value {
        match code.op_kind(operand) {
            OpKind::Register => self.register(code.op_register(operand)),
            OpKind::Memory if code.is_ip_rel_memory_operand() && code.segment_prefix() == Register::None => {
                Value::from(Path::new(Root::Static(code.ip_rel_memory_address())))
                    .low(code.memory_size().size())
            }
            OpKind::Memory => match self.place(code) {
                Place::Stack(at) => {
                    let unknown = || Path::new(Root::Word(at)).into();
                    self.stack.get(&at).copied().unwrap_or_else(unknown).low(code.memory_size().size())
                }
                Place::Block(_) => Value::Unknown,
                _ => self.field(code).map_or(Value::Unknown, Value::Path).low(code.memory_size().size()),
            },
            _ => match code.try_immediate(operand) {
                Ok(value) => Value::Constant(value as i64),
                Err(_) => Value::Unknown,
            },
        }
    }

    /// The pointer that an operand reads from a field.
    fn field(&self, code: &Instruction) -> Option<Path> {
        if code.segment_prefix() != Register::None || code.memory_index() != Register::None {
            return None;
        }
        let displacement = code.memory_displacement64();
        match code.memory_base() {
            Register::None => Some(Path::new(Root::Static(displacement))),
            base => self.pointer(base, code.ip())?.field(displacement as i64),
        }
    }

    /// The way to the pointer in a register before an instruction.
    pub fn pointer(&self, register: Register, pc: u64) -> Option<Path> {
        let number = register.full_register().number();
        if !register.is_gpr() || register.size() != 8 {
            return None;
        }
        match self.registers[number] {
            Value::Path(path) => Some(path),
            Value::Unknown | Value::Multiple(..) => Some(Path::new(Root::Register(number as u8, pc))),
            value @ (Value::Argument(_) | Value::Size(_)) => {
                let mut words = self.stack.iter().filter(|(_, known)| **known == value);
                let word = words.next().map(|(at, _)| Root::Word(*at));
                Some(Path::new(word.unwrap_or(Root::Register(number as u8, pc))))
            }
            _ => None,
        }
    }

    /// Stores a value of some bytes.
    pub fn store(&mut self, place: Place, bytes: usize, value: Value) {
        if let Place::Stack(at) = place {
            self.forget(at..at.saturating_add(bytes as i64));
            let value = value.low(bytes);
            if value != Value::Unknown {
                self.stack.insert(at, value);
            }
        }
        if let (Value::Stack(at), false) = (value, matches!(place, Place::Stack(_))) {
            self.shared_from = self.shared_from.min(at);
        }
    }

    fn forget(&mut self, written: std::ops::Range<i64>) {
        let touched: Vec<i64> =
            self.stack.range(written.start.saturating_sub(7)..written.end).map(|(place, _)| *place).collect();
        touched.iter().for_each(|place| {
            self.stack.remove(place);
        });
    }

    /// After the call of a function of which nothing is known.
    pub fn call(&mut self) {
        for number in 0..ARGUMENTS.len() {
            if let Value::Stack(at) = self.argument(number) {
                self.shared_from = self.shared_from.min(at);
            }
        }
        if self.shared_from < 0 {
            self.forget(self.shared_from..0);
        }
        for (number, value) in self.registers.iter_mut().enumerate() {
            if !PRESERVED.contains(&number) {
                *value = Value::Unknown;
            }
        }
        self.tested = Tested::Nothing;
        self.is_result_meant = false;
    }

    pub fn set_result(&mut self, value: Value) {
        self.registers[RAX] = value;
    }
}
