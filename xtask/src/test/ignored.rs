//! A test may be ignored only as `#[ignore = "long: …"]`: `cargo xtask test --full` runs those, so none is forgotten.

use super::Tally;
use crate::run::root;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// One check over all sources.
pub fn check() -> Result<Tally> {
    let mut sources = Vec::new();
    for folder in ["crates", "bench", "tests", "xtask"] {
        rust_files(&root().join(folder), &mut sources)?;
    }
    let mut passed = true;
    for path in &sources {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        for (i, line) in text.lines().enumerate() {
            let line = line.trim_start();
            if line.starts_with("#[ignore") && !line.starts_with("#[ignore = \"long:") {
                let path = path.strip_prefix(root()).unwrap_or(path).display();
                eprintln!("{path}:{}: ignored without `long: `", i + 1);
                passed = false;
            }
        }
    }
    Ok(Tally::one(passed))
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
