//! Roots: parts of memory that the program can use without a pointer from elsewhere.

use stackglass_layouts::{Local, TypeId};
use std::ops::Range;

/// Where a root lies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RootKind {
    /// In the writable data of a program or library.
    Static,
    /// In the thread-local storage of a thread.
    ThreadLocal,
    /// On the stack of a thread.
    Stack,
    /// In the registers of a thread.
    Register,
    /// In memory that belongs to none of these, nor to a heap.
    Other,
}

impl RootKind {
    /// All kinds, in the order of their nodes.
    pub const ALL: [RootKind; 5] =
        [RootKind::Static, RootKind::ThreadLocal, RootKind::Stack, RootKind::Register, RootKind::Other];

    /// The name of the node above all roots of this kind.
    pub fn node_name(self) -> &'static str {
        match self {
            RootKind::Static => "(static data)",
            RootKind::ThreadLocal => "(thread locals)",
            RootKind::Stack => "(thread stacks)",
            RootKind::Register => "(registers)",
            RootKind::Other => "(other memory)",
        }
    }

    /// Whether its words may be left over from earlier: they hold only what nothing else holds.
    pub fn is_doubtful(self) -> bool {
        matches!(self, RootKind::Stack | RootKind::Register | RootKind::Other)
    }
}

/// A variable, a stack frame, or other memory that holds pointers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Root {
    /// Where it lies.
    pub kind: RootKind,
    /// The module or thread that it belongs to.
    pub owner: String,
    /// The variable or the function.
    pub name: String,
    /// Its addresses. Empty for registers.
    pub range: Range<u64>,
    /// Its type, if debug information has it; else its words are scanned.
    pub type_id: Option<TypeId>,
    /// Local variables of a frame. Their values may be uninitialized, moved away or destroyed.
    pub locals: Vec<Local>,
    /// Values that lie in registers, with their names.
    pub registers: Vec<(&'static str, u64)>,
    /// The thread is inside a function of a container, which may be filling a buffer whose owner does not know its length yet.
    pub may_be_filling: bool,
    /// Pointers into the middle of blocks count. Not so in data of the C library's allocator.
    pub interior: bool,
    /// Other processes may have written the words. What only these lead to is in doubt.
    pub has_other_writers: bool,
}

impl Root {
    /// A root of unknown type without local variables and registers. Pointers into the middle of blocks count.
    pub fn new(kind: RootKind, owner: impl Into<String>, name: impl Into<String>, range: Range<u64>) -> Root {
        Root {
            kind,
            owner: owner.into(),
            name: name.into(),
            range,
            type_id: None,
            locals: Vec::new(),
            registers: Vec::new(),
            may_be_filling: false,
            interior: true,
            has_other_writers: false,
        }
    }
}
