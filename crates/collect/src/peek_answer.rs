//! Where the answer of a peek goes: to whoever asked by `stackglass peek PID`, else to standard error.
//!
//! The one who asks puts an empty file named by the process (and by himself) into a private folder, sends the request, and reads
//! what is appended. The one who answers (the process itself, or the command that runs it) looks whether there is such a
//! file. Both are the same user; a folder or file that is not private to him is nobody's. A process in another mount
//! namespace does not see the file, and answers on its standard error.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The last byte of an answer: no text has it.
const END: u8 = 4;

/// A question that waits for its answer. The file goes when this is dropped.
pub struct Question {
    path: PathBuf,
    file: File,
    ended: bool,
}

impl Question {
    /// Puts up the file for process `pid`.
    ///
    /// # Errors
    /// When the folder cannot be made private or the file not be made.
    pub fn new(pid: u32) -> io::Result<Question> {
        Question::in_folder(&folder(), pid)
    }

    fn in_folder(folder: &Path, pid: u32) -> io::Result<Question> {
        match DirBuilder::new().mode(0o700).create(folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        if !is_private(folder) {
            let line = format!("{} is not a folder of this user alone", folder.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, line));
        }
        // Several may ask at a time, each with a file of his own.
        let path = folder.join(format!("{pid}.{}", std::process::id()));
        // Left by one who was killed and had the same id.
        let _ = fs::remove_file(&path);
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        Ok(Question { path, file, ended: false })
    }

    /// What was answered since the last call, empty while nothing was.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn more(&mut self) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        if !self.ended {
            self.file.read_to_end(&mut text)?;
        }
        if let Some(end) = text.iter().position(|byte| *byte == END) {
            text.truncate(end);
            self.ended = true;
        }
        Ok(text)
    }

    /// Whether the answer is complete.
    pub fn is_answered(&self) -> bool {
        self.ended
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Gives a part of an answer to whoever asked for a peek at process `pid`; false when nobody did, or cannot be reached.
pub fn give(pid: u32, text: &[u8], last: bool) -> bool {
    give_in(&folder(), pid, text, last)
}

fn give_in(folder: &Path, pid: u32, text: &[u8], last: bool) -> bool {
    // Nearly always there is no such folder: one system call.
    if !is_private(folder) {
        return false;
    }
    let Ok(entries) = fs::read_dir(folder) else { return false };
    let asked = format!("{pid}.");
    let mut text = text.to_vec();
    if last {
        text.push(END);
    }
    let mut given = false;
    for entry in entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(&asked)) {
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC;
        let open = OpenOptions::new().append(true).custom_flags(flags).open(entry.path());
        given |= open.is_ok_and(|mut file| file.write_all(&text).is_ok());
    }
    given
}

fn folder() -> PathBuf {
    PathBuf::from(format!("/tmp/stackglass-peek-{}", user()))
}

fn is_private(folder: &Path) -> bool {
    fs::symlink_metadata(folder)
        .is_ok_and(|meta| meta.is_dir() && meta.uid() == user() && meta.mode() & 0o077 == 0)
}

fn user() -> u32 {
    // SAFETY: geteuid has no arguments and cannot fail.
    unsafe { libc::geteuid() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_comes_in_parts_and_ends() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("questions");
        assert!(!give_in(&folder, 7, b"nobody asked", true));
        let mut question = Question::in_folder(&folder, 7).unwrap();
        assert!(!give_in(&folder, 8, b"another process", true));
        assert_eq!(question.more().unwrap(), b"");
        assert!(give_in(&folder, 7, b"stacks\n", false));
        assert_eq!(question.more().unwrap(), b"stacks\n");
        assert!(!question.is_answered());
        assert!(give_in(&folder, 7, b"report\n", true) && give_in(&folder, 7, b"of a later peek", false));
        assert_eq!(question.more().unwrap(), b"report\n");
        assert!(question.is_answered());
        drop(question);
        assert!(!give_in(&folder, 7, b"it is gone", true));
    }

    #[test]
    fn a_folder_that_others_may_enter_is_not_used() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("questions");
        DirBuilder::new().mode(0o755).create(&folder).unwrap();
        assert!(Question::in_folder(&folder, 7).is_err());
        fs::write(folder.join("7.1"), "").unwrap();
        assert!(!give_in(&folder, 7, b"text", true));
        let link = place.path().join("link");
        let private = place.path().join("private");
        DirBuilder::new().mode(0o700).create(&private).unwrap();
        std::os::unix::fs::symlink(&private, &link).unwrap();
        assert!(Question::in_folder(&link, 7).is_err());
    }
}
