//! Showing a file to whoever sits there.

use crate::failure::Failure;
use std::path::Path;
use std::process::{Command, Stdio};

/// Opens a file with `$BROWSER`, or with what the desktop has for it.
pub(crate) fn show(file: &Path) -> Result<(), Failure> {
    let browser = std::env::var_os("BROWSER").filter(|name| !name.is_empty());
    let program = browser.unwrap_or_else(|| "xdg-open".into());
    let quiet = Stdio::null;
    // It may be the browser itself, which stays: nobody waits for it.
    match Command::new(&program).arg(file).stdin(quiet()).stdout(quiet()).stderr(quiet()).spawn() {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::new(format!(
            "cannot start {}: {error}; {} is written: open it yourself, or set BROWSER",
            program.to_string_lossy(),
            file.display()
        ))),
    }
}
