//! Open files of modules that no path finds any more: a program that was deleted while it ran, and has ended since.

use std::collections::HashMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Most files, as each is a descriptor.
const MOST: usize = 64;

static FILES: Mutex<Option<HashMap<String, File>>> = Mutex::new(None);

/// Names of the module with this path come from this open file, which stays open until this process ends.
pub fn register_open_file(module: &str, file: File) {
    let mut files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
    let files = files.get_or_insert_default();
    if files.len() < MOST {
        files.insert(module.to_owned(), file);
    }
}

/// A path that finds the open file of a module.
pub fn path(module: &str) -> Option<PathBuf> {
    use std::os::fd::AsRawFd;
    let files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
    let file = files.as_ref()?.get(module)?;
    Some(format!("/proc/self/fd/{}", file.as_raw_fd()).into())
}
