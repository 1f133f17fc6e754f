//! Checks stacks, shares and times in recordings of known programs.
//!
//! * [`NamedStacks`]: stacks of a recording as lists of function names.
//! * [`chain`]: exactness of the stacks of the workload `chain`.
//! * [`shares`]: hits and time of named functions.
//! * [`bursts`]: time and hits of functions, compared with the program's own account.
//! * [`threads`]: time and hits of each thread.

pub mod bursts;
pub mod chain;
pub mod named;
pub mod shares;
pub mod threads;

pub use named::{NamedStacks, Seen};

use anyhow::{Context, Result};
use stackglass_profile::Recording;
use std::path::Path;

/// Reads a recording, complete or not.
///
/// # Errors
/// If the file cannot be read or is no recording.
pub fn read(path: &Path) -> Result<Recording> {
    let (recording, _) =
        stackglass_files::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(recording)
}
