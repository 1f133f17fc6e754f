//! The boundary between INSIDE and OUTSIDE: the library that is loaded into profiled programs stays small and does not
//! depend on reports or files.

use super::Tally;
use crate::run::{cargo, output, target_folder};
use crate::tools::Tools;
use anyhow::{Context, Result};
use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;

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

/// Largest size of the library, stripped as the command embeds it.
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
    Tools::with_tests()?;
    let bytes = fs::metadata(embedded()?)?.len();
    eprintln!("preload library, stripped: {} KiB", bytes >> 10);
    Ok(bytes <= LIBRARY_BYTES)
}

/// The library that the newest build of the command embeds. Its build script always builds it optimised and stripped.
fn embedded() -> Result<PathBuf> {
    let mut newest: Option<(SystemTime, PathBuf)> = None;
    for entry in fs::read_dir(target_folder().join("debug/build"))? {
        let library = entry?.path().join("out/libstackglass.so");
        if let Ok(made) = fs::metadata(&library).and_then(|library| library.modified()) {
            newest = newest.max(Some((made, library)));
        }
    }
    Ok(newest.context("no build of the command has left a library")?.1)
}
