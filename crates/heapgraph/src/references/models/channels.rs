//! Channels of `std::sync::mpsc` and crossbeam, and crossbeam's queues of tasks: a slot's state tells whether it holds a message.

use super::find::{initialized, number};
use crate::references::compile::{Compiler, field};
use crate::references::reference::Hold;
use crate::references::slots::{Compiled, Condition, If, Op, each_slot, holding, within};
use stackglass_layouts::{Field, Layout, Shape};

/// Bits of the state of a slot in an unbounded channel.
const WRITTEN: u64 = 1;
const READ: u64 = 2;

/// A sender or receiver: all of a channel share it.
pub(super) fn end(compiler: &mut Compiler<'_>, layout: &Layout) -> Option<Compiled> {
    let counter = field(layout, "counter")?;
    let compiled = compiler.compile(counter.type_id);
    let ops = holding(within("", counter.offset, &compiled.ops), Hold::Owns);
    Some(Compiled { ops, ..Compiled::default() })
}

/// An unbounded channel: a list of blocks of slots.
pub(super) fn list(compiler: &mut Compiler<'_>, layout: &Layout) -> Option<Compiled> {
    field(layout, "head")?;
    field(layout, "tail")?;
    let Shape::Struct(fields) = &layout.shape else { return None };
    let mut compiled = compiler.fields(layout, fields);
    each_slot(&mut compiled.ops, &mut |slot| {
        if slot.name.starts_with("head") {
            slot.hold = Hold::Owns;
        }
    });
    Some(compiled)
}

pub(super) fn block(compiler: &mut Compiler<'_>, layout: &Layout) -> Option<Compiled> {
    field(layout, "slots")?;
    field(layout, "next")?;
    let Shape::Struct(fields) = &layout.shape else { return None };
    let mut compiled = compiler.fields(layout, fields);
    each_slot(&mut compiled.ops, &mut |slot| {
        if &*slot.name == "next" {
            slot.hold = Hold::Owns;
        }
    });
    Some(compiled)
}

pub(super) fn list_slot(compiler: &mut Compiler<'_>, layout: &Layout) -> Option<Compiled> {
    let offset = number(compiler.layouts, layout, "state")?;
    let mask = WRITTEN | READ;
    message(compiler, layout, Condition::Bits { offset, size: 8, mask, values: vec![WRITTEN] })
}

pub(super) fn array_slot(compiler: &mut Compiler<'_>, layout: &Layout) -> Option<Compiled> {
    let offset = number(compiler.layouts, layout, "stamp")?;
    message(compiler, layout, Condition::Stamp { offset })
}

fn message(compiler: &mut Compiler<'_>, layout: &Layout, condition: Condition) -> Option<Compiled> {
    let message: &Field = field(layout, "msg").or_else(|| field(layout, "task"))?;
    let compiled = {
        let message = initialized(compiler, message.type_id);
        compiler.compile(message)
    };
    let then = within("", message.offset, &compiled.ops);
    let held = If { condition, then, otherwise: Vec::new() };
    let ops = if compiled.ops.is_empty() { Vec::new() } else { vec![Op::If(held)] };
    Some(Compiled { ops, incomplete: compiled.incomplete && compiled.size > 0, ..Compiled::default() })
}
