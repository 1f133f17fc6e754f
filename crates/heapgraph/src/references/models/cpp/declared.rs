//! What debug information says of containers in names only: types of nodes, and what pointers lead to.

use crate::references::reference::Hold;
use crate::references::slots::{Kind, Op, Slot};
use stackglass_layouts::{BlockType, Layouts, TypeId};

/// The type `name<arguments>`, as GCC writes it.
pub(super) fn instance(layouts: &Layouts, name: &str, arguments: &str) -> Option<TypeId> {
    let space = if arguments.ends_with('>') { " " } else { "" };
    layouts
        .by_name(&format!("{name}<{arguments}{space}>"))
        .or_else(|| layouts.by_name(&format!("{name}<{arguments}>")))
}

/// A pointer of which the code of the library knows what it leads to.
pub(super) fn slot(name: &str, pointer: u64, hold: Hold, contains: Option<TypeId>, kind: Kind) -> Op {
    let contains = contains.map(BlockType::One);
    Op::Slot(Slot { name: name.into(), base: 0, pointer, hold, contains, text: false, kind })
}
