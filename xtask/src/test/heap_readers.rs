//! Heap snapshots open in other programs: Chrome's DevTools and memlab find the same nodes, edges and sizes.
//!
//! An example writes the snapshots, and what readers must find. The readers are packages of npm. Without node, or without a
//! network for the first installation, the step is skipped.

use super::{Tally, packages};
use crate::run::{on_path, root, shown_and_returned, succeeds, target_folder};
use crate::tools::Tools;
use anyhow::{Result, bail};
use std::process::Command;

const CHECKER: &str = "crates/files/readers";

/// One check for each snapshot.
pub fn run() -> Result<Tally> {
    let folder = target_folder().join("heap-readers");
    if !on_path("node") {
        eprintln!("skipped: there is no node, which runs DevTools and memlab");
        return Ok(Tally::default());
    }
    if let Err(error) = packages::install(CHECKER, &folder) {
        eprintln!("skipped: {error:#}");
        return Ok(Tally::default());
    }
    let snapshots = folder.join("snapshots");
    if !succeeds(Tools::with_tests()?.example("heap_files").arg(&snapshots))? {
        bail!("the snapshots could not be written");
    }
    let mut node = Command::new("node");
    node.arg(root().join(CHECKER).join("check.mjs")).arg(snapshots.join("expected")).current_dir(&folder);
    let (succeeded, text) = shown_and_returned(&mut node, true)?;
    let count = |what: &str| text.lines().filter(|line| line.starts_with(what)).count() as u64;
    let tally = Tally { passed: count("ok - "), failed: count("not ok - ") };
    if tally.passed == 0 || !succeeded && tally.failed == 0 {
        bail!("a reader ended without an answer");
    }
    Ok(tally)
}
