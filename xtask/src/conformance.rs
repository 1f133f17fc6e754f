//! `cargo xtask conformance`: the harness is a program of its own (`crates/conformance`), so that the other
//! commands need not wait until it is built.

use crate::run::{root, succeeds};
use anyhow::Result;
use std::process::Command;

/// Runs it where the user stands, so that folders mean what they say.
pub fn run(arguments: &[&str]) -> Result<bool> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["run", "--quiet", "--package", "stackglass-conformance", "--manifest-path"]);
    succeeds(cargo.arg(root().join("Cargo.toml")).arg("--").args(arguments))
}
