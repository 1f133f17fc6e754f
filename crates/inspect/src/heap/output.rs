//! Where a heap snapshot goes if no file is named, as in Julia: `PID_NANOSECONDS.heapsnapshot` in the current folder, or in
//! the temporary one if files cannot be created there.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// A file that does not exist yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Output {
    /// Its path.
    pub path: PathBuf,
    /// A line for the user if it is not in the wanted folder.
    pub warning: Option<String>,
}

/// The file for a snapshot of process `pid`, in `folder` or else in the current folder.
pub fn default_output(pid: u32, folder: Option<&Path>) -> Output {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let name = format!("{pid}_{}.heapsnapshot", now.as_nanos());
    if let Some(folder) = folder {
        return Output { path: folder.join(name), warning: None };
    }
    match can_create(Path::new(&name)) {
        true => Output { path: name.into(), warning: None },
        false => {
            let folder = std::env::temp_dir();
            let current = std::env::current_dir().unwrap_or_default();
            let warning = format!(
                "no file can be created in {}: the heap snapshot goes to {}",
                current.display(),
                folder.display()
            );
            Output { path: folder.join(name), warning: Some(warning) }
        }
    }
}

fn can_create(path: &Path) -> bool {
    let created = OpenOptions::new().write(true).create_new(true).open(path).is_ok();
    // Removed again: a snapshot that fails leaves no file.
    created && std::fs::remove_file(path).is_ok()
}
