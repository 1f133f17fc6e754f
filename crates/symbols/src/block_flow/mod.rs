//! Where a block goes that a function has allocated, by the code of the function.
//!
//! Registers and words on the stack are followed along all paths from the call of the allocator on. On a path on which the
//! allocator has failed there is no block, so such paths end.

mod callees;
mod jump_tables;
mod state;
mod step;
mod value;

pub(crate) use callees::{Callees, Target};
pub(crate) use state::{PRESERVED, Place, State};
pub(crate) use value::{ARGUMENTS, Index, Path, Root, Size, Value};

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory};
use jump_tables::JumpTables;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use step::taken;

/// Most visits of instructions, as a multiple of their number.
const VISITS: usize = 16;

/// How an allocator is called.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Allocator {
    /// The arguments that are its size.
    pub size: Size,
    /// Where it leaves the block.
    pub result: AllocatorResult,
}

/// Where an allocator leaves the block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum AllocatorResult {
    /// It returns the block.
    Returned,
    /// It stores the block where an argument points.
    Stored { argument: u8, returned: Rest },
}

/// What an allocator returns that stores the block elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Rest {
    /// Zero if it has succeeded.
    Status,
    /// The block as well, on purpose or by chance.
    Block,
    Unknown,
}

/// The code of a function.
pub(crate) struct Function {
    code: Vec<Instruction>,
    range: Range<u64>,
    jump_tables: JumpTables,
    /// What is known on all paths from its start.
    states: OnceCell<Option<States>>,
}

/// A call that an allocated block comes from.
#[derive(Clone, Copy)]
pub(crate) struct AllocatingCall {
    /// The index of the instruction.
    pub at: usize,
    pub allocator: Allocator,
}

/// What happens on the way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// A word in memory is written.
    Written { place: Place, value: Value },
    /// A function is called.
    Called { target: Target, arguments: [Value; 6], is_variadic: bool },
    /// The function returns.
    Returned(Value),
    /// The code goes on outside of the function.
    Left { target: Target, arguments: [Value; 6] },
}

impl Function {
    /// Decodes the code of a function, without its parts elsewhere. `bytes_at` gives the module's bytes from an address on.
    pub fn decode<'data>(
        bytes: &[u8],
        start: u64,
        bytes_at: impl Fn(u64) -> Option<&'data [u8]>,
    ) -> Function {
        let code: Vec<Instruction> =
            Decoder::with_ip(64, bytes, start, DecoderOptions::NONE).into_iter().collect();
        let range = start..start + bytes.len() as u64;
        let jump_tables = JumpTables::read(&code, &range, bytes_at);
        Function { code, range, jump_tables, states: OnceCell::new() }
    }

    /// The addresses of its code.
    pub fn range(&self) -> Range<u64> {
        self.range.clone()
    }

    /// The instruction that ends at an address.
    pub fn ending_at(&self, end: u64) -> Option<usize> {
        self.code.binary_search_by_key(&end, Instruction::next_ip).ok()
    }

    pub fn instruction(&self, index: usize) -> &Instruction {
        &self.code[index]
    }

    /// The addresses of the instructions that follow one in its block.
    pub fn straight_behind(&self, index: usize) -> Range<u64> {
        let last =
            (index + 1..self.code.len()).find(|at| self.ends_block(*at)).unwrap_or(self.code.len() - 1);
        self.code[index].next_ip()..self.code[last].next_ip()
    }

    fn at(&self, address: u64) -> Option<usize> {
        self.code.binary_search_by_key(&address, Instruction::ip).ok()
    }

    /// Whether a block of instructions ends with this one.
    fn ends_block(&self, index: usize) -> bool {
        let code = &self.code[index];
        let goes_on =
            matches!(code.flow_control(), FlowControl::Next | FlowControl::Call | FlowControl::IndirectCall);
        !goes_on || code.is_invalid()
    }

    /// What is known before an instruction when the function has come to it. `None` if no path is known.
    ///
    /// The paths are followed once: `result_of` is the same in all calls.
    pub fn before(&self, index: usize, result_of: ResultOf<'_>) -> Option<State> {
        let mut walk = Walk::new(self, None, result_of);
        let states = self.states.get_or_init(|| walk.run(0, State::at_start())).as_ref()?;
        let first = (0..index).rev().find(|before| self.ends_block(*before)).map_or(0, |end| end + 1);
        let mut found: Option<State> = None;
        walk.replay(states.range(first..=index), &mut |at, state, _| {
            if at == index {
                found = Some(found.as_ref().map_or_else(|| state.clone(), |known| known.join(state)));
            }
        });
        found
    }

    /// Follows all paths from the start. False if not all can be followed.
    pub fn follow(&self, state: &State, each: Each<'_>) -> bool {
        let mut walk = Walk::new(self, None, &|_, _| None);
        let Some(states) = walk.run(0, state.clone()) else { return false };
        walk.replay(&states, each);
        true
    }

    /// Follows a block from its allocation on. `state` is what is known before the call. False if not all paths can be
    /// followed.
    pub fn after(
        &self,
        call: AllocatingCall,
        state: &State,
        result_of: ResultOf<'_>,
        each: Each<'_>,
    ) -> bool {
        let mut walk = Walk::new(self, Some(call), result_of);
        let mut first = state.clone();
        walk.call(&mut first, call.at);
        let Some(states) = walk.run(call.at + 1, first) else { return false };
        walk.replay(&states, each);
        true
    }
}

/// The walk through a function.
struct Walk<'a> {
    function: &'a Function,
    allocation: Option<AllocatingCall>,
    result_of: ResultOf<'a>,
    factory: InstructionInfoFactory,
    /// Whether all that is known is final, so that `each` is called.
    is_replay: bool,
}

/// Whether a function of any number of arguments may be called: the number of vector registers with arguments is set (System V
/// ABI x86-64, 3.2.3).
fn is_variadic(state: &State) -> bool {
    matches!(state.registers[0], Value::Constant(0..=8))
}

/// What is known at the starts of blocks of instructions.
type States = BTreeMap<usize, State>;

/// What the target of a call or jump returns, if that is known: `memset` its first argument.
pub(crate) type ResultOf<'a> = &'a dyn Fn(&Instruction, &[Value; 6]) -> Option<Value>;

/// Receives the index of each instruction with the state before it, and what it does.
pub(crate) type Each<'a> = &'a mut dyn FnMut(usize, &State, Option<Event>);

impl<'a> Walk<'a> {
    fn new(function: &'a Function, allocation: Option<AllocatingCall>, result_of: ResultOf<'a>) -> Walk<'a> {
        Walk { function, allocation, result_of, factory: InstructionInfoFactory::new(), is_replay: false }
    }

    /// Finds what is known at the start of each block of instructions. `None` if that takes too long.
    fn run(&mut self, first: usize, state: State) -> Option<States> {
        self.is_replay = false;
        let mut states = States::from([(first, state)]);
        // Most paths lead to higher addresses: a block is then visited after all that lead to it.
        let mut open = BTreeSet::from([first]);
        let mut left = self.function.code.len().saturating_mul(VISITS);
        while let Some(start) = open.pop_first() {
            let state = states.get(&start)?.clone();
            let mut next = Vec::new();
            self.block(start, state, &mut left, &mut |_, _, _| {}, &mut next)?;
            for (target, state) in next {
                let joined = match states.get(&target) {
                    Some(known) => known.join(&state),
                    None => state,
                };
                if states.get(&target) != Some(&joined) {
                    states.insert(target, joined);
                    open.insert(target);
                }
            }
        }
        Some(states)
    }

    /// Walks through blocks once more.
    fn replay<'s>(&mut self, states: impl IntoIterator<Item = (&'s usize, &'s State)>, each: Each<'_>) {
        self.is_replay = true;
        for (start, state) in states {
            self.block(*start, state.clone(), &mut usize::MAX.clone(), each, &mut Vec::new());
        }
    }

    /// Walks through a block to its end, where its successors are added to `next`.
    fn block(
        &mut self,
        start: usize,
        mut state: State,
        left: &mut usize,
        each: Each<'_>,
        next: &mut Vec<(usize, State)>,
    ) -> Option<()> {
        for index in start..self.function.code.len() {
            *left = left.checked_sub(1)?;
            let code = &self.function.code[index];
            match code.flow_control() {
                _ if code.is_invalid() => return Some(()),
                FlowControl::Next if !self.is_replay => {
                    step::execute(&mut state, code, &mut self.factory, &mut |_| {});
                }
                FlowControl::Next => {
                    let (before, mut written) = (state.clone(), None);
                    step::execute(&mut state, code, &mut self.factory, &mut |write| written = Some(write));
                    let event = written.map(|step::Write { place, value }| Event::Written { place, value });
                    each(index, &before, event);
                }
                FlowControl::Call | FlowControl::IndirectCall => {
                    let arguments = std::array::from_fn(|number| state.argument(number));
                    let target = Target::of(code);
                    let is_variadic = is_variadic(&state);
                    each(index, &state, Some(Event::Called { target, arguments, is_variadic }));
                    self.call(&mut state, index);
                }
                FlowControl::ConditionalBranch => {
                    each(index, &state, None);
                    let taken = taken(state.tested, code.condition_code());
                    if taken != Some(false) {
                        self.jump(index, state.clone(), each, next);
                    }
                    if taken != Some(true) {
                        next.push((index + 1, state));
                    }
                    return Some(());
                }
                FlowControl::UnconditionalBranch => {
                    self.jump(index, state, each, next);
                    return Some(());
                }
                FlowControl::IndirectBranch => {
                    match self.function.jump_tables.targets(code, &state) {
                        [] => self.jump(index, state, each, next),
                        targets => {
                            let inside = targets.iter().filter_map(|target| self.function.at(*target));
                            next.extend(inside.map(|target| (target, state.clone())));
                        }
                    }
                    return Some(());
                }
                FlowControl::Return => {
                    each(index, &state, Some(Event::Returned(state.registers[0])));
                    return Some(());
                }
                _ => return Some(()),
            }
        }
        Some(())
    }

    fn jump(&self, index: usize, state: State, each: Each<'_>, next: &mut Vec<(usize, State)>) {
        let code = &self.function.code[index];
        let target = Target::of(code);
        let inside = match target {
            Target::Function(address) => self.function.at(address),
            _ => None,
        };
        match inside {
            Some(target) => next.push((target, state)),
            None => {
                let arguments = std::array::from_fn(|number| state.argument(number));
                match (self.result_of)(code, &arguments) {
                    // As if it were called, and its result returned.
                    Some(value) => {
                        let is_variadic = is_variadic(&state);
                        each(index, &state, Some(Event::Called { target, arguments, is_variadic }));
                        each(index, &state, Some(Event::Returned(value)));
                    }
                    None => each(index, &state, Some(Event::Left { target, arguments })),
                }
            }
        }
    }

    /// After a call.
    fn call(&self, state: &mut State, index: usize) {
        let code = &self.function.code[index];
        let arguments: [Value; 6] = std::array::from_fn(|number| state.argument(number));
        let result = (self.result_of)(code, &arguments);
        state.call();
        state.set_result(result.unwrap_or_else(|| Path::new(Root::Result(code.next_ip())).into()));
        // Another call of the allocator gives another block.
        let Some(allocation) = self.allocation.filter(|allocation| allocation.at == index) else { return };
        match allocation.allocator.result {
            AllocatorResult::Returned => state.set_result(Value::Block(0)),
            AllocatorResult::Stored { argument, returned } => {
                if let Value::Stack(at) = arguments[usize::from(argument)] {
                    state.store(Place::Stack(at), 8, Value::Block(0));
                }
                state.set_result(match returned {
                    Rest::Status => Value::Status,
                    Rest::Block => Value::Block(0),
                    Rest::Unknown => Value::Unknown,
                });
            }
        }
    }
}
