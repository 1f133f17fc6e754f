//! Runs recorded cases against our own code and says where they differ.
//!
//! A case is a JSON file, or an entry of one; larger inputs lie in a folder `datasets` near it. What
//! was recorded and how is told in the `README.md` files under `conformance/`, the project's own copy;
//! any other folder of such cases can be run as well. A report runs twice over: as recorded, with
//! all of the reference's defects switched on, and as our users see it, against reviewed goldens of
//! our own (folder `ours`; where there is none, ours equals the recorded one). Folder `corrected`
//! holds what we say where the record itself shows a defect that is not repeated.
//!
//! ```
//! use stackglass_conformance::{Options, own_folder, run};
//!
//! let options = Options { kinds: Some(vec!["ids".into()]), ..Options::default() };
//! let outcome = run(&own_folder(), &options)?;
//! assert_eq!((outcome.passed, outcome.failed()), (2, 0));
//! # Ok::<(), stackglass_conformance::Error>(())
//! ```

mod case;
mod flame;
mod folder;
mod goldens;
mod jlprof;
mod json_file;
mod judge;
mod print;
mod run;
mod same;

pub use folder::Error;
pub use run::{Options, Outcome, run};

use std::path::{Path, PathBuf};

/// Kinds of cases that can be run; all others count as failed.
pub const KINDS: &[&str] = &[
    "print",
    "callers",
    "flatten",
    "strip",
    "add_fake_meta",
    "has_meta",
    "ids",
    "flamegraph",
    "allocs",
    "text",
    "pixels",
    "palettes",
    "jlprof-samples",
    "jlprof-graph",
];

/// The project's own copy of recorded cases.
pub fn own_folder() -> PathBuf {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    project.unwrap_or(Path::new("")).join("conformance")
}

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
    /// Its kind, empty for a file that cannot be read as JSON.
    pub kind: String,
    /// The file it is in.
    pub path: PathBuf,
    /// As what it ran.
    pub mode: Mode,
    /// What differs, for people.
    pub text: String,
}
