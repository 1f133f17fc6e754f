//! The user's browser.

use std::env::var_os;
use std::ffi::OsStr;
use std::process::{Command, Stdio};

/// Opens a file or an address with `$BROWSER`, or with the desktop's default program.
///
/// # Errors
/// If that program cannot be started: which, and why.
pub(crate) fn open(what: &OsStr) -> Result<(), String> {
    let program = chosen().unwrap_or_else(|| "xdg-open".into());
    let quiet = Stdio::null;
    // This may be the browser itself, which keeps running: do not wait for it.
    match Command::new(&program).arg(what).stdin(quiet()).stdout(quiet()).stderr(quiet()).spawn() {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("cannot start {}: {error}", program.to_string_lossy())),
    }
}

/// Whether there is something to open a page with: a browser that was chosen, or a desktop.
pub(crate) fn is_likely() -> bool {
    let is_set = |name| var_os(name).is_some_and(|value| !value.is_empty());
    chosen().is_some() || is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")
}

fn chosen() -> Option<std::ffi::OsString> {
    var_os("BROWSER").filter(|name| !name.is_empty())
}
