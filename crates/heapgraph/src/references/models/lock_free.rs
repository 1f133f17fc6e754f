//! Structures of crossbeam that threads share without locks: pointers with tags, queues of tasks of which others steal.

use super::find::{argument, named, number, plain, thin_pointer, unwrapped};
use crate::references::compile::{Compiler, base};
use crate::references::reference::Hold;
use crate::references::slots::{Compiled, Kind, Op, Slot, each_slot};
use stackglass_layouts::{BlockType, Layout, Layouts, Shape, TypeId};

/// `crossbeam_epoch::atomic::Atomic`.
pub(super) const ATOMIC: &str = "crossbeam_epoch::atomic::Atomic";

/// Offset of the word in a value, which is a number or a pointer, depending on the version.
fn word(layouts: &Layouts, id: TypeId) -> Option<u64> {
    let number = || plain(layouts, id).filter(|(_, size)| *size == 8);
    thin_pointer(layouts, id).map(|(at, _)| at).or_else(|| Some(number()?.0))
}

/// A pointer with a tag. It does not own its target: the structure around it decides when that is dropped. So it tells no type
/// to blocks of which none is known. Nodes that are not dropped yet may lead to some that are.
pub(super) fn atomic(compiler: &mut Compiler<'_>, layout: &Layout) -> Option<Compiled> {
    let layouts = compiler.layouts;
    let (at, data) = named(layouts, layout, "data")?;
    let target = argument(layout, "T").filter(|target| layouts.get(*target).size > 1);
    let slot = Slot {
        name: "".into(),
        base: 0,
        pointer: at.checked_add(word(layouts, data)?)?,
        hold: Hold::Refers,
        // Slices have a length before them, which their type does not tell.
        contains: target.map(BlockType::One),
        text: false,
        kind: Kind::AnyTag,
    };
    Some(Compiled { ops: vec![Op::Slot(slot)], ..Compiled::default() })
}

/// A queue of which other threads steal (`crossbeam_deque::deque::Inner`). Its buffer, whose address and size are in a block of
/// their own, is a ring. Elements that were taken stay there as copies.
pub(super) fn steal_deque(compiler: &mut Compiler<'_>, layout: &Layout) -> Option<Compiled> {
    let layouts = compiler.layouts;
    let Shape::Struct(fields) = &layout.shape else { return None };
    let element = argument(layout, "T")?;
    let size = layouts.get(element).size;
    let (at, held) = named(layouts, layout, "buffer")?;
    let (inner, held) = unwrapped(layouts, held, |layout| base(&layout.name) == ATOMIC)?;
    let buffer = layouts.get(argument(layouts.get(held), "T")?);
    let (pointer, target) = named(layouts, buffer, "ptr")?;
    let kind = Kind::StealDeque {
        front: number(layouts, layout, "front")?,
        back: number(layouts, layout, "back")?,
        elements: pointer.checked_add(thin_pointer(layouts, target)?.0)?,
        capacity: number(layouts, buffer, "cap")?,
        size,
    };
    let slot = Slot {
        name: "buffer.ptr".into(),
        base: 0,
        pointer: at.checked_add(inner)?.checked_add(word(layouts, held)?)?,
        hold: Hold::Owns,
        contains: Some(BlockType::Elements(element)),
        text: false,
        kind,
    };
    let mut compiled = compiler.fields(layout, fields);
    each_slot(&mut compiled.ops, &mut |slot| slot.name = "buffer".into());
    if size > 0 {
        compiled.ops.push(Op::Slot(slot));
    }
    Some(compiled)
}

/// The buffer of such a queue. Only the queue knows which of its elements are in use, and owns it.
pub(super) fn steal_buffer(compiler: &mut Compiler<'_>, layout: &Layout) -> Option<Compiled> {
    let layouts = compiler.layouts;
    let (at, pointer) = named(layouts, layout, "ptr")?;
    let element = argument(layout, "T")?;
    let slot = Slot {
        name: "ptr".into(),
        base: 0,
        pointer: at.checked_add(thin_pointer(layouts, pointer)?.0)?,
        hold: Hold::Refers,
        contains: (layouts.get(element).size > 0).then_some(BlockType::Elements(element)),
        text: false,
        kind: Kind::Thin { vptr: None },
    };
    Some(Compiled { ops: vec![Op::Slot(slot)], ..Compiled::default() })
}
