//! Where a report takes its samples from: a recording, or a word buffer with its dictionary.

use crate::{Data, Dictionary, Recording};

/// What a report is made of.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// One of our recordings, symbolized.
    Recording(&'a Recording),
    /// A buffer in Julia's layout, with the names of its addresses.
    Data(&'a Data, &'a Dictionary),
}

impl<'a> From<&'a Recording> for Source<'a> {
    fn from(recording: &'a Recording) -> Source<'a> {
        Source::Recording(recording)
    }
}

impl<'a> From<(&'a Data, &'a Dictionary)> for Source<'a> {
    fn from((data, dictionary): (&'a Data, &'a Dictionary)) -> Source<'a> {
        Source::Data(data, dictionary)
    }
}
