//! The names of the code on stacks: the calls at each address.

use foldhash::HashMap;
use stackglass_profile::Frame;
use stackglass_symbols::is_coroutine_body;
use std::sync::Arc;

/// An address in a module, or one in no module.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Code {
    /// The index of its module.
    pub module: Option<u32>,
    /// Its address as in the file.
    pub offset: u64,
}

/// A call at an address: one of several if functions are inlined there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Call {
    /// The function that is called.
    pub function: Arc<str>,
    /// The file of its code at this address.
    pub file: Arc<str>,
    /// The line there; 0 if unknown.
    pub line: u32,
    /// It is the body of an `async` function, block or closure.
    pub is_body: bool,
}

impl Call {
    /// That of a frame with a name.
    pub fn from_frame(frame: &Frame) -> Call {
        Call {
            function: frame.func.clone(),
            file: frame.file.clone(),
            line: u32::try_from(frame.line).unwrap_or(0),
            is_body: is_coroutine_body(frame),
        }
    }
}

/// The calls at each address, innermost first.
pub type Calls = HashMap<Code, Arc<[Call]>>;
