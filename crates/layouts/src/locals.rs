//! Local variables of the functions on stacks: which have a value at a pc, and where it lies.
//!
//! Sources: DWARF 5 §2.6 (locations), §3.3 (functions, inlined calls), §4.1 (variables and parameters).

mod evaluate;
mod find;

pub(super) use find::of_frames;

use super::TypeId;
use std::sync::Arc;

/// A frame of a stopped thread.
#[derive(Clone, Debug)]
pub struct StoppedFrame {
    /// Index of its module in the list that is read.
    pub module: usize,
    /// Address in memory minus address in the file.
    pub bias: u64,
    /// Its lookup address in the file: the pc, or the return address minus 1.
    pub lookup: u64,
    /// Values of registers by DWARF's numbers, as far as they are known.
    pub registers: [Option<u64>; 17],
    /// Its canonical frame address: the stack pointer before the call.
    pub cfa: Option<u64>,
}

/// Copies as many bytes from an address on as can be read, and returns how many.
pub type ReadMemory<'a> = &'a dyn Fn(u64, &mut [u8]) -> usize;

/// A variable or parameter of a function on a stack.
///
/// Its value may not be initialized yet, or may be moved away or destroyed: debug information does not say.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Local {
    /// Its name. In an inlined function, the name of that function precedes it: `parse::config`.
    pub name: Arc<str>,
    /// Its type.
    pub type_id: TypeId,
    /// Where its value is.
    pub place: LocalPlace,
}

/// Where the value of a local variable is.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum LocalPlace {
    /// At this address.
    Memory(u64),
    /// Wholly or partly in registers. These are its bytes; there may be more than the type has.
    Bytes(Box<[u8]>),
}
