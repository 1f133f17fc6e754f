//! `std::io::Error` on 64-bit machines: a pointer with a tag in its low bits.

use crate::references::compile::{Compiler, field};
use crate::references::reference::Hold;
use crate::references::slots::{Compiled, Kind, Op, Slot};
use stackglass_layouts::{BlockType, Layout};

/// The bits of the tag, and the tag of a boxed error of the user.
const TAG: u64 = 3;
const CUSTOM: u64 = 1;

pub(super) fn io_error(compiler: &mut Compiler<'_>, layout: &Layout) -> Option<Compiled> {
    let pointer = field(layout, "__0")?;
    let (at, _) = super::find::thin_pointer(compiler.layouts, pointer.type_id)?;
    let slot = Slot {
        name: "".into(),
        base: pointer.offset,
        pointer: at,
        hold: Hold::Owns,
        contains: compiler.layouts.by_name("std::io::error::Custom").map(BlockType::One),
        text: false,
        kind: Kind::Tagged { mask: TAG, tag: CUSTOM },
    };
    Some(Compiled { ops: vec![Op::Slot(slot)], ..Compiled::default() })
}
