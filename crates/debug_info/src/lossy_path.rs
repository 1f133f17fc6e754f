//! Files whose names are not UTF-8.
//!
//! Recordings keep paths as text, with U+FFFD in place of other bytes. Such a file is found again in its folder: by the entries
//! whose names look like that as text.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};

/// Most entries read of a folder, and most paths followed.
const MOST_ENTRIES: usize = 100_000;
const MOST_PATHS: usize = 64;

/// The existing paths that have this text. None, unless it has a replaced byte.
pub fn existing(text: &str) -> Vec<PathBuf> {
    if !text.contains(char::REPLACEMENT_CHARACTER) {
        return Vec::new();
    }
    let mut paths = VecDeque::from([PathBuf::new()]);
    for part in Path::new(text) {
        for _ in 0..paths.len() {
            let Some(folder) = paths.pop_front() else { break };
            let part_text = part.to_string_lossy();
            if !part_text.contains(char::REPLACEMENT_CHARACTER) {
                paths.push_back(folder.join(part));
                continue;
            }
            let list = if folder.as_os_str().is_empty() { Path::new(".") } else { &folder };
            let entries = fs::read_dir(list).into_iter().flatten().flatten().take(MOST_ENTRIES);
            let same =
                entries.map(|entry| entry.file_name()).filter(|name| name.to_string_lossy() == part_text);
            paths.extend(same.take(MOST_PATHS).map(|name| folder.join(name)));
        }
        paths.truncate(MOST_PATHS);
    }
    paths.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn names_of_any_bytes_are_found_by_their_text() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join(OsStr::from_bytes(b"f\xff"));
        fs::create_dir(&inner).unwrap();
        for name in [&b"prog-\xfe"[..], b"prog-\xfd", b"prog-x"] {
            fs::write(inner.join(OsStr::from_bytes(name)), "").unwrap();
        }
        let text = inner.join(OsStr::from_bytes(b"prog-\xfe"));
        let found = existing(&text.to_string_lossy());
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found.contains(&text));
        assert!(existing(&inner.join("prog-x").to_string_lossy()).contains(&inner.join("prog-x")));
        assert!(existing(&folder.path().to_string_lossy()).is_empty(), "the plain path serves");
        assert!(existing("/no/such/\u{fffd}/file").is_empty());
    }
}
