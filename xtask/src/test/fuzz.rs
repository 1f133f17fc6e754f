//! The fuzz targets of `fuzz/`, a minute each: only in a full run, and told so otherwise.

use super::{Extent, Tally};
use crate::run::{cargo, root, succeeds, target_folder};
use anyhow::{Context, Result};
use std::process::Command;

/// Seconds for each target.
const SECONDS: &str = "60";

/// One check for each target.
pub fn run(extent: Extent) -> Result<Tally> {
    if extent == Extent::Quick {
        eprintln!(
            "left to `cargo xtask test --full`; what was found before is read by the tests of crates/files"
        );
        return Ok(Tally::default());
    }
    let fuzz = root().join("fuzz");
    let built = target_folder().join("fuzz");
    let mut build = cargo(&["build", "--quiet", "--release", "--target-dir"]);
    if !succeeds(build.arg(&built).current_dir(&fuzz))? {
        return Ok(Tally::one(false));
    }
    let mut tally = Tally::default();
    for entry in std::fs::read_dir(fuzz.join("targets")).context("fuzz/targets cannot be read")? {
        let path = entry?.path();
        let Some(name) = path.file_stem() else { continue };
        let findings = built.join("findings").join(name);
        std::fs::create_dir_all(&findings).with_context(|| format!("cannot make {}", findings.display()))?;
        let mut target = Command::new(built.join("x86_64-unknown-linux-gnu/release").join(name));
        target.arg(format!("-max_total_time={SECONDS}")).args([
            "-timeout=10",
            "-rss_limit_mb=1024",
            "-verbosity=0",
        ]);
        target.arg(&findings).arg(fuzz.join("corpus").join(name)).current_dir(&findings);
        let well = succeeds(&mut target)?;
        eprintln!("{}: {}", name.display(), if well { "nothing found in 60 s" } else { "FOUND SOMETHING" });
        let one = Tally::one(well);
        tally.passed += one.passed;
        tally.failed += one.failed;
    }
    Ok(tally)
}
