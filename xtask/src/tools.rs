//! The project's programs that tests and benchmarks run.

use crate::run::{cargo, succeeds, target_folder};
use anyhow::{Result, bail};
use std::path::PathBuf;

/// The command, the programs that it is tried on, and the checker, built with one profile.
pub struct Tools {
    /// `stackglass`.
    pub stackglass: PathBuf,
    /// `workloads`.
    pub workloads: PathBuf,
    /// `awaits`.
    pub awaits: PathBuf,
    /// `truth`.
    pub truth: PathBuf,
}

impl Tools {
    /// Builds them, with the release profile or not.
    pub fn build(release: bool) -> Result<Tools> {
        let mut build = cargo(&[
            "build",
            "--quiet",
            "-p",
            "stackglass",
            "-p",
            "workloads",
            "-p",
            "truth",
            "-p",
            "awaits",
            "-p",
            "awaits-lines",
            "-p",
            "awaits-wrapped",
        ]);
        if release {
            build.arg("--release");
        }
        if !succeeds(&mut build)? {
            bail!("the command or the workloads do not build");
        }
        let folder = target_folder().join(if release { "release" } else { "debug" });
        Ok(Tools {
            stackglass: folder.join("stackglass"),
            workloads: folder.join("workloads"),
            awaits: folder.join("awaits"),
            truth: folder.join("truth"),
        })
    }
}

/// `in-process`: a program that uses the crate.
pub fn in_process_program() -> Result<PathBuf> {
    let build = ["build", "--quiet", "--release", "-p", "workloads", "--bin", "in-process"];
    if !succeeds(cargo(&build).args(["--features", "in-process"]))? {
        bail!("the program in-process does not build");
    }
    Ok(target_folder().join("release/in-process"))
}
