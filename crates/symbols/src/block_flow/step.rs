//! What one instruction changes. Results of instructions that are not listed are not known.

use super::state::{Place, RSP, State, Tested};
use super::value::{Path, Root, Value};
use iced_x86::{ConditionCode, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};

const RAX: usize = 0;
const RDX: usize = 2;
const RBP: usize = 5;

/// Memory that an instruction writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Write {
    pub place: Place,
    pub value: Value,
}

/// Changes the state as an instruction does that is no call, jump or return. Each store to memory is passed to `written`.
pub(super) fn execute(
    state: &mut State,
    code: &Instruction,
    factory: &mut InstructionInfoFactory,
    written: &mut dyn FnMut(Write),
) {
    use Mnemonic as M;
    let bytes = width(code, 0);
    let tested = state.tested;
    state.tested = Tested::Nothing;
    let value = match code.mnemonic() {
        M::Nop | M::Endbr64 | M::Pause => {
            state.tested = tested;
            return;
        }
        M::Mov => {
            state.tested = tested;
            state.read(code, 1)
        }
        M::Movsxd => {
            state.tested = tested;
            state.read(code, 1).extended()
        }
        M::Cdqe => {
            state.tested = tested;
            state.registers[RAX] = state.registers[RAX].extended();
            return;
        }
        M::Lea => {
            state.tested = tested;
            address(state, code)
        }
        M::Push => {
            state.tested = tested;
            let value = state.read(code, 0);
            state.registers[RSP] = state.registers[RSP].plus(Value::Constant(-8));
            if let Value::Stack(at) = state.registers[RSP] {
                state.store(Place::Stack(at), 8, value);
            }
            return;
        }
        M::Pop => {
            state.tested = tested;
            pop(state, code.op0_register());
            return;
        }
        M::Leave => {
            state.registers[RSP] = state.registers[RBP];
            pop(state, Register::RBP);
            return;
        }
        M::Test => {
            let same = code.op_kind(0) == OpKind::Register
                && code.op_kind(1) == OpKind::Register
                && code.op0_register() == code.op1_register();
            state.tested = if same { tested_for(state.read(code, 0)) } else { Tested::Nothing };
            return;
        }
        M::Cmp => {
            state.tested = match (state.read(code, 0), state.read(code, 1)) {
                (value, Value::Constant(0)) | (Value::Constant(0), value) => tested_for(value),
                _ => Tested::Nothing,
            };
            return;
        }
        M::Add | M::Adc => {
            let more = state.read(code, 1);
            let is_small = code.mnemonic() == M::Add || more == Value::Constant(0);
            let sum = state.read(code, 0).plus(more);
            match (is_small, sum) {
                (true, sum) => sum,
                (false, _) => Value::Unknown,
            }
        }
        M::Sub => state.read(code, 0).minus(state.read(code, 1)),
        M::Inc => state.read(code, 0).plus(Value::Constant(1)),
        M::Dec => state.read(code, 0).plus(Value::Constant(-1)),
        M::And => state.read(code, 0).rounded(state.read(code, 1), false),
        M::Or => {
            let (value, mask) = (state.read(code, 0), state.read(code, 1));
            // `!block && !size` in one test: it is not zero if there is a block.
            if bytes == 8 && (value == Value::Block(0) || mask == Value::Block(0)) {
                state.tested = Tested::Block;
            }
            value.rounded(mask, true)
        }
        M::Xor if code.op_kind(1) == OpKind::Register && code.op0_register() == code.op1_register() => {
            Value::Constant(0)
        }
        M::Shl | M::Sal => state.read(code, 0).shifted(state.read(code, 1)),
        M::Imul if code.op_count() == 2 => state.read(code, 0).times(state.read(code, 1)),
        M::Imul if code.op_count() == 3 => state.read(code, 1).times(state.read(code, 2)),
        M::Mul => {
            let value = state.registers[RAX].low(bytes).times(state.read(code, 0));
            state.registers[RAX] = value.low(bytes);
            state.registers[RDX] = Value::Unknown;
            return;
        }
        _ if code.condition_code() != ConditionCode::None && code.op_count() == 2 => {
            state.tested = tested;
            let (old, new) = (state.read(code, 0), state.read(code, 1));
            match taken(tested, code.condition_code()) {
                Some(true) => new,
                Some(false) => old,
                None => old.join(new),
            }
        }
        _ => return others(state, code, factory, written),
    };
    match code.op_kind(0) {
        OpKind::Register => state.set_register(code.op0_register(), value),
        OpKind::Memory => {
            let place = state.place(code);
            written(Write { place, value });
            state.store(place, bytes, value);
            state.is_result_meant &=
                code.op_count() < 2 || code.op1_register().full_register() != Register::RAX;
        }
        _ => {}
    }
}

/// Whether a condition is true, if the allocator has succeeded. `None` if that does not decide.
pub(super) fn taken(tested: Tested, condition: ConditionCode) -> Option<bool> {
    let is_zero = match tested {
        Tested::Nothing => return None,
        Tested::Block => false,
        Tested::Status => true,
    };
    match condition {
        ConditionCode::e => Some(is_zero),
        ConditionCode::ne => Some(!is_zero),
        _ => None,
    }
}

fn tested_for(value: Value) -> Tested {
    match value {
        Value::Block(0) => Tested::Block,
        Value::Status => Tested::Status,
        _ => Tested::Nothing,
    }
}

fn pop(state: &mut State, register: Register) {
    let value = match state.registers[RSP] {
        Value::Stack(at) => state.stack.get(&at).copied().unwrap_or(Value::Unknown),
        _ => Value::Unknown,
    };
    state.registers[RSP] = state.registers[RSP].plus(Value::Constant(8));
    state.set_register(register, value);
}

fn address(state: &State, code: &Instruction) -> Value {
    if code.is_ip_rel_memory_operand() {
        return Path::new(Root::Address(code.ip_rel_memory_address())).into();
    }
    let scale = Value::Constant(i64::from(code.memory_index_scale()));
    let index = match code.memory_index() {
        Register::None => Value::Constant(0),
        index => state.register(index).times(scale),
    };
    let displacement = Value::Constant(code.memory_displacement64() as i64);
    state.register(code.memory_base()).plus(index).plus(displacement)
}

fn width(code: &Instruction, operand: u32) -> usize {
    match code.op_kind(operand) {
        OpKind::Register => code.op_register(operand).size(),
        OpKind::Memory => code.memory_size().size(),
        _ => 8,
    }
}

/// An instruction whose results are not known.
fn others(
    state: &mut State,
    code: &Instruction,
    factory: &mut InstructionInfoFactory,
    written: &mut dyn FnMut(Write),
) {
    let writes = |access| {
        matches!(
            access,
            OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
        )
    };
    let info = factory.info(code);
    for used in info.used_memory().iter().filter(|used| writes(used.access())) {
        let string = code.is_string_instruction();
        let place = match string {
            // A number of elements.
            true => match state.register(used.base()) {
                Value::Block(_) | Value::Inside => Place::Block(None),
                Value::Stack(at) => {
                    state.store(Place::Stack(at), usize::MAX >> 1, Value::Unknown);
                    continue;
                }
                _ => Place::Unknown,
            },
            false => state.place(code),
        };
        let value = match string && state.registers[RAX] == Value::Constant(0) {
            true => Value::Constant(0),
            false => Value::Unknown,
        };
        written(Write { place, value });
        state.store(place, used.memory_size().size().max(8), Value::Unknown);
    }
    for used in info.used_registers().iter().filter(|used| writes(used.access())) {
        state.set_register(used.register().full_register(), Value::Unknown);
    }
}
