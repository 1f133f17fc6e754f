//! Containers of libc++, the standard library of Clang, as far as a scan would not do: buffers with a length, text, owners. Its nodes
//! are followed by their layout.

use super::super::find::{argument, named, number};
use super::vectors::{owner, pointer};
use crate::references::compile::{Compiler, field};
use crate::references::reference::Hold;
use crate::references::slots::{Compiled, Condition, If, Kind, Op, holding, within};
use stackglass_layouts::{BlockType, Layout, Layouts, Shape};

/// The places of a container.
pub(super) fn model(compiler: &mut Compiler<'_>, name: &str, layout: &Layout) -> Option<Compiled> {
    match name {
        "std::__1::basic_string" => string(compiler, layout),
        "std::__1::vector" => vector(compiler, layout),
        "std::__1::unique_ptr" => unique(compiler, layout),
        "std::__1::shared_ptr" => shared(compiler, layout, Hold::Owns),
        "std::__1::weak_ptr" => shared(compiler, layout, Hold::Weak),
        _ => None,
    }
}

/// Text. The lowest bit says whether it has a block; otherwise it lies within the value.
fn string(compiler: &mut Compiler<'_>, layout: &Layout) -> Option<Compiled> {
    let layouts = compiler.layouts;
    let (at, long) = named(layouts, layout, "__l")?;
    let long = layouts.get(long);
    let text = at.checked_add(pointer(layouts, long, "__data_")?)?;
    let length = at.checked_add(number(layouts, long, "__size_")?)?;
    // In the other order of fields, which few systems have, the bit is elsewhere.
    if (at, text) != (0, 16) {
        return None;
    }
    let size = layouts.get(argument(layout, "_CharT")?).size;
    // The capacity has that bit as well; it is the lowest of an even number of bytes.
    let long = owner(text, BlockType::Bytes, size == 1, Kind::CppString { length, local: 0 });
    let condition = Condition::Bits { offset: 0, size: 1, mask: 1, values: vec![1] };
    let ops = vec![Op::If(If { condition, then: long.ops, otherwise: Vec::new() })];
    Some(Compiled { ops, ..Compiled::default() })
}

/// A pointer, which may lie in a pair with an allocator.
fn paired(layouts: &Layouts, layout: &Layout, name: &str) -> Option<u64> {
    let pair = field(layout, name)?;
    let inner = layouts.get(pair.type_id);
    match inner.shape {
        Shape::Pointer { .. } => Some(pair.offset),
        _ => pair.offset.checked_add(pointer(layouts, inner, "__value_")?),
    }
}

fn vector(compiler: &mut Compiler<'_>, layout: &Layout) -> Option<Compiled> {
    let layouts = compiler.layouts;
    let element = argument(layout, "_Tp")?;
    let start = pointer(layouts, layout, "__begin_")?;
    let Some(finish) = pointer(layouts, layout, "__end_") else {
        // The bits of `vector<bool>`.
        return Some(owner(start, BlockType::Bytes, false, Kind::Thin { vptr: None }));
    };
    let end = paired(layouts, layout, "__end_cap_").or_else(|| paired(layouts, layout, "__cap_"))?;
    let size = layouts.get(element).size;
    (size > 0)
        .then(|| owner(start, BlockType::Elements(element), false, Kind::CppVector { finish, end, size }))
}

fn unique(compiler: &mut Compiler<'_>, layout: &Layout) -> Option<Compiled> {
    let layouts = compiler.layouts;
    let at = paired(layouts, layout, "__ptr_")?;
    let value = argument(layout, "_Tp")?;
    let contains = match layouts.get(value).shape {
        Shape::Array { element, .. } => BlockType::Elements(element),
        _ => BlockType::One(value),
    };
    let vptr = compiler.compile(value).vptr;
    Some(owner(at, contains, false, Kind::Thin { vptr }))
}

/// The control block is shared; it contains the object, or its class has a pointer to it.
fn shared(compiler: &mut Compiler<'_>, layout: &Layout, hold: Hold) -> Option<Compiled> {
    let object = field(layout, "__ptr_")?;
    let control = field(layout, "__cntrl_")?;
    let of_object = if hold == Hold::Weak { Hold::Weak } else { Hold::Refers };
    let mut ops = holding(within("", object.offset, &compiler.compile(object.type_id).ops), of_object);
    let of_control = compiler.compile(control.type_id).ops.clone();
    ops.extend(holding(within("control", control.offset, &of_control), hold));
    Some(Compiled { ops, ..Compiled::default() })
}
