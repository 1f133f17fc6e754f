//! Where the code after an allocation keeps the block.

use crate::block_flow::{
    AllocatingCall, Allocator, AllocatorResult, Event, Function, Path, Place, Root, Size, State, Target,
    Value,
};
use crate::module_code::ModuleCode;
use crate::wrappers::{by_name, result_of as named_result};
use iced_x86::{OpKind, Register};

/// Largest function in bytes that is read.
pub(super) const LARGEST: u64 = 256 << 10;
const RSP: usize = 4;
const RBP: usize = 5;

/// What the stack pointer and the frame pointer are, by their distance from the return address.
pub(super) type StackRegisters = (Option<i64>, Option<i64>);

/// Registers with the block before an instruction.
pub(super) struct Held {
    pub pc: u64,
    /// A bit for each register that holds it, by the processor's numbers.
    pub registers: u16,
    pub stack: StackRegisters,
}

/// A word on the stack in which the block has been stored before an instruction. Later, another variable may be there.
pub(super) struct Kept {
    pub pc: u64,
    /// Its distance from the return address.
    pub word: i64,
    pub stack: StackRegisters,
}

/// A store of the address of the block.
pub(super) struct Store {
    pub pc: u64,
    /// The same pointer, in all ways that are known.
    pub bases: Vec<Path>,
    pub displacement: i64,
    pub stack: StackRegisters,
}

/// What the size of the block is at the call.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) enum SizeKind {
    /// A constant: that of one object, or of a fixed number of them.
    Constant,
    /// It comes from the caller, or is not known: the block may be of any type that begins as the pointer says.
    #[default]
    Unknown,
    /// A multiple of the first number, with the second added: mostly that of a number of elements.
    Multiple(u32, u32),
}

/// What a `new` expression makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum New {
    Object,
    Array,
}

/// What the code does with the block.
#[derive(Default)]
pub(super) struct Uses {
    /// Addresses of the function.
    pub function: std::ops::Range<u64>,
    /// Addresses of the code behind the call that always follows it.
    pub at_once: std::ops::Range<u64>,
    pub held: Vec<Held>,
    pub kept: Vec<Kept>,
    pub stores: Vec<Store>,
    /// Functions to which the block is given, with the number of the argument.
    pub passed: Vec<(Target, u8)>,
    /// Whether the function returns it.
    pub returned: bool,
    pub size: SizeKind,
    /// What `new` makes, if the call is its.
    pub made_by_new: Option<New>,
    /// Whether something is stored at the start of the block, as a pointer to a vtable is.
    pub start_is_written: bool,
    /// Pointers that are stored there.
    pub start: Vec<Path>,
}

/// What the code behind the call that ends at an address does with the block that the call gives it, or with the address at an
/// offset in it. `inner` is the wrapper that is called, if it is one.
pub(super) fn of_call(
    module: &ModuleCode<'_>,
    function: &Function,
    end: u64,
    inner: Option<Allocator>,
    offset: i64,
) -> Option<Uses> {
    let at = function.ending_at(end)?;
    let name = |target| module.name(target);
    let result_of = |code: &_, arguments: &_| named_result(name(Target::of(code))?, arguments);
    let returned =
        Allocator { size: Size { arguments: 1, is_product: false }, result: AllocatorResult::Returned };
    let callee = name(Target::of(function.instruction(at)));
    let known = inner.or_else(|| callee.and_then(by_name));
    let allocator = known.unwrap_or(returned);
    let state = function.before(at, &result_of)?;
    let size = known.map_or(SizeKind::Unknown, |allocator| size_kind(allocator.size, &state));
    let made_by_new = match callee {
        Some("_Znwm" | "_ZnwmRKSt9nothrow_t") => Some(New::Object),
        Some("_Znam" | "_ZnamRKSt9nothrow_t") => Some(New::Array),
        _ => None,
    };
    let mut uses = Uses {
        function: function.range(),
        at_once: function.straight_behind(at),
        size,
        made_by_new,
        ..Uses::default()
    };
    let block = Value::Block(offset);
    function.after(AllocatingCall { at, allocator }, &state, &result_of, &mut |index, state, event| {
        uses.add(function, index, state, block);
        if index == at + 1 {
            let words = state.stack.iter().filter(|(_, value)| **value == block);
            let (pc, stack) = (function.instruction(index).ip(), stack_registers(state));
            uses.kept.extend(words.map(|(word, _)| Kept { pc, word: *word, stack }));
        }
        match event {
            Some(Event::Written { place: Place::Stack(word), value }) if value == block => {
                let (code, stack) = (function.instruction(index), stack_registers(state));
                uses.kept.extend([code.ip(), code.next_ip()].map(|pc| Kept { pc, word, stack }));
            }
            Some(Event::Written { value, .. }) if value == block => uses.store(function, index, state),
            Some(Event::Written { place: Place::Block(Some(0)), value }) => {
                uses.start_is_written = true;
                if let Value::Path(path) = value {
                    uses.start.push(path);
                }
            }
            Some(Event::Called { target, arguments, .. } | Event::Left { target, arguments }) => {
                let passed = (0..).zip(arguments).filter(|(_, value)| *value == block);
                uses.passed.extend(passed.map(|(number, _)| (target, number)));
            }
            Some(Event::Returned(value)) if value == block => uses.returned = true,
            _ => {}
        }
    });
    Some(uses)
}

fn size_kind(size: Size, state: &State) -> SizeKind {
    let arguments = (0..6).filter(|number| size.arguments & 1 << number != 0);
    let values = arguments.map(|number| state.argument(number));
    let value = values.reduce(|one, other| if size.is_product { one.times(other) } else { one.plus(other) });
    match value {
        Some(Value::Constant(_)) => SizeKind::Constant,
        Some(Value::Multiple(of, rest)) => SizeKind::Multiple(of, rest),
        _ => SizeKind::Unknown,
    }
}

/// The pointer in a register, in all ways that are known.
fn bases(state: &State, register: Register, pc: u64) -> Vec<Path> {
    let number = register.full_register().number();
    let value = state.registers[number];
    let mut bases = vec![Path::new(Root::Register(number as u8, pc))];
    match value {
        Value::Stack(_) | Value::Block(_) | Value::Inside => return Vec::new(),
        Value::Path(path) => bases.push(path),
        _ => {}
    }
    if !matches!(value, Value::Unknown | Value::Multiple(..)) {
        let same =
            state.registers.iter().enumerate().filter(|(other, known)| *other != number && **known == value);
        bases.extend(same.map(|(other, _)| Path::new(Root::Register(other as u8, pc))));
        let words = state.stack.iter().filter(|(_, known)| **known == value);
        bases.extend(words.map(|(at, _)| Path::new(Root::Word(*at))));
    }
    bases
}

fn stack_registers(state: &State) -> StackRegisters {
    let distance = |number: usize| match state.registers[number] {
        Value::Stack(at) => Some(at),
        _ => None,
    };
    (distance(RSP), distance(RBP))
}

impl Uses {
    fn add(&mut self, function: &Function, index: usize, state: &State, block: Value) {
        let mut registers = 0;
        for (number, value) in state.registers.iter().enumerate() {
            registers |= u16::from(*value == block) << number;
        }
        if registers != 0 {
            let pc = function.instruction(index).ip();
            self.held.push(Held { pc, registers, stack: stack_registers(state) });
        }
    }

    fn store(&mut self, function: &Function, index: usize, state: &State) {
        let code = function.instruction(index);
        if code.op0_kind() != OpKind::Memory || code.segment_prefix() != Register::None {
            return;
        }
        let pc = code.ip();
        let displacement = code.memory_displacement64();
        let (index, is_single) = (code.memory_index(), code.memory_index_scale() == 1);
        let (mut bases, displacement) = match code.memory_base() {
            Register::RIP => (vec![Path::new(Root::Address(code.ip_rel_memory_address()))], 0),
            Register::None => (vec![Path::new(Root::Address(displacement))], 0),
            register => (bases(state, register, pc), displacement as i64),
        };
        if index != Register::None {
            // Which of two registers is the pointer is known by the variables.
            if is_single {
                bases.extend(self::bases(state, index, pc));
            }
            bases.iter_mut().for_each(|base| *base = base.indexed());
        }
        self.stores.push(Store { pc, bases, displacement, stack: stack_registers(state) });
    }
}
