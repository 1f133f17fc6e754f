//! Rules about our own sources that no other tool knows.
//!
//! A test may be ignored only as `long: …`, so that none is forgotten; library crates must deny
//! missing documentation; `unsafe` is forbidden where the rooms of the design do not name it.

use super::Tally;
use crate::run::root;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// Rooms that may use `unsafe`.
const UNSAFE_ROOMS: &[&str] =
    &["wire", "unwind", "host", "sampler", "heap", "preload", "perf", "attach", "symbols", "collect", "demo"];

/// Three checks.
pub fn check() -> Result<Tally> {
    let mut sources = Vec::new();
    for folder in ["crates", "bench", "tests", "xtask"] {
        rust_files(&root().join(folder), &mut sources)?;
    }
    let mut complaints = [Vec::new(), Vec::new(), Vec::new()];
    for path in &sources {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let place = path.strip_prefix(root()).unwrap_or(path).display().to_string();
        for (i, line) in text.lines().enumerate() {
            let line = line.trim_start();
            if line.starts_with("#[ignore") && !line.starts_with("#[ignore = \"long:") {
                complaints[0].push(format!("{place}:{}: ignored without `long: `", i + 1));
            }
        }
        let Some(room) = place.strip_prefix("crates/").and_then(|rest| rest.strip_suffix("/src/lib.rs"))
        else {
            continue;
        };
        if !text.contains("#![deny(missing_docs)]") {
            complaints[1].push(format!("{place}: lacks #![deny(missing_docs)]"));
        }
        if !UNSAFE_ROOMS.contains(&room) && !text.contains("#![forbid(unsafe_code)]") {
            complaints[2].push(format!("{place}: lacks #![forbid(unsafe_code)]"));
        }
    }
    let mut tally = Tally::default();
    for group in complaints {
        group.iter().for_each(|complaint| eprintln!("{complaint}"));
        let one = Tally::one(group.is_empty());
        tally.passed += one.passed;
        tally.failed += one.failed;
    }
    Ok(tally)
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(()) };
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            rust_files(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    Ok(())
}
