//! A name for a new file that replaces nothing: `rg.glass`, `rg-2.glass`, ….

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Number of names that are tried.
const MOST: u32 = 100_000;

/// Creates an empty file under the first free name, so that no other process takes it: `path` itself, then with a number
/// from 2 up before the extension. With `numbered_from`, all names have a number, from this one up.
///
/// If the system does not create files there, the name is returned all the same: who writes the file gets the error.
pub fn claim_free_name(path: &Path, numbered_from: Option<u32>) -> PathBuf {
    let first = numbered_from.unwrap_or(1);
    for number in first..first.saturating_add(MOST) {
        let name =
            if number == 1 && numbered_from.is_none() { path.to_owned() } else { numbered(path, number) };
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&name) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            _ => return name,
        }
    }
    path.to_owned()
}

/// `demo.glass` becomes `demo-3.glass`.
fn numbered(path: &Path, number: u32) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().map_or("glass".into(), |extension| extension.to_string_lossy());
    path.with_file_name(format!("{stem}-{number}.{extension}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.glass");
        let claim = |from| {
            let name = claim_free_name(&path, from);
            name.file_name().unwrap().to_str().unwrap().to_owned()
        };
        assert_eq!([claim(None), claim(None), claim(None)], ["a.glass", "a-2.glass", "a-3.glass"]);
        assert_eq!([claim(Some(1)), claim(Some(1))], ["a-1.glass", "a-4.glass"]);
        let nowhere = Path::new("/proc/none/a.glass");
        assert_eq!(claim_free_name(nowhere, None), nowhere);
    }
}
