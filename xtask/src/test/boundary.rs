//! The boundary between INSIDE and OUTSIDE: the library that is loaded into profiled programs stays small and does not
//! depend on reports or files.

use super::Tally;
use crate::run::{cargo, output, target_folder};
use anyhow::{Context, Result, bail};
use std::process::Command;

/// Packages that may be loaded into a profiled program.
const INSIDE: &[&str] = &[
    "stackglass-preload",
    "stackglass-sampler",
    "stackglass-proc-text",
    "stackglass-sampling",
    "stackglass-heap",
    "stackglass-host",
    "stackglass-unwind",
    "stackglass-wire",
    "libc",
];

/// Largest size of the stripped library.
const LIBRARY_BYTES: u64 = 1 << 20;

/// Two checks: the list and the size.
pub fn check() -> Result<Tally> {
    let dependencies = Tally::one(only_inside()?);
    let size = Tally::one(is_small()?);
    Ok(Tally { passed: dependencies.passed + size.passed, failed: dependencies.failed + size.failed })
}

fn only_inside() -> Result<bool> {
    let tree =
        ["tree", "-p", "stackglass-preload", "--edges", "normal", "--prefix", "none", "--format", "{p}"];
    let tree = output(&mut cargo(&tree))?;
    let mut strangers: Vec<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    strangers.retain(|name| !name.is_empty() && !INSIDE.contains(name));
    for name in &strangers {
        eprintln!("the preload library depends on {name}, which may not be loaded into profiled programs");
    }
    Ok(strangers.is_empty())
}

fn is_small() -> Result<bool> {
    if !cargo(&["build", "--quiet", "--release", "-p", "stackglass-preload"]).status()?.success() {
        bail!("the preload library does not build");
    }
    let library = target_folder().join("release/libstackglass_preload.so");
    let stripped = library.with_extension("stripped.so");
    output(Command::new("strip").arg("-o").arg(&stripped).arg(&library))?;
    let bytes = std::fs::metadata(&stripped).context("strip left no file")?.len();
    eprintln!("preload library, stripped: {} KiB", bytes >> 10);
    Ok(bytes <= LIBRARY_BYTES)
}
