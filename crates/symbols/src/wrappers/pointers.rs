//! Calls through pointers: what they may lead to, and so which of their arguments may be a size.
//!
//! A function that ends with the call of an allocator is not on the stack. Its caller seems to have called the allocator, but has
//! passed other arguments: `l_alloc(ud, block, old, new)` of Lua ends with `realloc(block, new)`.

use super::{LARGEST, Module, is_chosen, passed_on};
use crate::block_flow::{Function, Size, Value};
use iced_x86::OpKind;

/// Arguments of a call through a pointer that may be a size, if nothing is known of the function.
const FIRST: [usize; 2] = [0, 1];

/// What is known of the size that a call through a pointer asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Asked {
    /// It comes from these arguments of the caller.
    Passed(Size),
    /// The caller has chosen it.
    Chosen,
}

impl Module<'_, '_> {
    /// The size in the arguments of a call through a pointer. `pointers`: a bit for each argument of the caller that is a pointer.
    pub(super) fn asked_through_pointer(&self, arguments: &[Value; 6], pointers: u8) -> Option<Asked> {
        let guess = asked(arguments, pointers);
        let known = self.ending_with_allocators();
        if known.is_empty() || guess == Some(Asked::Chosen) {
            return guess.filter(|_| known.is_empty());
        }
        if known.iter().all(|size| is_chosen(*size, arguments)) {
            return Some(Asked::Chosen);
        }
        let mut all: Option<Size> = None;
        for size in known {
            let size = passed_on(*size, arguments)?;
            all = Some(Size {
                arguments: size.arguments | all.map_or(0, |all| all.arguments),
                is_product: size.is_product || all.is_some_and(|all| all.is_product),
            });
        }
        all.filter(|size| size.arguments & pointers == 0).map(Asked::Passed)
    }

    /// The sizes of the functions of the file that end with the call of an allocator, in all ways in which they are called.
    fn ending_with_allocators(&self) -> &[Size] {
        self.ending.get_or_init(|| {
            let jumps = self.code.jumps().filter_map(|(address, target)| {
                let allocator = self.allocator(target, 0)?;
                let range = self.code.range_around(address)?;
                (range.end - range.start <= LARGEST).then_some((range.start, allocator.size))
            });
            let mut jumps: Vec<(u64, Size)> = jumps.collect();
            jumps.sort_unstable_by_key(|(start, size)| (*start, size.arguments));
            jumps.dedup();
            // Those that are called as the allocator is need not be known.
            let found = jumps.into_iter().filter_map(|(start, size)| {
                let outer = self.ending_with_allocator(start, 1)?.size;
                (outer.arguments != 0 && outer != size).then_some(outer)
            });
            let mut sizes: Vec<Size> = found.collect();
            sizes.sort_unstable_by_key(|size| (size.arguments, size.is_product));
            sizes.dedup();
            sizes
        })
    }
}

/// The size in the arguments of a function that is called as those of the C library are, or with a context before.
fn asked(arguments: &[Value; 6], pointers: u8) -> Option<Asked> {
    let passed = |number: usize| arguments[number].size().filter(|size| size.arguments & pointers == 0);
    let is_chosen = |number: usize| matches!(arguments[number], Value::Constant(2..));
    match FIRST.map(passed) {
        [None, None] if is_chosen(0) => Some(Asked::Chosen),
        _ if FIRST.into_iter().any(is_chosen) => None,
        [Some(size), _] => Some(Asked::Passed(size)),
        // Registers that the function has not set may hold no arguments.
        [None, Some(size)] if arguments[1] != Value::Argument(1) => Some(Asked::Passed(size)),
        _ => None,
    }
}

/// The arguments that the code before an instruction uses as pointers, a bit for each.
pub(super) fn pointers_before(function: &Function, at: usize) -> u8 {
    let mut pointers = 0;
    function.follow(&crate::block_flow::State::at_start(), &mut |index, state, _| {
        let code = function.instruction(index);
        let has_memory = (0..code.op_count()).any(|operand| code.op_kind(operand) == OpKind::Memory);
        if index <= at
            && has_memory
            && let Value::Argument(number) = state.register(code.memory_base())
        {
            pointers |= 1 << number;
        }
    });
    pointers
}
