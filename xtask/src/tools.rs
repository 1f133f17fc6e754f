//! The project's programs that tests and benchmarks run.

use crate::run::{cargo, succeeds, target_folder};
use anyhow::{Result, bail};
use std::path::PathBuf;
use std::process::Command;

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
    /// Builds them with the release profile, as users have them.
    pub fn release() -> Result<Tools> {
        let packages = ["stackglass", "workloads", "truth", "awaits", "awaits-lines", "awaits-wrapped"];
        let packages = packages.iter().flat_map(|package| ["-p", package]);
        Tools::build(cargo(&["build", "--quiet", "--release"]).args(packages), "release")
    }

    /// Builds them together with all tests, which use the same libraries: chosen alone, they would have other features, and all would be
    /// compiled twice.
    pub fn with_tests() -> Result<Tools> {
        let targets = ["--workspace", "--bins", "--tests", "--examples"];
        Tools::build(cargo(&["build", "--quiet"]).args(targets), "debug")
    }

    /// An example, if it was built together with all tests.
    pub fn example(&self, name: &str) -> Command {
        Command::new(self.stackglass.with_file_name("examples").join(name))
    }

    fn build(build: &mut Command, profile: &str) -> Result<Tools> {
        if !succeeds(build)? {
            bail!("the command, the workloads or the tests do not build");
        }
        let folder = target_folder().join(profile);
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
