//! Containers of libstdc++.

use super::find::{argument, named, number, thin_pointer};
use crate::references::Hold;
use crate::references::compile::{Compiler, field};
use crate::references::slots::{Compiled, Kind, Op, Slot};
use stackglass_symbols::layouts::{BlockType, Layout};

/// Text, short ones within the value itself.
pub(super) fn string(compiler: &mut Compiler<'_>, layout: &Layout) -> Option<Compiled> {
    let layouts = compiler.layouts;
    let data = field(layout, "_M_dataplus")?;
    let (at, pointer) = named(layouts, layouts.get(data.type_id), "_M_p")?;
    let pointer = data.offset.checked_add(at)?.checked_add(thin_pointer(layouts, pointer)?.0)?;
    let length = number(layouts, layout, "_M_string_length")?;
    let (local, _) = named(layouts, layout, "_M_local_buf")?;
    let size = layouts.get(argument(layout, "_CharT")?).size;
    let slot = Slot {
        name: "".into(),
        base: 0,
        pointer,
        hold: Hold::Owns,
        contains: Some(BlockType::Bytes),
        text: size == 1,
        kind: Kind::CppString { length, local },
    };
    Some(Compiled { ops: vec![Op::Slot(slot)], ..Compiled::default() })
}
