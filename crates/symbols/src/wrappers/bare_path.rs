//! Functions with two ways to the same allocator, which they call through a pointer: one that only passes a size on, and one that does
//! more with the size or the block than their code tells.
//!
//! `sqlite3Malloc` is one: it has its size rounded by a function that is reached through a pointer, and counts what it has allocated,
//! unless statistics are off. A function that makes an object has no path on which it returns what an allocator returned as it is.

use super::{Module, UNKNOWN, passed_on};
use crate::block_flow::{
    AllocatingCall, AllocatorResult, Event, Function, Path, ResultOf, Root, Size, State, Target, Value,
};
use iced_x86::{Instruction, OpKind};

impl Module<'_, '_> {
    /// The size that a function passes on where it returns what the pointer that it calls at an instruction returns, as it is. `state` is
    /// what is known before that instruction, and `size` the arguments of the allocator that are its size.
    pub(super) fn size_of_bare_path(
        &self,
        function: &Function,
        at: usize,
        state: &State,
        size: Size,
        result_of: ResultOf<'_>,
    ) -> Option<Size> {
        let pointer = pointer(function.instruction(at), state)?;
        let (mut calls, mut left) = (Vec::new(), None);
        function.follow(&State::at_start(), &mut |index, before, event| {
            let passes = |arguments: &[Value; 6]| {
                let is_same = self::pointer(function.instruction(index), before) == Some(pointer);
                passed_on(size, arguments).filter(|_| index != at && is_same)
            };
            match event {
                Some(Event::Left { arguments, .. }) => left = left.or_else(|| passes(&arguments)),
                Some(Event::Called { arguments, .. }) => {
                    calls.extend(passes(&arguments).map(|size| (index, before.clone(), size)));
                }
                _ => {}
            }
        });
        let returns = |index: usize, before: &State| {
            let call = AllocatingCall { at: index, allocator: UNKNOWN };
            let (seen, is_whole) = self.seen_after(function, call, before, result_of);
            is_whole && !seen.is_given_away() && seen.result() == Some(AllocatorResult::Returned)
        };
        let called = calls.iter().find(|(index, before, _)| returns(*index, before));
        left.or(called.map(|(.., size)| *size))
    }
}

/// The place of the pointer that a call or jump goes through.
fn pointer(code: &Instruction, state: &State) -> Option<Path> {
    match Target::of(code) {
        Target::Slot(slot) => Some(Path::new(Root::Static(slot))),
        Target::Unknown if code.op0_kind() == OpKind::Register => match state.register(code.op0_register()) {
            Value::Path(path) if matches!(path.root, Root::Static(_)) => Some(path),
            _ => None,
        },
        Target::Function(_) | Target::Unknown => None,
    }
}
