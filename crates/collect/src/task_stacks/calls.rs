//! The names of the code on stacks: the calls at each address.

use foldhash::HashMap;
use std::sync::Arc;

/// An address in a module, by the index of the module; or one in no module.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Code {
    pub module: Option<u32>,
    /// Its address as in the file.
    pub offset: u64,
}

/// A call at an address: one of several if functions are inlined there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Call {
    pub function: Arc<str>,
    pub file: Arc<str>,
    /// 0 if unknown.
    pub line: u32,
    /// It is the body of an `async` function, block or closure.
    pub is_body: bool,
}

/// The calls at each address, innermost first.
pub(crate) type Calls = HashMap<Code, Arc<[Call]>>;
