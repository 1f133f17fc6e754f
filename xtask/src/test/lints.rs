//! Clippy and the documentation, without a warning. Both need the crates checked by the compiler, which clippy has done.

use super::Tally;
use crate::run::{cargo, succeeds};
use anyhow::Result;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Arguments of clippy for the compiler.
const WARNINGS: [&str; 2] = ["-D", "warnings"];

/// All targets of all crates.
pub fn lints() -> Result<Tally> {
    let mut clippy = cargo(&["clippy", "--quiet", "--workspace", "--all-targets", "--"]);
    Ok(Tally::one(succeeds(clippy.args(WARNINGS))?))
}

/// The documentation of all crates.
pub fn docs() -> Result<Tally> {
    let mut doc = cargo(&["doc", "--quiet", "--workspace", "--no-deps"]);
    doc.env("RUSTDOCFLAGS", "-D warnings");
    share_checks(&mut doc);
    Ok(Tally::one(succeeds(&mut doc)?))
}

/// Sets what `cargo clippy` sets, so that Cargo finds the crates checked as this command needs them.
fn share_checks(cargo: &mut Command) {
    let program = PathBuf::from(cargo.get_program());
    // Cargo tells its path to what it runs. Without it, or without clippy, the crates are checked again.
    let Some(driver) =
        program.parent().map(|folder| folder.join("clippy-driver")).filter(|path| is_program(path))
    else {
        return;
    };
    let arguments: String = WARNINGS.iter().map(|argument| format!("{argument}__CLIPPY_HACKERY__")).collect();
    cargo.env("RUSTC_WORKSPACE_WRAPPER", driver).env("CLIPPY_ARGS", arguments);
}

fn is_program(path: &Path) -> bool {
    path.is_absolute() && path.is_file()
}
