//! What functions of the file do with a block that they are given, by their code.

use super::names::{self, Effect};
use super::{LARGEST, Module};
use crate::block_flow::{ARGUMENTS, Event, Place, State, Target, Value};

/// Most functions, each called by the one before, whose code is read.
const DEEPEST: usize = 2;

impl Module<'_, '_> {
    /// What a function does with the block in its arguments.
    pub(super) fn effect(&self, target: Target, arguments: &[Value; 6]) -> Effect {
        self.effect_within(target, arguments, DEEPEST)
    }

    fn effect_within(&self, target: Target, arguments: &[Value; 6], left: usize) -> Effect {
        let by_name = self.code.name(target).map(|name| names::effect(name, arguments));
        match (by_name.unwrap_or(Effect::Unknown), target) {
            (Effect::Unknown, Target::Function(start)) if left > 0 => {
                self.effect_by_code(start, arguments, left - 1).unwrap_or(Effect::Unknown)
            }
            (effect, _) => effect,
        }
    }

    fn effect_by_code(&self, start: u64, arguments: &[Value; 6], left: usize) -> Option<Effect> {
        let function = self.function_at(start, LARGEST)?;
        let is_block = |value: &Value| matches!(value, Value::Block(_) | Value::Inside);
        let mut state = State::at_start();
        for (register, value) in ARGUMENTS.into_iter().zip(arguments).filter(|(_, value)| is_block(value)) {
            state.registers[register] = *value;
        }
        let (mut is_written, mut is_unknown) = (false, false);
        let is_whole = function.follow(&state, &mut |_, _, event| match event {
            Some(Event::Written { place: Place::Block(_), .. }) => is_written = true,
            Some(Event::Written { place, value }) => {
                is_unknown |= is_block(&value) && !matches!(place, Place::Stack(_));
            }
            Some(Event::Called { target, arguments, .. } | Event::Left { target, arguments }) => {
                if arguments.iter().any(is_block) {
                    match self.effect_within(target, &arguments, left) {
                        Effect::None => {}
                        Effect::Written => is_written = true,
                        Effect::Copied(_) | Effect::Unknown => is_unknown = true,
                    }
                }
            }
            Some(Event::Returned(_)) | None => {}
        });
        match (is_written, is_unknown || !is_whole) {
            (true, _) => Some(Effect::Written),
            (false, false) => Some(Effect::None),
            (false, true) => None,
        }
    }
}
