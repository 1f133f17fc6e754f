//! Checks stacks, shares and times in recordings of known programs.
//!
//! * [`NamedStacks`]: stacks as lists of function names, from a recording or from the output of a peer, so that the same
//!   checks apply to all.
//! * [`chain`]: exactness of the stacks of the workload `chain`.
//! * [`shares`]: hits and time of named functions.
//! * [`bursts`]: time and hits of functions, compared with the program's own account.
//! * [`threads`]: time and hits of each thread.
//! * [`sleepers`]: stacks of sleeping threads.

pub mod bursts;
pub mod chain;
pub mod folded;
pub mod named;
pub mod shares;
pub mod sleepers;
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
