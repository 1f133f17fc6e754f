//! Packages of npm, installed in the target folder in the versions of a lock file.

use crate::run::{on_path, root, succeeds};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Installs the packages of `described`, a folder of the project, in `folder`. Does nothing if they are there.
pub fn install(described: &str, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let lock = fs::read(root().join(described).join("package-lock.json"))?;
    let mark = folder.join("installed.json");
    if fs::read(&mark).is_ok_and(|installed| installed == lock) {
        return Ok(());
    }
    for file in ["package.json", "package-lock.json"] {
        fs::copy(root().join(described).join(file), folder.join(file))?;
    }
    let mut npm = Command::new("npm");
    npm.args(["ci", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"]).current_dir(folder);
    if !on_path("npm") || !succeeds(&mut npm)? {
        bail!("packages cannot be installed: `npm ci` in {} must succeed once", folder.display());
    }
    fs::write(mark, lock)?;
    Ok(())
}
