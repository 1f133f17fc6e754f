//! Where the code after an allocation keeps the block.

use crate::block_flow::{
    AllocatingCall, Allocator, AllocatorResult, Event, Function, Place, Size, State, Target, Value,
};
use crate::module_code::ModuleCode;
use crate::wrappers::{by_name, is_filling};
use iced_x86::{OpKind, Register};

/// Largest function in bytes that is read.
pub(super) const LARGEST: u64 = 256 << 10;
const RSP: usize = 4;
const RBP: usize = 5;

/// Where the block is before an instruction.
pub(super) struct Held {
    pub pc: u64,
    /// A bit for each register that holds it, by the processor's numbers.
    pub registers: u16,
    /// Words on the stack that hold it, by their distance from the return address.
    pub words: Vec<i64>,
    pub rsp: Option<i64>,
    pub rbp: Option<i64>,
}

/// What a pointer to the block is stored in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Base {
    /// The value that a register points to.
    Register(usize),
    /// The value that a word on the stack points to.
    Word(i64),
    /// The value that a static variable points to.
    Pointer(u64),
    /// A static variable.
    Static(u64),
}

/// A store of the address of the block.
pub(super) struct Store {
    pub pc: u64,
    /// The same address, in all ways that are known.
    pub bases: Vec<Base>,
    pub displacement: i64,
    pub rsp: Option<i64>,
    pub rbp: Option<i64>,
}

/// What the size of the block is at the call.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) enum SizeKind {
    /// A constant: that of one object, or of a fixed number of them.
    Constant,
    /// It comes from the caller, or is not known: the block may be of any type that begins as the pointer says.
    #[default]
    Passed,
    /// It is computed here, mostly as a number of elements.
    Computed,
}

/// What the code does with the block.
#[derive(Default)]
pub(super) struct Uses {
    /// Addresses of the function.
    pub function: std::ops::Range<u64>,
    pub held: Vec<Held>,
    pub stores: Vec<Store>,
    /// Symbols of functions to which the block is given as the first argument.
    pub first_argument_of: Vec<String>,
    /// Whether the function returns it.
    pub returned: bool,
    pub size: SizeKind,
    /// The call is that of `new` for one object.
    pub is_new: bool,
    /// Whether something is stored at the start of the block, as a pointer to a vtable is.
    pub start_is_written: bool,
}

/// What the code behind the call that ends at an address does with the block that the call gives it.
/// `inner` is the wrapper that is called, if it is one.
pub(super) fn of_call(
    module: &ModuleCode<'_>,
    function: &Function,
    end: u64,
    inner: Option<Allocator>,
) -> Option<Uses> {
    let at = function.ending_at(end)?;
    let name = |target| module.name(target);
    let returns_first = |code: &_| name(Target::of(code)).is_some_and(is_filling);
    let returned =
        Allocator { size: Size { arguments: 1, is_product: false }, result: AllocatorResult::Returned };
    let callee = name(Target::of(function.instruction(at)));
    let known = inner.or_else(|| callee.and_then(by_name));
    let allocator = known.unwrap_or(returned);
    let state = function.before(at, &returns_first)?;
    let size = known.map_or(SizeKind::Passed, |allocator| size_kind(allocator.size, &state));
    let is_new = matches!(callee, Some("_Znwm" | "_ZnwmRKSt9nothrow_t"));
    let mut uses = Uses { function: function.range(), size, is_new, ..Uses::default() };
    function.after(AllocatingCall { at, allocator }, &state, &returns_first, &mut |index, state, event| {
        uses.add(function, index, state);
        match event {
            Some(Event::Written { value: Value::Block(0), .. }) => uses.store(function, index, state),
            Some(Event::Written { place: Place::Block(Some(0)), .. }) => uses.start_is_written = true,
            Some(Event::Called { target, arguments, .. } | Event::Left { target, arguments }) => {
                if arguments[0] == Value::Block(0)
                    && let Some(name) = name(target)
                {
                    uses.first_argument_of.push(name.to_owned());
                }
            }
            Some(Event::Returned(Value::Block(0))) => uses.returned = true,
            _ => {}
        }
    });
    Some(uses)
}

fn size_kind(size: Size, state: &State) -> SizeKind {
    let arguments = (0..6).filter(|number| size.arguments & 1 << number != 0);
    let values: Vec<Value> = arguments.map(|number| state.argument(number)).collect();
    match values[..] {
        _ if values.iter().all(|value| matches!(value, Value::Constant(_))) => SizeKind::Constant,
        [only] if only.size().is_some() => SizeKind::Passed,
        _ => SizeKind::Computed,
    }
}

/// Where the address in a register is as well.
fn bases(state: &State, number: usize) -> Vec<Base> {
    let value = state.registers[number];
    let mut bases = vec![Base::Register(number)];
    match value {
        Value::Stack(_) | Value::Block(_) | Value::Inside => return Vec::new(),
        Value::Loaded(at) => bases.push(Base::Word(at)),
        Value::Static(address) => bases.push(Base::Pointer(address)),
        _ => {}
    }
    if value != Value::Unknown {
        let same =
            state.registers.iter().enumerate().filter(|(other, known)| *other != number && **known == value);
        bases.extend(same.map(|(other, _)| Base::Register(other)));
        let words = state.stack.iter().filter(|(_, known)| **known == value);
        bases.extend(words.map(|(at, _)| Base::Word(*at)));
    }
    bases
}

fn on_stack(value: Value) -> Option<i64> {
    match value {
        Value::Stack(at) => Some(at),
        _ => None,
    }
}

impl Uses {
    fn add(&mut self, function: &Function, index: usize, state: &State) {
        let mut registers = 0;
        for (number, value) in state.registers.iter().enumerate() {
            registers |= u16::from(*value == Value::Block(0)) << number;
        }
        let words = state.stack.iter().filter(|(_, value)| **value == Value::Block(0));
        let words: Vec<i64> = words.map(|(at, _)| *at).collect();
        if registers != 0 || !words.is_empty() {
            let pc = function.instruction(index).ip();
            let (rsp, rbp) = (on_stack(state.registers[RSP]), on_stack(state.registers[RBP]));
            self.held.push(Held { pc, registers, words, rsp, rbp });
        }
    }

    fn store(&mut self, function: &Function, index: usize, state: &State) {
        let code = function.instruction(index);
        if code.op0_kind() != OpKind::Memory
            || code.memory_index() != Register::None
            || code.segment_prefix() != Register::None
        {
            return;
        }
        let (bases, displacement) = match code.memory_base() {
            Register::RIP => (vec![Base::Static(code.ip_rel_memory_address())], 0),
            Register::None => (vec![Base::Static(code.memory_displacement64())], 0),
            register => {
                let number = register.full_register().number();
                (bases(state, number), code.memory_displacement64() as i64)
            }
        };
        let (rsp, rbp) = (on_stack(state.registers[RSP]), on_stack(state.registers[RBP]));
        self.stores.push(Store { pc: code.ip(), bases, displacement, rsp, rbp });
    }
}
