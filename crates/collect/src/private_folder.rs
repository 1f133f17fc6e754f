//! Folders that nobody but this user may enter.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The user for whom this process acts.
pub(crate) fn user() -> u32 {
    // SAFETY: geteuid has no arguments and cannot fail.
    unsafe { libc::geteuid() }
}

/// Whether a folder belongs to this user and no one else may enter it.
pub(crate) fn is_private(folder: &Path) -> bool {
    fs::symlink_metadata(folder)
        .is_ok_and(|meta| meta.is_dir() && meta.uid() == user() && meta.mode() & 0o077 == 0)
}
