//! `--open`: opens the file that was written.

use crate::failure::Failure;
use std::path::Path;
use std::process::{Command, Stdio};

/// Opens a file with `$BROWSER`, or with the desktop's default program.
pub(crate) fn show(file: &Path) -> Result<(), Failure> {
    let browser = std::env::var_os("BROWSER").filter(|name| !name.is_empty());
    let program = browser.unwrap_or_else(|| "xdg-open".into());
    let quiet = Stdio::null;
    // This may be the browser itself, which keeps running: do not wait for it.
    match Command::new(&program).arg(file).stdin(quiet()).stdout(quiet()).stderr(quiet()).spawn() {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::new(format!(
            "cannot start {}: {error}; {} was written: open it yourself, or set BROWSER",
            program.to_string_lossy(),
            file.display()
        ))),
    }
}
