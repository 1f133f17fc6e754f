//! `cargo xtask effects`: third-party tools, alone and recorded with the shortest delay.
//!
//! The rows and their runner are in `tests/effects`, which shares code with the tests of whole programs. The command is built
//! here and passed to it.

use crate::run::cargo;
use crate::tools::Tools;
use anyhow::Result;
use std::process::Command;

/// Runs the named rows, or all.
pub fn run(arguments: &[&str]) -> Result<bool> {
    crate::run::succeeds(&mut runner(arguments)?)
}

/// The command line of the runner.
pub fn runner(arguments: &[&str]) -> Result<Command> {
    let tools = Tools::with_tests()?;
    let mut runner = cargo(&["run", "--quiet", "-p", "whole-programs", "--bin", "effects", "--"]);
    runner.args(arguments).env("STACKGLASS_BIN", &tools.stackglass);
    Ok(runner)
}
