//! `cargo xtask effects`: tools that others wrote, alone and recorded with the shortest delay.
//!
//! The rows and their runner are `tests/effects`, which shares what it needs with the tests of whole programs; here the
//! command is built and handed over.

use crate::run::cargo;
use crate::tools::Tools;
use anyhow::Result;
use std::process::Command;

/// Runs the named rows, or all.
pub fn run(arguments: &[&str]) -> Result<bool> {
    crate::run::succeeds(&mut runner(arguments)?)
}

/// The runner, not started.
pub fn runner(arguments: &[&str]) -> Result<Command> {
    let tools = Tools::build(false)?;
    let mut runner = cargo(&["run", "--quiet", "-p", "whole-programs", "--bin", "effects", "--"]);
    runner.args(arguments).env("STACKGLASS_BIN", &tools.stackglass);
    Ok(runner)
}
