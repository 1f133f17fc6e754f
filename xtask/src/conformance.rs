//! `cargo xtask conformance`: the harness is a separate program (`crates/conformance`), so that the other commands do not
//! wait for its build.

use crate::run::{root, succeeds};
use anyhow::Result;
use std::process::Command;

/// Runs it in the current folder, so that relative paths are right.
pub fn run(arguments: &[&str]) -> Result<bool> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["run", "--quiet", "--package", "stackglass-conformance", "--manifest-path"]);
    succeeds(cargo.arg(root().join("Cargo.toml")).arg("--").args(arguments))
}
