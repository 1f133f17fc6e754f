//! A report for a standard output that is closed (`stackglass print >&-`) is an error, as for other programs.
//!
//! Rust's runtime opens `/dev/null` instead, and nobody would notice that the report is lost.

use std::fs::OpenOptions;
use std::io;

/// Makes writes to a standard output that was closed fail, so that each verb reports it.
pub(crate) fn make_writes_fail() {
    // Its own error for a descriptor that cannot be written would be ignored by std.
    if stackglass_collect::launch::stdout_was_closed()
        && let Ok(full) = OpenOptions::new().write(true).open("/dev/full")
    {
        // If that fails, the report is lost, as before.
        let _ = rustix::stdio::dup2_stdout(full);
    }
}

/// What to say of a failed write, if standard output was closed.
pub(crate) fn reason(error: &io::Error) -> Option<&'static str> {
    let is_full = error.kind() == io::ErrorKind::StorageFull;
    (is_full && stackglass_collect::launch::stdout_was_closed()).then_some("standard output is closed")
}
