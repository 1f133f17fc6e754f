//! Runs recorded cases against our own code and says where they differ.
//!
//! A case is a JSON file in a folder named `cases`; larger inputs lie in the folder `datasets`
//! beside it. What was recorded and how is told in the `README.md` beside both. Every case runs
//! twice over: as recorded, with all of the reference's defects switched on, and as our users see
//! it, against goldens of our own (folder `ours`; where there is none, ours equals the recorded one).
//! Folder `corrected` holds what we say where the record itself shows a defect that is not repeated.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod case;
mod folder;
mod judge;
mod print;

pub use folder::{Error, Options, Outcome, run};

/// Which behaviour is held against which expectation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// With the reference's defects, against what was recorded.
    Recorded,
    /// Without, against our own goldens.
    Ours,
}

/// A case that did not pass.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// Name of the case.
    pub case: String,
    /// As what it ran.
    pub mode: Mode,
    /// What differs, for people.
    pub text: String,
}
