//! `std::string`, `std::vector` and `std::deque`.

use super::super::find::{argument, named, number, thin_pointer};
use crate::references::compile::{Compiler, field};
use crate::references::reference::Hold;
use crate::references::slots::{Compiled, Kind, Op, Slot};
use stackglass_layouts::{BlockType, Layout, Layouts};

pub(super) fn owner(pointer: u64, contains: BlockType, text: bool, kind: Kind) -> Compiled {
    let hold = Hold::Owns;
    let slot = Slot { name: "".into(), base: 0, pointer, hold, contains: Some(contains), text, kind };
    Compiled { ops: vec![Op::Slot(slot)], ..Compiled::default() }
}

/// Offset of the thin pointer with this name.
pub(super) fn pointer(layouts: &Layouts, layout: &Layout, name: &str) -> Option<u64> {
    let (at, id) = named(layouts, layout, name)?;
    at.checked_add(thin_pointer(layouts, id)?.0)
}

/// Text, short ones within the value itself.
pub(super) fn string(compiler: &mut Compiler<'_>, layout: &Layout) -> Option<Compiled> {
    let layouts = compiler.layouts;
    let data = field(layout, "_M_dataplus")?;
    let pointer = data.offset.checked_add(pointer(layouts, layouts.get(data.type_id), "_M_p")?)?;
    let length = number(layouts, layout, "_M_string_length")?;
    let (local, _) = named(layouts, layout, "_M_local_buf")?;
    let size = layouts.get(argument(layout, "_CharT")?).size;
    Some(owner(pointer, BlockType::Bytes, size == 1, Kind::CppString { length, local }))
}

pub(super) fn vector(compiler: &mut Compiler<'_>, layout: &Layout) -> Option<Compiled> {
    let layouts = compiler.layouts;
    let element = argument(layout, "_Tp")?;
    let Some(start) = pointer(layouts, layout, "_M_start") else {
        // The bits of `vector<bool>`.
        let (at, iterator) = named(layouts, layout, "_M_start")?;
        let bits = at.checked_add(pointer(layouts, layouts.get(iterator), "_M_p")?)?;
        return Some(owner(bits, BlockType::Bytes, false, Kind::Thin { vptr: None }));
    };
    let size = layouts.get(element).size;
    let kind = Kind::CppVector {
        finish: pointer(layouts, layout, "_M_finish")?,
        end: pointer(layouts, layout, "_M_end_of_storage")?,
        size,
    };
    (size > 0).then(|| owner(start, BlockType::Elements(element), false, kind))
}

/// Chunks of elements, and a map of pointers to chunks. The edges to chunks begin at the deque, which knows their elements.
pub(super) fn deque(compiler: &mut Compiler<'_>, layout: &Layout) -> Option<Compiled> {
    let layouts = compiler.layouts;
    let element = argument(layout, "_Tp")?;
    let size = layouts.get(element).size;
    let of_iterator = |iterator: &str, name: &str| {
        let (at, id) = named(layouts, layout, iterator)?;
        at.checked_add(pointer(layouts, layouts.get(id), name)?)
    };
    let map = pointer(layouts, layout, "_M_map")?;
    let kind = Kind::CppDeque {
        map_size: number(layouts, layout, "_M_map_size")?,
        start: [of_iterator("_M_start", "_M_cur")?, of_iterator("_M_start", "_M_first")?],
        last: of_iterator("_M_start", "_M_last")?,
        first_node: of_iterator("_M_start", "_M_node")?,
        finish: [of_iterator("_M_finish", "_M_cur")?, of_iterator("_M_finish", "_M_first")?],
        last_node: of_iterator("_M_finish", "_M_node")?,
        size,
    };
    (size > 0).then(|| owner(map, BlockType::Elements(element), false, kind))
}
