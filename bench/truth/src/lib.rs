//! Checks recordings of known programs: are the stacks, shares and times right?
//!
//! * [`NamedStacks`]: stacks as lists of function names, from a recording of ours or from folded
//!   text that a peer left behind, so that one rule judges all.
//! * [`chain`]: is each stack of the workload `chain` exactly the one that was there?
//! * [`shares`]: hits and time of functions that are named.
//! * [`bursts`]: time and hits of functions against the program's own account.
//! * [`threads`]: what each thread was given.
//! * [`sleepers`]: where sleeping threads were seen.

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
/// When the file cannot be read or is no recording.
pub fn read(path: &Path) -> Result<Recording> {
    let (recording, _) =
        stackglass_files::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(recording)
}
