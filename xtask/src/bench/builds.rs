//! Other builds of the workloads: with full debug information, frame pointers, or an allocator that profiles.

use crate::run::{cargo, succeeds};
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};

/// Builds the workloads with full debug information into `folder`, and returns the program.
pub fn workloads(folder: &Path, feature: Option<&str>, frame_pointers: bool) -> Result<PathBuf> {
    let mut build = cargo(&["build", "--quiet", "--release", "-p", "workloads"]);
    build.args(feature.iter().flat_map(|feature| ["--features", feature]));
    build.arg("--target-dir").arg(folder).env("CARGO_PROFILE_RELEASE_DEBUG", "2");
    if frame_pointers {
        build.env("RUSTFLAGS", "-C force-frame-pointers=yes");
    } else {
        build.env_remove("RUSTFLAGS");
    }
    if !succeeds(&mut build)? {
        bail!("the workloads do not build in {}", folder.display());
    }
    Ok(folder.join("release/workloads"))
}
