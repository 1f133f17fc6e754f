//! What is wrong with a heap snapshot, or with a recording that holds one. The caller knows the name of the file.

use std::io;

/// An error without the name of the file.
#[derive(Debug)]
pub(crate) enum Fault {
    System(io::Error),
    At { offset: u64, what: String },
    Whole(String),
}

impl Fault {
    pub(crate) fn at(offset: u64, what: impl Into<String>) -> Self {
        Self::At { offset, what: what.into() }
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}
