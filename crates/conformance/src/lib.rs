//! Runs recorded cases of other implementations and reports differences.
//!
//! A case is a JSON file, or an entry of one. Larger inputs are in a folder `datasets` near it. The `README.md` files under
//! `conformance/`, the project's copy, describe what was recorded and how. Other folders of cases can be run as well.
//!
//! Reports run twice: as recorded, with all quirks of the reference, and as users see them, against reviewed goldens (folder
//! `ours`; without a golden, both are equal). Folder `corrected` contains results for records with a defect that is not
//! repeated.
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

/// Kinds of cases that can be run. Others count as failed.
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

/// Which behaviour is compared with which expectation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// With the reference's quirks, against the record.
    Recorded,
    /// Without quirks, against the goldens.
    Ours,
}

/// A case that did not pass.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// Name of the case.
    pub case: String,
    /// Its kind; empty for a file that is not JSON.
    pub kind: String,
    /// Its file.
    pub path: PathBuf,
    /// The mode in which it ran.
    pub mode: Mode,
    /// The difference as text.
    pub text: String,
}
