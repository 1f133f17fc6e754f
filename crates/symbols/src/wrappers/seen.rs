//! What a function does with a block that it has allocated, and whether that is all that a wrapper does.

use super::names::Effect;
use crate::block_flow::{AllocatorResult, Event, Place, Rest, Target, Value};

/// What a function does with a block.
#[derive(Default)]
pub(super) struct Seen {
    /// The offset in the block that is returned.
    returned: Option<i64>,
    /// Whether something else than the block is returned.
    returns_other: bool,
    /// Whether the block is returned on purpose, not because a register still has it.
    is_meant: bool,
    /// The argument that says where the block is stored.
    stored: Option<u8>,
    /// Arguments that say where other things are stored.
    others_stored: u8,
    /// The highest offset that is written in the block.
    written: Option<i64>,
    /// Where the caller's own data is copied to.
    copied: Option<i64>,
    /// The highest offset in the block that something remembers, as a list of blocks does.
    listed: Option<i64>,
    /// The highest offset in the block that a static variable or a field of an argument gets.
    owned: Option<i64>,
    /// Whether the block is given to code that may do anything with it.
    given_away: bool,
    /// Whether the block is stored in several places, or is left to other code.
    used: bool,
}

/// The offset of an address in the block.
fn offset_of(value: Value) -> Option<i64> {
    match value {
        Value::Block(offset) => Some(offset),
        Value::Inside => Some(i64::MAX),
        _ => None,
    }
}

impl Seen {
    /// `is_meant`: whether the register of results was set for the result. `is_static`: whether a static variable is written.
    pub fn add(
        &mut self,
        event: Event,
        is_meant: bool,
        is_static: bool,
        effect: &dyn Fn(Target, &[Value; 6]) -> Effect,
    ) {
        match event {
            // Cleared, or the end of a text.
            Event::Written { place: Place::Block(None), value: Value::Constant(0) } => {}
            Event::Written { place: Place::Block(at), .. } => {
                self.written = self.written.max(Some(at.unwrap_or(i64::MAX)));
            }
            Event::Written { place: Place::Argument(number, 0), value: Value::Block(0) } => {
                self.used |= self.stored.is_some_and(|known| known != number);
                self.stored = Some(number);
            }
            Event::Written { place, value } => match (place, offset_of(value)) {
                (Place::Stack(_), _) => {}
                (Place::Unknown, Some(offset)) if !is_static => self.listed = self.listed.max(Some(offset)),
                (_, Some(offset)) => self.owned = self.owned.max(Some(offset)),
                (Place::Argument(number, at), None) if at != 0 || value != Value::Constant(0) => {
                    self.others_stored |= 1 << number;
                }
                _ => {}
            },
            Event::Called { target, arguments, is_variadic } => {
                self.add_call(target, &arguments, is_variadic, effect)
            }
            Event::Returned(Value::Block(offset)) => {
                self.returns_other |= self.returned.is_some_and(|known| known != offset);
                self.returned = Some(offset);
                self.is_meant |= is_meant;
            }
            Event::Returned(Value::Constant(0)) => {}
            Event::Returned(_) => self.returns_other = true,
            Event::Left { .. } => self.used = true,
        }
    }

    fn add_call(
        &mut self,
        target: Target,
        arguments: &[Value; 6],
        is_variadic: bool,
        effect: &dyn Fn(Target, &[Value; 6]) -> Effect,
    ) {
        let is_block = |value: &Value| offset_of(*value).is_some();
        // A list of arguments of any number is printed.
        let is_printed = is_variadic && !is_block(&arguments[0]);
        if is_printed || !arguments.iter().any(is_block) {
            return;
        }
        match effect(target, arguments) {
            Effect::None => {}
            Effect::Copied(Value::Block(to)) if self.copied.is_none_or(|known| known == to) => {
                self.copied = Some(to)
            }
            Effect::Copied(_) | Effect::Written => self.written = Some(i64::MAX),
            Effect::Unknown => self.given_away = true,
        }
    }

    /// Whether other code has had the block, of which it is not known what it does.
    pub fn is_given_away(&self) -> bool {
        self.given_away
    }

    /// Where a wrapper leaves the block. `None` if the function is no wrapper.
    pub fn result(&self) -> Option<AllocatorResult> {
        if self.used {
            return None;
        }
        match (self.returned, self.stored) {
            // What lies before the returned address is a header, and may be in lists.
            (Some(offset), stored) if stored.is_none() || offset > 0 => {
                let in_header = |at: Option<i64>| at.is_none_or(|at| at < offset);
                let is_wrapper = !self.returns_other
                    && in_header(self.written)
                    && in_header(self.owned)
                    && (in_header(self.listed) || self.listed == Some(offset) && self.is_meant)
                    && self.copied.is_none_or(|to| to == offset);
                is_wrapper.then_some(AllocatorResult::Returned)
            }
            (returned, Some(argument))
                if self.written.is_none()
                    && self.copied.is_none()
                    && self.listed.is_none()
                    && self.owned.is_none()
                    && self.others_stored & 1 << argument == 0
                    && returned.is_none_or(|offset| offset == 0) =>
            {
                let is_block = returned == Some(0) && !self.returns_other;
                let returned = if is_block { Rest::Block } else { Rest::Unknown };
                Some(AllocatorResult::Stored { argument, returned })
            }
            _ => None,
        }
    }
}
